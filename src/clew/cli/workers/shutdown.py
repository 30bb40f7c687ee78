"""The end of a process: the first signal drains it, a second one ends it at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType

from clew.background_tasks import log_failure

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Shutdown:
    """Runs `drain` at the first signal and then sets `stop`. A second signal sets `stop` and `force` at once. A third
    ends the process immediately."""

    def __init__(self, drain: Callable[[], Awaitable[object]]) -> None:
        self.stop, self.force = asyncio.Event(), asyncio.Event()
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to SIGINT and SIGTERM while the context is open."""
        before = {each: signal.signal(each, self._handle) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextlib.asynccontextmanager
    async def at_end_of_input(self) -> AsyncIterator[None]:
        """Begin the shutdown when standard input, a pipe from the parent process, ends."""
        reader = asyncio.StreamReader()
        transport, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        waiting = asyncio.create_task(self._follow(reader))
        waiting.add_done_callback(log_failure)
        try:
            yield
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            transport.close()

    def begin(self) -> None:
        """Drain, and then stop."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._run())
            self._draining.add_done_callback(log_failure)

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(1_024):
            pass
        self.begin()

    async def _run(self) -> None:
        try:
            await self._drain()
        finally:
            self.stop.set()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._next)

    def _next(self) -> None:
        if self._draining is None:
            self.begin()
        elif not self.force.is_set():
            self._draining.cancel()
            self.stop.set()
            self.force.set()
        else:
            os._exit(1)
