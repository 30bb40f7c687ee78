"""The paths that git ignores: by `.gitignore` files from the top of the repository down, and `.git/info/exclude`.

The deepest file with a rule about a path decides. Global rules of the user's account do not count. Limits keep a
hostile `.gitignore` from slowing every command down: rules beyond them are not applied, with a warning.
"""

from __future__ import annotations

import codecs
import logging
import os
import re
import stat
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import msgspec

from clew.tools.search.wildmatch import SPECIAL, translate

MAX_BYTES = 200_000
MAX_LINES = 2_000
"""Limits of one file. The rest of a longer file is not read."""

MAX_LINE = 4_096
MAX_STARS = 32
"""A longer rule, or one with more stars, ignores nothing."""

MAX_RULES = 5_000
"""Rules of all files together that one walk applies."""

IGNORE_FILE = ".gitignore"

NEVER_READ = frozenset((".git", ".clew"))
TOOLS_OWN = frozenset(
    ("node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache")
)
"""Folders that tools fill. They are not part of a project's own files."""

_log = logging.getLogger(__name__)


class _IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a file. A line that starts with `!` cancels an earlier rule. A rule has a pattern, or a `text` that
    has no wildcards. It is compared to a path, or only to its last name if the rule is `of_name`."""

    ignores: bool
    folders_only: bool
    text: str = ""
    of_name: bool = False
    pattern: re.Pattern[str] | None = None

    def decides(self, path: str, *, is_folder: bool) -> bool:
        """Whether the rule matches this path itself, rather than a folder above it."""
        if self.folders_only and not is_folder:
            return False
        compared = path.rpartition("/")[2] if self.of_name else path
        return self.text == compared if self.pattern is None else self.pattern.match(compared) is not None


class _IgnoreFile:
    """The rules of one file, for the paths below `folder`, with the last first."""

    def __init__(self, folder: str, rules: Sequence[_IgnoreRule]) -> None:
        self.folder = folder
        self.rules = rules
        self._plain: dict[str, list[int]] = {}
        self._patterns: list[int] = []
        for number, rule in enumerate(rules):
            if rule.pattern is None:
                self._plain.setdefault(rule.text, []).append(number)
            else:
                self._patterns.append(number)

    def find(self, path: str, *, is_folder: bool) -> _IgnoreRule | None:
        """The first rule that decides about a path below the folder. Looks plain texts up instead of comparing all."""
        near = (*self._plain.get(path, ()), *self._plain.get(path.rpartition("/")[2], ()))
        plain = min((at for at in near if self.rules[at].decides(path, is_folder=is_folder)), default=len(self.rules))
        for at in self._patterns:
            if at > plain:
                break
            if self.rules[at].decides(path, is_folder=is_folder):
                return self.rules[at]
        return self.rules[plain] if plain < len(self.rules) else None


class _Allowance:
    """The number of rules that a walk may still add."""

    def __init__(self, rules: int) -> None:
        self.left = rules

    def take(self, file: _IgnoreFile) -> _IgnoreFile | None:
        """Return the file with as many of its rules as are left, or None if it has none."""
        kept = file.rules[-self.left :] if self.left else ()
        if len(kept) < len(file.rules):
            _log.warning(
                "%s: this folder has over %s ignore rules; the others are not applied", file.folder, f"{MAX_RULES:,}"
            )
        self.left -= len(kept)
        return _IgnoreFile(file.folder, kept) if kept else None


class IgnoreRules:
    """The rules that apply in one folder. Paths are absolute."""

    def __init__(self, files: Sequence[_IgnoreFile] = (), allowance: _Allowance | None = None) -> None:
        self._allowance = allowance or _Allowance(MAX_RULES)
        self._files = tuple(files)

    def entering(self, folder: str) -> IgnoreRules:
        """Return the rules below `folder`, including those of its own `.gitignore`."""
        if self._allowance.left <= 0:
            return self
        found = _read_rules(os.path.join(folder, IGNORE_FILE), folder)
        taken = self._allowance.take(found) if found else None
        return IgnoreRules((*self._files, taken), self._allowance) if taken else self

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path in the folder is ignored. Assumes that no folder above it is ignored."""
        for file in reversed(self._files):
            relative = _one_character_a_byte(path[len(file.folder) :].lstrip(os.sep).replace(os.sep, "/"))
            rule = file.find(relative, is_folder=is_folder)
            if rule is not None:
                return rule.ignores
        return False


def _one_character_a_byte(path: str) -> str:
    """Return a path in the form that rules have, as git compares bytes."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def rules_above(root: Path) -> IgnoreRules:
    """Return the rules that a folder inherits from the repository around it, or none if that ignores the folder."""
    top = next((place for place in (root, *root.parents) if os.path.lexists(place / ".git")), None)
    if top is None:
        return IgnoreRules()
    exclude = _read_rules(str(_git_folder(top) / "info" / "exclude"), str(top))
    rules = IgnoreRules((exclude,) if exclude else ())
    between = [root, *takewhile(lambda place: place != top, root.parents)] if root != top else []
    above = top
    for place in reversed(between):
        rules = rules.entering(str(above))
        if rules.ignores(str(place), is_folder=True):
            return IgnoreRules()
        above = place
    return rules


def _git_folder(top: Path) -> Path:
    """Return the git folder that all work trees share. In a work tree or submodule, `.git` is a file that names it."""
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


def _read_rules(path: str, folder: str) -> _IgnoreFile | None:
    """Return the rules of a file, or None if it does not exist. As in git, a link is not followed."""
    try:
        content = _read_file(path, MAX_BYTES + 1, getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    if len(content) > MAX_BYTES or content.count(b"\n") > MAX_LINES:
        _log.warning("%s: only its first %s lines or %s bytes count", path, f"{MAX_LINES:,}", f"{MAX_BYTES:,}")
    return _IgnoreFile(folder, _parse(content[:MAX_BYTES].removeprefix(codecs.BOM_UTF8).decode("latin-1")))


def _read_file(path: str | Path, limit: int, flags: int = 0) -> bytes:
    """Return the first bytes of a regular file. Raises OSError for anything else, and never waits for a pipe."""
    flags |= os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return file.read(limit)


@lru_cache(maxsize=256)
def _parse(text: str) -> Sequence[_IgnoreRule]:
    """Return the rules in a text, last first. As in git, a line that is not a rule is skipped."""
    rules = (_parse_line(line.removesuffix("\r")) for line in text.split("\n", MAX_LINES)[:MAX_LINES])
    return tuple(rule for rule in rules if rule is not None)[::-1]


def _parse_line(line: str) -> _IgnoreRule | None:
    glob = _without_trailing_spaces(line)
    if not glob or glob.startswith("#") or len(glob) > MAX_LINE or glob.count("*") > MAX_STARS:
        return None
    ignores = not glob.startswith("!")
    glob = glob[not ignores :]
    folders_only = glob.endswith("/")
    glob = glob[:-1] if folders_only else glob
    of_name = "/" not in glob
    glob = glob.removeprefix("/")
    if SPECIAL.isdisjoint(glob):
        return _IgnoreRule(ignores, folders_only, glob, of_name)
    pattern = translate(glob)
    return _IgnoreRule(ignores, folders_only, "", of_name, pattern) if pattern else None


def _without_trailing_spaces(line: str) -> str:
    """Return a line without the spaces at its end, except one that a backslash escapes."""
    trimmed = line.rstrip(" ")
    backslashes = len(trimmed) - len(trimmed.rstrip("\\"))
    return trimmed + " " if backslashes % 2 and trimmed != line else trimmed
