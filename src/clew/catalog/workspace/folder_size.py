"""A quick check whether a folder holds more files than Clew reads without asking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN, IgnoreRules, rules_above

_LEFT_OUT = NEVER_READ | TOOLS_OWN


def has_more_files(root: Path, most: int) -> bool:
    """Whether more than `most` files below a folder could be read. Stops as soon as the answer is known, and follows no
    links. A fast first walk counts all files. The first walk ignores git's rules; a second walk applies them only if
    the first one finds too many files.
    """
    real = Path(os.path.realpath(root))
    return _exceeds(_walk(str(real), None), most) and _exceeds(_walk(str(real), rules_above(real)), most)


def _exceeds(files: Iterator[str], most: int) -> bool:
    return next(islice(files, most, None), None) is not None


def _walk(root: str, above: IgnoreRules | None) -> Iterator[str]:
    """The files below a folder, without those that the rules ignore."""
    pending = [(root, above)]
    while pending:
        folder, outer = pending.pop()
        rules = outer.entering(folder) if outer is not None else None
        for name, path, is_folder in _entries(folder):
            if name in _LEFT_OUT or (rules is not None and rules.ignores(path, is_folder=is_folder)):
                continue
            if is_folder:
                pending.append((path, rules))
            else:
                yield path


def _entries(folder: str) -> list[tuple[str, str, bool]]:
    try:
        with os.scandir(folder) as found:
            return [(each.name, each.path, each.is_dir(follow_symlinks=False)) for each in found]
    except OSError:
        return []
