"""Calls from the writing thread to event loops, one wake-up of a loop for all calls of a transaction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

Call = Callable[[], object]


class LoopCalls:
    """Calls that the writing thread schedules on event loops. Sent together: a loop is woken once a transaction."""

    def __init__(self) -> None:
        self._by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}

    def add(self, loop: asyncio.AbstractEventLoop, call: Call) -> None:
        self._by_loop.setdefault(loop, []).append(call)

    def send(self) -> None:
        by_loop, self._by_loop = self._by_loop, {}
        for loop, calls in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed while we wrote
                loop.call_soon_threadsafe(_make_all, calls)


def _make_all(calls: list[Call]) -> None:
    for call in calls:
        call()
