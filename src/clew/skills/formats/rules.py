"""Imports of a CLAUDE.md: `@path` outside of code, relative to its file."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.problems import Problem
from clew.skills.manifest import SkillLink
from clew.trust import printable

MAX_IMPORTS = 200
_IMPORT = lazy_pattern(r"(?:^|(?<=[\s(]))@((?:\\ |[^\s`'\"<>()\[\]])+)")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
_TICKS = lazy_pattern(r"`+")


def read_imports(
    text: str, path: str, find: Callable[[str], str | None]
) -> tuple[tuple[SkillLink, ...], tuple[Problem, ...]]:
    """Return the files that a rule file imports, relative to the root and without duplicates, and the problems.

    `find` resolves a path below the root. Text that names no file is not an import. An import that leads out of the
    root is a problem, and Clew does not read it.
    """
    found: dict[str, SkillLink] = {}
    problems: list[Problem] = []
    for line, written in _imports(text):
        target = resolve_beside(path, written)
        if target is None:
            problems.append(_refused(path, line, written))
        elif (real := find(target)) is not None:
            found.setdefault(real, SkillLink(text=written, path=real, line=line))
        if len(found) + len(problems) >= MAX_IMPORTS:
            break
    return tuple(found.values()), tuple(problems)


def resolve_beside(path: str, written: str) -> str | None:
    """Resolve a relative path in the file `path` below the root; None if it leads out of the root."""
    if written.startswith(("/", "~")) or "\\" in written:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), written))
    return None if target == ".." or target.startswith("../") else target


def _imports(text: str) -> list[tuple[int, str]]:
    found = []
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            plain = _without_code(line)
            found += [(number, each.replace("\\ ", " ").rstrip(".,;:!?")) for each in _IMPORT.findall(plain)]
    return [(number, each) for number, each in found if each]


def _without_code(line: str) -> str:
    """Remove the code spans of a line, in linear time."""
    runs = list(_TICKS.finditer(line))
    closing: dict[int, int] = {}
    last: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        length = len(runs[at][0])
        if length in last:
            closing[at] = last[length]
        last[length] = at
    parts, done, at = [], 0, 0
    while at < len(runs):
        if at in closing:
            parts.append(line[done : runs[at].start()])
            at = closing[at]
            done = runs[at].end()
        at += 1
    return "".join([*parts, line[done:]])


def _refused(path: str, line: int, written: str) -> Problem:
    return Problem(
        kind="parse",
        severity="warning",
        path=path,
        line=line,
        message=f"the import @{printable(written, 200)} leads out of the root: Clew does not read it",
        hint="Import files below the root",
    )
