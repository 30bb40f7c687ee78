"""What git ignores: the `.gitignore` files from the top of the repository downward, and `.git/info/exclude`.

The deepest file that says anything about a path decides. Rules of the user's own account have no part in it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

MAX_RULES = 1_000_000
"""Of a longer file of rules, only so many bytes are read."""

IGNORE_FILE = ".gitignore"


class _Rule(msgspec.Struct, frozen=True):
    """One line: whether it ignores or takes back, and what."""

    pattern: GitIgnoreSpecPattern
    folders_only: bool

    def decides(self, path: str, *, is_folder: bool) -> bool:
        """Whether it is about this very path, and not only about a folder above it."""
        if self.folders_only and not is_folder:
            return False
        found = self.pattern.match_file(path)
        # The pattern's one group is the slash behind a folder above.
        return found is not None and found.match.lastindex is None


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
                    return bool(rule.pattern.include)
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
        return path.read_text(encoding="utf-8", errors="surrogateescape").partition("\n")[0]
    except (OSError, ValueError):
        return ""


def _read_rules(path: str, folder: str) -> _File | None:
    """The rules of a file; None when there is none. As in git, a link is not followed."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            text = file.read(MAX_RULES).decode("utf-8-sig", errors="surrogateescape")
    except OSError:
        return None
    return _File(folder, _parse(text))


@lru_cache(maxsize=256)
def _parse(text: str) -> Sequence[_Rule]:
    """The rules in a text, the last first; a line that is none counts for nothing, as in git."""
    rules = (_parse_line(line.removesuffix("\r")) for line in text.split("\n"))
    return tuple(rule for rule in rules if rule is not None)[::-1]


def _parse_line(line: str) -> _Rule | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # only reading local files needs it

    trimmed = line.rstrip(" ")
    if trimmed.endswith("\\") and trimmed != line:
        trimmed += " "
    try:
        pattern = GitIgnoreSpecPattern(trimmed.removesuffix("/"))
    except ValueError:
        return None
    return None if pattern.include is None else _Rule(pattern, trimmed.endswith("/"))
