"""A bounded walk over a tree, with the real paths of folders and files.

It follows links only in folders of definitions, never out of the root, and never to files that usually hold secrets. It
reports the parts that it skips.
"""

from __future__ import annotations

import os
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from clew.errors import FormatError
from clew.skills.checks.problems import Problem, Severity
from clew.skills.formats.safe_open import Root
from clew.tools.files.folder import is_secret_path
from clew.trust import printable

MAX_ENTRIES = 200_000
MAX_DEPTH = 40
MAX_HOPS = 3
"""The limit for a chain of links."""
SKILL_FILES = ("SKILL.md", "skill.md")
RULE_FILES = ("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md")

HOMES = (".clew", ".agents", ".claude", ".opencode", ".codex")
"""The folders of programs that define agents and skills, Clew's first."""
_DEFINITIONS = frozenset((*HOMES, "skill", "skills"))
"""Folders of definitions, in which the walk follows links."""
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
"""Folders that version control may write at any time, and that no skill uses."""
_NEVER = _VERSION_CONTROL | {"__pycache__"}
_IGNORED = _NEVER | frozenset(
    {
        *(".cache", ".direnv", ".gradle", ".mypy_cache", ".next", ".nox", ".nuxt", ".pnpm-store", ".pytest_cache"),
        *(".ruff_cache", ".terraform", ".tox", ".venv", ".worktrees", ".yarn", "bower_components", "node_modules"),
        *("site-packages", "venv"),
    }
)
_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""Files that mark a folder of any name as a virtual environment or a cache."""
_LEADS_TO_SECRETS = "leads to a file or folder that usually holds secrets"
_MISLEADING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Folder(msgspec.Struct):
    """One folder: its path, its real path, and its content by name.

    `files` are regular files with their real paths, `odd` are pipes, devices and the like, and `refused` are links that
    were not followed, with their targets. Names may hold stray bytes; `show` makes them printable.
    """

    path: str
    real: str
    files: dict[str, str] = {}
    folders: list[str] = []
    odd: list[str] = []
    refused: dict[str, str] = {}

    def at(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


class FileLink(msgspec.Struct, frozen=True):
    """A followed link: its path, and the real path of its target."""

    path: str
    target: str


class TreeWalk(msgspec.Struct):
    """All folders by the path on which the walk reached them, parents first. `left_out` are the skipped folders."""

    folders: dict[str, Folder] = {}
    links: list[FileLink] = []
    left_out: list[str] = []
    problems: list[Problem] = []

    def below(self, path: str) -> Iterator[Folder]:
        """Yield a folder and all folders below it."""
        waiting = [path]
        while waiting:
            folder = self.folders.get(waiting.pop())
            if folder is not None:
                yield folder
                waiting += [folder.at(name) for name in reversed(folder.folders)]

    def find(self, path: str) -> str | None:
        """Return the real path of the file at `path`, or None."""
        above, _, name = path.rpartition("/")
        folder = self.folders.get(above)
        return folder.files.get(name) if folder is not None else None


class _Step(msgspec.Struct, frozen=True):
    """A folder to read. `came` are the real folders whose links led to it."""

    path: str
    real: str
    depth: int
    is_kept: bool = False
    came: tuple[str, ...] = ()


def walk(root: Root, places: Sequence[str] = (), *, is_kept: bool = False) -> TreeWalk:
    """Read the tree below `root`, or only its folders `places`. Never raises for broken entries.

    With `is_kept`, the places count as folders of definitions, so the walk follows links in them.
    """
    return _Walker(root, is_kept).run(places)


def show(path: str) -> str:
    """Make a path printable: replace control characters and invalid bytes."""
    return path if is_plain(path) else printable(path.encode("utf-8", "backslashreplace").decode())


def is_left_out(path: str) -> bool:
    """Whether a path leads through a folder that the walk always skips, such as `.git`."""
    above = ""
    for name in path.split("/")[:-1]:
        if name in _NEVER or _is_worktrees(above, name):
            return True
        above = name
    return False


def is_plain(name: str) -> bool:
    """Whether a name has no control characters, no direction marks and no invalid bytes."""
    if name.isprintable():
        return True
    return all(unicodedata.category(each) not in {"Cc", "Cs", "Zl", "Zp"} and each not in _MISLEADING for each in name)


class _Walker:
    def __init__(self, root: Root, is_kept: bool = False) -> None:
        self._root = root
        self._is_kept = is_kept
        self._walk = TreeWalk(folders={}, links=[], left_out=[], problems=[])
        self._room = MAX_ENTRIES
        self._waiting: deque[_Step] = deque()

    def run(self, places: Sequence[str]) -> TreeWalk:
        for place in places or ("",):
            self._begin(os.path.normpath(place).replace(os.sep, "/") if place else "")
        while self._waiting and self._room > 0:
            self._read(self._waiting.popleft())
        self._walk.left_out += [step.path for step in self._waiting]
        if self._room < 0 or self._waiting:
            first, count = self._walk.left_out[0], len(self._walk.left_out)
            message = f"the tree has more than {MAX_ENTRIES:,} entries: {count:,} folders were left out, this one first"
            self._report(first or ".", message, hint="Name the folders to read")
        return self._walk

    def _begin(self, place: str) -> None:
        if place in ("", "."):
            self._waiting.append(_Step("", "", 0, self._is_kept))
        elif os.path.isdir(self._root.absolute(place)):
            try:
                self._waiting.append(_Step(place, self._root.resolve(place), 0, self._is_kept))
            except FormatError as error:
                self._report(place, error.reason, severity="error")

    def _read(self, step: _Step) -> None:
        try:
            with self._root.listing(step.real) as entries:
                found = self._sort(entries)
        except FormatError as error:
            self._walk.left_out.append(step.path)
            self._report(step.path or ".", f"the folder {error.reason}")
            return
        if self._room < 0:
            self._walk.left_out.insert(0, step.path)
        names = {each[0] for each in found}
        if step.path and not _MARKS.isdisjoint(names) and not step.is_kept:
            return
        is_kept = step.is_kept or bool(step.path and not names.isdisjoint(SKILL_FILES))
        folder = Folder(path=step.path, real=step.real, files={}, folders=[], odd=[], refused={})
        self._walk.folders[step.path] = folder
        for name, kind in found:
            self._enter(name, kind, folder, step, is_kept)

    def _sort(self, entries: Iterator[os.DirEntry[str]]) -> list[tuple[str, str]]:
        """Return the sorted names of a folder with their kinds, up to the limit of entries."""
        found = []
        for entry in entries:
            self._room -= 1
            if self._room < 0:
                break
            found.append((entry.name, _kind_of(entry)))
        return sorted(found)

    def _enter(self, name: str, kind: str, folder: Folder, step: _Step, is_kept: bool) -> None:
        real = f"{folder.real}/{name}" if folder.real else name
        if step.came and is_secret_path(real):
            self._refuse(folder, name, _LEADS_TO_SECRETS, severity="error")
        elif kind == "file":
            folder.files[name] = real
        elif kind == "folder":
            # Python may run a compiled file instead of a module of the script, so it belongs to the skill
            if name not in (_VERSION_CONTROL if is_kept else _IGNORED) and not _is_worktrees(folder.path, name):
                self._descend(name, real, folder, step, is_kept)
        elif kind == "link":
            self._follow(name, real, folder, step, is_kept)
        else:
            folder.odd.append(name)

    def _descend(self, name: str, real: str, folder: Folder, step: _Step, is_kept: bool) -> None:
        if step.depth >= MAX_DEPTH:
            self._walk.left_out.append(folder.at(name))
            self._report(folder.at(name), f"is more than {MAX_DEPTH} folders deep: Clew does not read it")
            return
        folder.folders.append(name)
        self._waiting.append(_Step(folder.at(name), real, step.depth + 1, is_kept, step.came))

    def _follow(self, name: str, real: str, folder: Folder, step: _Step, is_kept: bool) -> None:
        path = folder.at(name)
        matters = is_kept or name in SKILL_FILES or name in RULE_FILES or not _DEFINITIONS.isdisjoint(path.split("/"))
        if not matters and not os.path.isdir(self._root.absolute(real)):
            return
        try:
            target = self._root.resolve(real)
            if is_secret_path(target):
                raise FormatError(path, _LEADS_TO_SECRETS)
            kind = _kind_at(self._root.absolute(target))
            if matters and kind == "folder":
                self._check_link(path, target, folder, step)
        except FormatError as error:
            self._refuse(folder, name, error.reason, severity="error" if matters else "warning")
            return
        if not matters:
            return
        if kind == "odd":
            self._refuse(folder, name, "does not lead to a regular file", severity="error")
            return
        self._walk.links.append(FileLink(path, target))
        if kind == "file":
            folder.files[name] = target
        else:
            onward = _Step(path, target, step.depth + 1, is_kept, (*step.came, folder.real))
            folder.folders.append(name)
            self._waiting.append(onward)

    def _check_link(self, path: str, target: str, folder: Folder, step: _Step) -> None:
        """Raise FormatError for a circular link, or a chain of too many links."""
        if any(not target or f"{each}/".startswith(f"{target}/") for each in (*step.came, folder.real)):
            raise FormatError(path, "is circular: it leads to a folder that contains it")
        if len(step.came) >= MAX_HOPS or step.depth >= MAX_DEPTH:
            raise FormatError(path, f"ends a chain of more than {MAX_HOPS} links")

    def _refuse(self, folder: Folder, name: str, reason: str, *, severity: Severity) -> None:
        folder.refused[name] = self._root.link_target(f"{folder.real}/{name}" if folder.real else name)
        hint = "Copy the files there, or link to a path below the root"
        self._report(folder.at(name), f"the link {reason}: Clew does not follow it", severity=severity, hint=hint)

    def _report(self, path: str, message: str, *, severity: Severity = "warning", hint: str = "") -> None:
        problem = Problem(kind="parse", severity=severity, path=show(path), message=message, hint=hint)
        self._walk.problems.append(problem)


def _is_worktrees(above: str, name: str) -> bool:
    """Whether a folder holds work trees of an agent: complete copies of the tree, which do not belong to it."""
    return name == "worktrees" and above.rpartition("/")[2].startswith(".")


def _kind_of(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "odd"
    except OSError:
        return "odd"


def _kind_at(absolute: str) -> str:
    if os.path.isdir(absolute):
        return "folder"
    return "file" if os.path.isfile(absolute) else "odd"
