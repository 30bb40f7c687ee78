"""Lints a tree of definitions, and prints problems as compilers do: place, line, suggestion, allowed values."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from clew.errors import FormatError
from clew.skills.checks.problems import Problem
from clew.skills.definitions.manifest_builder import build
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.files.document import MAX_BYTES
from clew.skills.formats.collection import Collected
from clew.skills.formats.safe_open import Root
from clew.tools.tool import Tool
from clew.trust import printable

_MAX_ALLOWED = 12
_MAX_WIDTH = 160


def lint(
    root: Path, tools: Iterable[Tool] = (), found: Collected | None = None, *, memory: BuildMemory | None = None
) -> list[Problem]:
    """Return all problems of a tree, sorted by path, line and column."""
    return list(build(root, tools, found, memory=memory).problems)


def render_problem(problem: Problem, root: Path | None = None) -> str:
    """Format a problem as several lines without control characters. With a `root`, include the line of the file."""
    place = ":".join(str(each) for each in (problem.path, problem.line, problem.column) if each)
    said = [f"{place}: {problem.severity}: {problem.message}" if place else f"{problem.severity}: {problem.message}"]
    if root is not None and problem.path and problem.line:
        said += _quoted(problem, root)
    if problem.nearest:
        said.append(f"  did you mean: {problem.nearest}")
    if problem.allowed:
        rest = len(problem.allowed) - _MAX_ALLOWED
        more = f" … and {rest:,} more" if rest > 0 else ""
        said.append(f"  allowed: {', '.join(problem.allowed[:_MAX_ALLOWED])}{more}")
    if problem.hint:
        said.append(f"  {problem.hint}")
    if problem.fix is not None:
        said.append(f"  can be fixed: {problem.fix.says}" if problem.fix.says else "  can be fixed")
    return "\n".join(printable(each) for each in said)


def _quoted(problem: Problem, root: Path) -> list[str]:
    """Return the line of the file, with a marker below the faulty part."""
    try:
        text = Root(os.fspath(root)).load(problem.path, MAX_BYTES).decode("utf-8-sig", "replace")
    except FormatError:
        return []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if problem.line > len(lines):
        return []
    number = f"{problem.line:>5}"
    line = lines[problem.line - 1].replace("\t", " ")
    shown = [f"{number} | {line[:_MAX_WIDTH]}"]
    if problem.column and problem.column <= _MAX_WIDTH and line.isprintable():
        width = max(1, min(problem.width, _MAX_WIDTH - problem.column))
        shown.append(f"{'':>5} | {' ' * (problem.column - 1)}{'^' * width}")
    return shown
