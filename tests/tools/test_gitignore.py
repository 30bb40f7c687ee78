"""Simple ignore rules are read without pathspec, and decide as pathspec does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from clew.tools.search.backtracking import without_backtracking
from clew.tools.search.gitignore import _IgnoreFile, _IgnoreRule, _parse_line, _parse_simple

NAMES = st.text("ab.*-", min_size=1, max_size=3)
LINES = st.builds(
    lambda before, names, after: f"{before}{'/'.join(names)}{after}",
    st.sampled_from(("", "!", "/", "!/")),
    st.lists(NAMES, min_size=1, max_size=3),
    st.sampled_from(("", "/")),
)
PATHS = st.lists(st.text("ab.-", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


def by_pathspec(line: str) -> _IgnoreRule | None:
    try:
        expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(line.removesuffix("/"))
    except ValueError:
        return None
    pattern = without_backtracking(expression) if expression else None
    return _IgnoreRule(bool(ignores), line.endswith("/"), pattern=pattern) if pattern else None


@given(LINES, PATHS, st.booleans())
def test_a_simple_rule_decides_as_pathspec_does(line: str, path: str, is_folder: bool) -> None:
    simple, other = _parse_simple(line), by_pathspec(line)
    if simple is not None:
        assert other is not None
        assert simple.ignores == other.ignores
        assert simple.decides(path, is_folder=is_folder) == other.decides(path, is_folder=is_folder)


@given(st.lists(LINES, max_size=8), PATHS, st.booleans())
def test_the_last_rule_that_matches_decides(lines: list[str], path: str, is_folder: bool) -> None:
    rules = [rule for rule in map(_parse_line, reversed(lines)) if rule is not None]
    found = _IgnoreFile("/folder", rules).find(path, is_folder=is_folder)
    assert found is next((rule for rule in rules if rule.decides(path, is_folder=is_folder)), None)


@pytest.mark.parametrize("line", ["build/", "*.pyc", "/dist", "docs/_build", "!kept", ".coverage.*", "a/*/b"])
def test_usual_rules_are_simple(line: str) -> None:
    assert _parse_simple(line) is not None


@pytest.mark.parametrize("line", ["**/a", "a?", "[ab]", "a b", r"\\#a", "a/*", "*", "a//b", "..", "#a", ""])
def test_other_rules_are_left_to_pathspec(line: str) -> None:
    assert _parse_simple(line) is None
