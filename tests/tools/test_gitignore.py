"""Ignore rules decide as git does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew.tools.search.gitignore import IgnoreRules, _IgnoreFile, _parse_line, rules_above

NAMES = ("a", "b", "ab", "aab", "a.b", "a b", "a ", "b\t", "é", "-", "]", "!a", "#a", "\\")
RULES = st.builds(
    lambda before, names, after: f"{before}{'/'.join(names)}{after}",
    st.sampled_from(("", "!", "/", "!/", "\\")),
    st.lists(st.text("ab.*?[]!^-\\ \té#:", min_size=1, max_size=5) | st.sampled_from(("**", "***", "*")), max_size=3),
    st.sampled_from(("", "/", " ", "\t", " /", "\\ ", "**", "\r")),
)
PATHS = st.lists(st.text("ab.-", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with every name as a file, and below folders of one and two levels."""
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for first, second in product(NAMES, NAMES):
        folder = root / f"{first}d" / second
        folder.mkdir(parents=True)
        (folder / first).touch()
        (folder / "ab").touch()
    for name in NAMES:
        (root / name).touch()
        (root / f"{name}d" / f"{name}f").touch()
    (root / "b").unlink()
    (root / "b" / "b").mkdir(parents=True)
    (root / "b" / "b" / "b").touch()
    return root


def files_for_git(root: Path) -> set[str]:
    listing = ["git", "-C", str(root), "-c", "core.excludesFile=", "ls-files", "-o", "-z", "--exclude-standard"]
    return set(subprocess.run(listing, check=True, capture_output=True).stdout.decode().split("\0")) - {""}


def files_for_clew(folder: Path, root: Path, rules: IgnoreRules) -> Iterator[str]:
    rules = rules.entering(str(folder))
    for each in folder.iterdir():
        if each.name == ".git" or rules.ignores(str(each), is_folder=each.is_dir()):
            continue
        if each.is_dir():
            yield from files_for_clew(each, root, rules)
        else:
            yield str(each.relative_to(root))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(RULES, min_size=1, max_size=3))
@example(["a /"])
@example(["*", "!b\t"])
@example(["***/ab"])
@example(["ad/a**"])
@example(["bd/a**/ab"])
@example(["[[:alpha:]-]", "[!]-a]d", "[b-a]", "[^b-a]f"])
@example(["éd", "??f", "\\#a", "\\!a", "\\\\"])
def test_git_and_clew_ignore_the_same_files(repository: Path, lines: Sequence[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    assert set(files_for_clew(repository, repository, rules_above(repository))) == files_for_git(repository)


@given(st.lists(RULES, max_size=8), PATHS, st.booleans())
def test_the_last_rule_that_matches_decides(lines: list[str], path: str, is_folder: bool) -> None:
    rules = [rule for rule in map(_parse_line, reversed(lines)) if rule is not None]
    found = _IgnoreFile("/folder", rules).find(path, is_folder=is_folder)
    assert found is next((rule for rule in rules if rule.decides(path, is_folder=is_folder)), None)
