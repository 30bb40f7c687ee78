"""Calls on event loops from another thread. They are sent in batches, so that a loop is woken once per transaction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

Call = Callable[[], object]


class LoopCalls:
    """Calls that a writing thread schedules on event loops."""

    def __init__(self) -> None:
        self._by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}

    def add(self, loop: asyncio.AbstractEventLoop, call: Call) -> None:
        self._by_loop.setdefault(loop, []).append(call)

    def settle(self, done: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
        """Schedule setting the outcome of a future, unless it is done by then."""
        self.add(done.get_loop(), partial(_settle, done, value, failure))

    def send(self) -> None:
        by_loop, self._by_loop = self._by_loop, {}
        for loop, calls in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed while we wrote
                loop.call_soon_threadsafe(_make_all, calls)


def _make_all(calls: list[Call]) -> None:
    for call in calls:
        call()


def _settle(done: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(value)
    else:
        done.set_exception(failure)
