"""Clocks and what is made of their readings."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")

QUIET = 0.1
"""The share of one core below which this process counts as idle."""


def tell(text: str) -> None:
    """A line about the progress, beside the results."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least this share of the samples does not exceed."""
    return sorted(samples)[max(0, math.ceil(round(share * len(samples), 6)) - 1)]


class Rounds:
    """Samples in seconds, kept by round. The shown value is the median over the rounds."""

    def __init__(self) -> None:
        self._rounds: list[list[float]] = []

    def begin(self) -> None:
        self._rounds.append([])

    def add(self, seconds: float) -> None:
        self._rounds[-1].append(seconds)

    def milliseconds(self, share: float) -> float:
        return 1000 * median(percentile(samples, share) for samples in self._rounds if samples)

    def each_round(self, share: float) -> list[float]:
        """A percentile of each round, in seconds."""
        return [percentile(samples, share) for samples in self._rounds if samples]

    def last(self, share: float) -> float:
        """A percentile of the round under way, in seconds."""
        return percentile(self._rounds[-1], share)

    def spread(self) -> dict[str, float]:
        return {"p50 ms": self.milliseconds(0.5), "p95 ms": self.milliseconds(0.95)}


async def timed(work: Awaitable[T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = await work
    return time.perf_counter() - began, result


def rotate(contenders: Sequence[T], turn: int) -> Iterator[T]:
    """All contenders; each round begins with another one, so that none always pays for a cold disk."""
    first = turn % len(contenders)
    yield from (*contenders[first:], *contenders[:first])


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios within the rounds. A temporarily slow machine hardly affects it."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


async def settle(longest: float = 120.0) -> None:
    """Wait until the background threads of this process are done, such as those that build an index."""
    deadline = time.monotonic() + longest
    while time.monotonic() < deadline:
        before = time.process_time()
        await asyncio.sleep(0.25)
        if time.process_time() - before < QUIET * 0.25:
            return
