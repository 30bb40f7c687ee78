"""Which of two versions is later: numbers by their parts, and what comes before a release before it."""

from __future__ import annotations

import re

VersionKey = tuple[tuple[int, ...], int, int]

_VERSION = re.compile(
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){0,7})"
    r"(?:[-._]?(?P<tag>dev|a|alpha|b|beta|c|rc|pre|preview|post|rev|r)[-._]?(?P<number>\d{0,9})|-(?P<bare>\d{1,9}))?",
    re.IGNORECASE,
)
_RANKS = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
_AFTER = 1
_FINAL = 0


def version_key(text: str) -> VersionKey | None:
    """A version as something that can be compared; None for what is no version, such as a branch. `3.8` and `3.8.0` are
    the same one."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if found["bare"]:
        return tuple(release), _RANKS["pre"], int(found["bare"])
    if not found["tag"]:
        return tuple(release), _FINAL, 0
    return tuple(release), _RANKS.get(found["tag"].lower(), _AFTER), int(found["number"] or 0)
