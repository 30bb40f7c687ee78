"""Suggests the name that the user probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from clew.lazy_pattern import lazy_pattern

MAX_COMPARED = 2_000
MAX_LENGTH = 80
_BETWEEN = lazy_pattern(r"[\s._-]+")


def nearest(given: str, known: Iterable[str]) -> str:
    """The name in `known` that is spelled most like `given`, or an empty text; the result is deterministic. Case and
    separators do not count: `Web_Search` is `webSearch`."""
    names = sorted(set(known))[:MAX_COMPARED]
    bare = _bare(given[:MAX_LENGTH])
    folded = {_bare(name): name for name in reversed(names)}
    if bare in folded:
        return folded[bare]
    close = difflib.get_close_matches(bare, folded, 1)
    return folded[close[0]] if close else ""


def _bare(name: str) -> str:
    return _BETWEEN.sub("", name).casefold()
