"""Detects loops: turns of a run that repeat, one by one or in a cycle.

The fingerprint of a turn covers its calls, their arguments and their results. The same call with another result is
progress; the same call with the same result is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from clew.trail.model.breadcrumb import encode_canonical

REPEATS = 3
"""The number of equal cycles in a row, the first included, that counts as a loop."""
MAX_PERIOD = 4
"""The maximum length of a detected cycle, in turns."""
LOOK_BACK = REPEATS * MAX_PERIOD
"""The number of last turns that are enough to find a loop."""


class CompletedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a turn, and its result."""

    name: str
    arguments: Mapping[str, Any] = {}
    result: Any = None


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """The last `period` turns happened `repeats` times in a row."""

    period: int
    repeats: int

    @property
    def detail(self) -> str:
        what = "the same turn" if self.period == 1 else f"the same {self.period} turns"
        return f"{what} {self.repeats} times in a row, with the same results"


def fingerprint(calls: Sequence[CompletedCall], text: str = "") -> str:
    """Return the digest of a turn. The order of parallel calls, the order of keys and the spacing of text do not
    matter. Raises InvalidInput for values that JSON cannot hold."""
    made = sorted(encode_canonical([each.name, each.arguments, each.result], "turn") for each in calls)
    said = " ".join(text.split()).encode(errors="replace")
    return hashlib.blake2b(b"\x00".join((said, *made)), digest_size=16).hexdigest()


def find_loop(turns: Sequence[str]) -> Loop | None:
    """The loop with the shortest period at the end of these fingerprints; None if there is none."""
    for period in range(1, MAX_PERIOD + 1):
        repeats = _count_repeats(turns, period)
        if repeats >= REPEATS:
            return Loop(period=period, repeats=repeats)
    return None


def _count_repeats(turns: Sequence[str], period: int) -> int:
    """How many times in a row the last `period` turns occur at the end, including the last occurrence."""
    last, repeats = turns[-period:], 0
    end = len(turns)
    while end >= period and turns[end - period : end] == last:
        repeats += 1
        end -= period
    return repeats
