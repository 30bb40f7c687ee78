"""The comparison of tests with the base commit: deleted, newly skipped and weakened tests, and changed settings of
checks. It runs nothing."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from clew.team.evidence.found_tests import FoundTest, is_test_file, read_tests

_SECTIONS = frozenset(
    ("pytest", "ruff", "flake8", "mypy", "pylint", "black", "isort", "coverage", "pyright", "basedpyright", "tox")
)
_SETTINGS = re.compile(
    r"(?:.*/)?(?:\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|\.flake8|\.pylintrc|\.?ruff\.toml|\.?mypy\.ini"
    r"|pyrightconfig\.json|\.eslintrc.*|eslint\.config\.\w+|biome\.jsonc?|tsconfig.*\.json|jest\.config\.\w+"
    r"|vitest\.config\.\w+|\.mocharc.*|\.golangci\.ya?ml|clippy\.toml|\.?rustfmt\.toml|\.prettierrc.*|\.rubocop\.yml"
    r"|\.coveragerc|\.eslintignore|\.prettierignore)"
)
_HOOKS = frozenset(
    (
        *("pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_runtest_makereport"),
        *("pytest_sessionfinish", "pytest_runtest_call", "pytest_runtest_protocol", "pytest_pyfunc_call"),
        *("pytest_report_teststatus", "pytest_runtest_logreport", "pytest_exception_interact", "collect_ignore"),
        *("collect_ignore_glob", "pytest_unconfigure", "pytest_collect_file", "pytest_pycollect_makeitem"),
        *("pytest_runtest_setup", "pytest_itemcollected", "pytest_generate_tests", "pytest_cmdline_main"),
        *("skip", "xfail"),
    )
)
"""Names in a conftest.py that decide which tests run and which count as passed."""
_RUNNERS = re.compile(
    r"(?:.*/)?(?:pytest|_pytest|pluggy|unittest|ruff|mypy|flake8|pylint|black|isort|coverage|sitecustomize|usercustomize)"
    r"(?:\.py|/__init__\.py|/__main__\.py)"
)
"""Modules that Python would load in place of a test runner or a linter, or at its start."""


class TestComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of tests from the base, each as one sentence without a full stop."""

    __test__ = False

    deleted: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.deleted, *self.weakened)


def compare_tests(old: Mapping[str, str], new: Mapping[str, str]) -> TestComparison:
    """Compare the changed files of two trees, by path. A file that one of them lacks is deleted or new. A test that was
    renamed or moved with its body is treated as the same test."""
    before = {path: read_tests(path, text) for path, text in old.items() if _may_hold_tests(path)}
    after = {path: read_tests(path, text) for path, text in new.items() if _may_hold_tests(path)}
    bodies = {test.body: test for tests in after.values() for test in tests.values()}
    deleted: list[str] = []
    weakened: list[str] = []
    for path, tests in before.items():
        for name, test in tests.items():
            now = after.get(path, {}).get(name) or bodies.get(test.body)
            if now is None:
                deleted.append(f"{path}: {name} was deleted")
            elif reason := _weaker(test, now):
                weakened.append(f"{path}: {name} {reason}")
    weakened += _new_skips(before, after)
    weakened += _changed_settings(old, new)
    return TestComparison(deleted=tuple(deleted), weakened=tuple(weakened))


def _may_hold_tests(path: str) -> bool:
    return is_test_file(path) or path.endswith(".rs")


def _weaker(before: FoundTest, after: FoundTest) -> str:
    """The end of a sentence about how a test was weakened; empty if it was not."""
    if after.is_skipped and not before.is_skipped:
        return "is skipped now"
    if after.asserts < before.asserts:
        return f"has {after.asserts} assertions instead of {before.asserts}"
    if after.exact < before.exact:
        return f"compares {after.exact} values exactly instead of {before.exact}"
    if after.cases < before.cases:
        return f"has {after.cases} parameter sets instead of {before.cases}"
    return ""


def _new_skips(
    before: Mapping[str, Mapping[str, FoundTest]], after: Mapping[str, Mapping[str, FoundTest]]
) -> list[str]:
    """New tests that prove nothing, because they are skipped or assert nothing."""
    known = {test.body for tests in before.values() for test in tests.values()}
    return [
        f"{path}: the new test {name} {'is skipped' if test.is_skipped else 'asserts nothing'}"
        for path, tests in after.items()
        for name, test in tests.items()
        if name not in before.get(path, {}) and test.body not in known and (test.is_skipped or not test.asserts)
    ]


# -- settings of checks ------------------------------------------------------------------------------------------


def _changed_settings(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Changed settings that influence the findings of checks."""
    for path in sorted({*old, *new}):
        before, after = old.get(path, ""), new.get(path, "")
        name = path.rpartition("/")[2]
        if name == "pyproject.toml":
            if _tables(before) != _tables(after):
                yield f"{path}: the settings of checks were changed"
        elif name == "package.json":
            if _scripts(before) != _scripts(after):
                yield f"{path}: the scripts of checks were changed"
        elif name == "conftest.py":
            if added := sorted(_hooks(after) - _hooks(before)):
                yield f"{path}: {added[0]} was added, which decides what tests count"
        elif _RUNNERS.fullmatch(path) and path not in old:
            yield f"{path}: it would be loaded in place of a tool that checks the work"
        elif _SETTINGS.fullmatch(path) and _sections(name, before) != _sections(name, after):
            yield f"{path}: the settings of checks were changed"


def _tables(text: str) -> dict[str, Any]:
    try:
        tools = tomllib.loads(text).get("tool", {}) if text else {}
    except (tomllib.TOMLDecodeError, RecursionError):
        return {"text": text}
    return {name: value for name, value in tools.items() if name in _SECTIONS} if isinstance(tools, dict) else {}


def _scripts(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {"text": text}
    scripts = parsed.get("scripts") if isinstance(parsed, dict) else None
    wanted = re.compile(r"(?:pre|post)?(?:test|lint|check|typecheck|format)(?:[:-].*)?")
    own = {name: value for name, value in (scripts or {}).items() if wanted.fullmatch(name)}
    own |= {name: parsed[name] for name in ("jest", "eslintConfig", "mocha", "vitest") if name in parsed}
    return own


def _sections(name: str, text: str) -> Any:
    """The sections about checks of setup.cfg and tox.ini; the text of other files."""
    if name not in ("setup.cfg", "tox.ini"):
        return text.strip()
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return text
    names = [each for each in parser.sections() if re.split(r"[:-]", each.removeprefix("tool:"))[0] in _SECTIONS]
    return {each: dict(parser.items(each)) for each in names}


def _hooks(text: str) -> set[str]:
    """The hooks that a conftest.py defines and that influence which tests run and pass."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = {getattr(node, "name", "") for node in ast.walk(tree)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"skip", "xfail"}
    return names & _HOOKS
