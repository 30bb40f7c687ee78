"""What git ignores: the `.gitignore` files from the top of the repository downward, and `.git/info/exclude`.

The deepest file that says anything about a path decides. Rules of the user's own account have no part in it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import msgspec

from clew.tools.search.backtracking import without_backtracking

MAX_RULES = 1_000_000
"""Of a longer file of rules, only so many bytes are read."""

MAX_LINES = 10_000
"""Of a file with more lines, only the first so many count."""

MAX_LINE = 4_096
"""A longer rule ignores nothing: no path is as long."""

IGNORE_FILE = ".gitignore"

NEVER_READ = frozenset((".git", ".clew"))
TOOLS_OWN = frozenset(
    ("node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache")
)
"""Folders that tools fill, and that nobody means by their project."""


class _Rule(msgspec.Struct, frozen=True):
    """One line: whether it ignores or takes back, and what."""

    pattern: re.Pattern[str]
    ignores: bool
    folders_only: bool

    def decides(self, path: str, *, is_folder: bool) -> bool:
        """Whether it is about this very path, and not only about a folder above it."""
        return (is_folder or not self.folders_only) and self.pattern.match(path) is not None


class _File(msgspec.Struct, frozen=True):
    """The rules of one file, for the paths below `folder`, with the last first."""

    folder: str
    rules: Sequence[_Rule]


class Rules:
    """The rules that hold in one folder. Paths are absolute."""

    def __init__(self, files: Sequence[_File] = ()) -> None:
        self._files = tuple(files)

    def entering(self, folder: str) -> Rules:
        """The rules below `folder`, with those that it brings itself."""
        found = _read_rules(os.path.join(folder, IGNORE_FILE), folder)
        return Rules((*self._files, found)) if found else self

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path in the folder is ignored; none of the folders above it is."""
        for file in reversed(self._files):
            relative = path[len(file.folder) :].lstrip(os.sep).replace(os.sep, "/")
            for rule in file.rules:
                if rule.decides(relative, is_folder=is_folder):
                    return rule.ignores
        return False


def rules_above(root: Path) -> Rules:
    """The rules that a folder inherits from the repository around it; none when it is itself ignored there."""
    top = next((place for place in (root, *root.parents) if os.path.lexists(place / ".git")), None)
    if top is None:
        return Rules()
    exclude = _read_rules(str(_git_folder(top) / "info" / "exclude"), str(top))
    rules = Rules((exclude,) if exclude else ())
    between = [root, *takewhile(lambda place: place != top, root.parents)] if root != top else []
    above = top
    for place in reversed(between):
        rules = rules.entering(str(above))
        if rules.ignores(str(place), is_folder=True):
            return Rules()
        above = place
    return rules


def _git_folder(top: Path) -> Path:
    """What the work trees of a repository share; in a work tree and in a submodule, a file leads there."""
    git = top / ".git"
    if git.is_dir():
        return git
    lead = _first_line(git).removeprefix("gitdir:").strip()
    private = top / lead
    shared = _first_line(private / "commondir")
    return private / shared if shared else private


def _first_line(path: Path) -> str:
    try:
        return _read_file(path, MAX_LINE).decode("utf-8", errors="surrogateescape").partition("\n")[0].rstrip("\r")
    except (OSError, ValueError):
        return ""


def _read_rules(path: str, folder: str) -> _File | None:
    """The rules of a file; None when there is none. As in git, a link is not followed."""
    try:
        content = _read_file(path, MAX_RULES, getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    return _File(folder, _parse(content.decode("utf-8-sig", errors="surrogateescape")))


def _read_file(path: str | Path, limit: int, flags: int = 0) -> bytes:
    """The beginning of a regular file. Raises OSError for anything else, without waiting for a writer of a pipe."""
    flags |= os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return file.read(limit)


@lru_cache(maxsize=256)
def _parse(text: str) -> Sequence[_Rule]:
    """The rules in a text, the last first; a line that is none counts for nothing, as in git."""
    rules = (_parse_line(line.removesuffix("\r")) for line in text.split("\n", MAX_LINES)[:MAX_LINES])
    return tuple(rule for rule in rules if rule is not None)[::-1]


def _parse_line(line: str) -> _Rule | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # only reading local files needs it

    trimmed = line.rstrip(" ")
    if trimmed.endswith("\\") and trimmed != line:
        trimmed += " "
    if len(trimmed) > MAX_LINE:
        return None
    try:
        expression, ignores = GitIgnoreSpecPattern.pattern_to_regex(trimmed.removesuffix("/"))
        pattern = without_backtracking(expression) if expression else None
    except (ValueError, re.error):
        return None
    return _Rule(pattern, bool(ignores), trimmed.endswith("/")) if pattern else None
