"""Path globs: `*` and `?` match within a folder, `**` also matches across folders, and `**/` also matches the empty
string. All possible matches are tracked at once as the bits of one integer, so no glob can cause exponential
backtracking.
"""

from __future__ import annotations

import re
from functools import lru_cache

from clew.lazy_pattern import lazy_pattern

MAX_PATH = 4_096
"""A longer path matches nothing."""

_PIECE = lazy_pattern(r"\*\*/|\*\*|\*|\?|.", re.S)


@lru_cache(maxsize=256)
def parse_glob(glob: str) -> tuple[str, ...]:
    """The pieces of a glob. Repeated equal wildcards are merged into one."""
    pieces: list[str] = []
    for piece in _PIECE.findall(glob):
        if not (pieces and piece in ("*", "**", "**/") and piece == pieces[-1]):
            pieces.append(piece)
    return tuple(pieces)


def glob_matches(glob: str, path: str) -> bool:
    """Whether the whole path matches."""
    size = len(path)
    if size > MAX_PATH:
        return False
    places: dict[str, int] = {}
    for at, letter in enumerate(path):
        places[letter] = places.get(letter, 0) | 1 << at
    slashes = places.get("/", 0)
    everywhere = (1 << size) - 1
    reached = 1  # bit i: the pieces so far match the first i letters
    for piece in parse_glob(glob):
        if not reached:
            return False
        match piece:
            case "**":
                reached = (everywhere << 1 | 1) & -(reached & -reached)
            case "**/":
                reached |= (slashes & -(reached & -reached)) << 1
            case "*":
                reached = _spread(reached, everywhere & ~slashes, size)
            case "?":
                reached = (reached & everywhere & ~slashes) << 1
            case _:
                reached = (reached & places.get(piece, 0)) << 1
    return bool(reached >> size & 1)


def _spread(reached: int, passable: int, size: int) -> int:
    """The positions that can be reached from `reached` over any number of passable letters. The step doubles each
    time."""
    step = 1
    while step <= size and passable:
        reached |= (reached & passable) << step
        passable &= passable >> step
        step *= 2
    return reached
