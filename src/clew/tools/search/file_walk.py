"""Walks over the files of a working folder for searches, without ignored files, denied files and links."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from clew.errors import InvalidInput
from clew.files import OPEN_FOLDER, STEPWISE, open_inside
from clew.tools.files.folder import WorkingFolder
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN, IgnoreRules, rules_above
from clew.trail.model.globs import glob_matches
from clew.trust import printable

MAX_FILES = 500_000
"""The limit for files of one walk."""
MAX_GLOBS = 64

_BRACES = re.compile(r"\{([^{}]*)\}")


Denied = Callable[[str], bool]
"""Whether a search may not use a path, relative to the working folder."""


def walk(folder: WorkingFolder, base: str = "", is_denied: Denied = lambda path: False) -> Iterator[str]:
    """Yield the real paths of the files below `base`, a real folder, in any order; if `base` is a file, yield it.
    Raises InvalidInput if it is neither."""
    if not folder.is_folder(base):
        with folder.opened(base):
            yield from () if _is_below_denied(base, is_denied) else (base,)
        return
    if _is_below_denied(base, is_denied):
        return
    pending = [(base, _rules_at(folder, base))]
    left = MAX_FILES
    while pending and left > 0:
        place, above = pending.pop()
        rules = above.entering(os.path.join(folder.root, place))
        for name, is_folder in _entries(folder, place):
            path = f"{place}/{name}" if place else name
            if not _is_chosen(folder, path, name, rules, is_folder=is_folder) or is_denied(path):
                continue
            if is_folder:
                pending.append((path, rules))
            else:
                left -= 1
                yield path


def expand_globs(pattern: str) -> Sequence[str]:
    """Expand the braces of a pattern to globs. A glob without a slash matches names in any folder. Raises InvalidInput
    for too many braces."""
    globs = [pattern]
    while any(_BRACES.search(each) for each in globs):
        globs = [each for glob in globs for each in _expand(glob)]
        if len(globs) > MAX_GLOBS:
            raise InvalidInput("pattern", f"expands to more than {MAX_GLOBS} globs")
    return [each if "/" in each else f"**/{each}" for each in (glob.removeprefix("./") for glob in globs)]


def matches_any(globs: Sequence[str], path: str) -> bool:
    return any(glob_matches(glob, path) for glob in globs)


def shown_path(path: str) -> str:
    """Make a path printable on one line."""
    return printable(path, 1_000).encode(errors="backslashreplace").decode()


@lru_cache(maxsize=1_024)
def _expand(glob: str) -> tuple[str, ...]:
    found = _BRACES.search(glob)
    if found is None:
        return (glob,)
    before, after = glob[: found.start()], glob[found.end() :]
    return tuple(f"{before}{choice}{after}" for choice in found[1].split(","))


def _is_below_denied(base: str, is_denied: Denied) -> bool:
    parts = base.split("/") if base else []
    return any(is_denied("/".join(parts[: depth + 1])) for depth in range(len(parts)))


def _rules_at(folder: WorkingFolder, base: str) -> IgnoreRules:
    """Return the ignore rules inside a folder that the caller named, even if they would ignore the folder itself."""
    rules = rules_above(Path(folder.root))
    parts = base.split("/") if base else []
    for depth in range(len(parts)):
        rules = rules.entering(os.path.join(folder.root, *parts[:depth]))
    return rules


def _entries(folder: WorkingFolder, place: str) -> list[tuple[str, bool]]:
    """Return the names of regular files and folders; empty if the folder cannot be read."""
    try:
        opened = open_inside(folder.root, place, OPEN_FOLDER) if STEPWISE else None
    except OSError:
        return []
    try:
        with os.scandir(opened if opened is not None else os.path.join(folder.root, place)) as entries:
            return [
                (each.name, each.is_dir(follow_symlinks=False))
                for each in entries
                if each.is_dir(follow_symlinks=False) or each.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []
    finally:
        if opened is not None:
            os.close(opened)


def _is_chosen(folder: WorkingFolder, path: str, name: str, rules: IgnoreRules, *, is_folder: bool) -> bool:
    if name in NEVER_READ or (is_folder and name in TOOLS_OWN):
        return False
    return not rules.ignores(os.path.join(folder.root, path), is_folder=is_folder) and not folder.is_denied(path)
