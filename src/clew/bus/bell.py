"""Wakes the waiting consumers and readers of this process when another process commits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from clew.bus.notice import Notice

T = TypeVar("T")
IsMeant = Callable[[Notice], bool]


class Bell:
    """Interrupts waiting attempts when the bus reports a commit. An interrupted attempt restarts and reads at once. No
    attempt needs the bus: each also ends after its own time limit."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], IsMeant] = {}

    def ring(self, notice: Notice | None) -> None:
        """Wake the attempts that a notice may concern, or all of them without a notice."""
        for future, is_meant in tuple(self._waiting.items()):
            if notice is None or is_meant(notice):
                future.get_loop().call_soon_threadsafe(_wake, future)

    async def attempt(
        self,
        attempt: Callable[[float], Coroutine[Any, Any, T]],
        seconds: float,
        is_meant: IsMeant,
        give_back: Callable[[T], Coroutine[Any, Any, None]] | None = None,
    ) -> T:
        """Call `attempt(seconds)` and return its result. When the bell rings, cancel the attempt and start it again. If
        the caller is cancelled after an attempt has succeeded, pass the result to `give_back`."""
        if seconds <= 0.0:
            return await attempt(seconds)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        was_rung = False
        while True:
            with self._listening(is_meant) as rung:
                # The attempt after a ring is not interrupted, so that a flood of notices does not starve it.
                if was_rung and (found := await attempt(0.0)):
                    return found
                task = loop.create_task(attempt(max(0.0, until - loop.time())))
                try:
                    await asyncio.wait((task, rung), return_when=asyncio.FIRST_COMPLETED)
                    await _end(task)
                except asyncio.CancelledError:
                    await _end(task)
                    if give_back is not None and not task.cancelled() and task.exception() is None:
                        await give_back(task.result())
                    raise
            if not task.cancelled():
                return task.result()
            was_rung = True

    @contextlib.contextmanager
    def _listening(self, is_meant: IsMeant) -> Iterator[asyncio.Future[None]]:
        rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[rung] = is_meant
        try:
            yield rung
        finally:
            del self._waiting[rung]


async def _end(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
