"""Wake-ups notify waiting tasks that the trail has changed. Commits of this process are announced at once. To find
commits of other processes, the head of the log is polled, but only while a task waits. A bus shortens the delay: it
calls `announce` when it hears of a commit of another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator

from clew.errors import ClewError

INTERVAL = 0.025
"""Seconds between polls for commits of other processes."""

Wake = Callable[[], object]


class Wakeups:
    """Calls the registered functions whenever something may have been committed. Supports any number of event loops."""

    def __init__(self, read_head: Callable[[], Awaitable[int]]) -> None:
        self._read_head = read_head
        self._loops: dict[asyncio.AbstractEventLoop, _LoopWakeups] = {}
        self._lock = threading.Lock()
        self.on_announce: list[Callable[[], None]] = []
        """Called for each announcement, from any thread."""
        self.head = 0
        """The newest event that this process knows of."""

    @contextlib.contextmanager
    def watching(self, wake: Wake) -> Iterator[None]:
        """Have `wake` called on this event loop after each commit, until the block ends. It may also be called when
        nothing has changed."""
        watch = self._on_loop(asyncio.get_running_loop())
        watch.add(wake)
        try:
            yield
        finally:
            watch.discard(wake)

    def announce(self, head: int) -> None:
        """Announce that the log has reached `head`, or that something else has changed. May be called from any
        thread."""
        self.head = max(self.head, head)
        for hear in self.on_announce:
            hear()
        with self._lock:
            watches = list(self._loops.items())
        for loop, watch in watches:
            if watch.is_awaited:
                with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(watch.wake)

    def note(self, head: int) -> None:
        """Announce a head that was read from the log, if another process has written."""
        if head > self.head:
            self.announce(head)

    def _on_loop(self, loop: asyncio.AbstractEventLoop) -> _LoopWakeups:
        with self._lock:
            found = self._loops.get(loop)
            if found is None:
                self._loops = {each: watch for each, watch in self._loops.items() if not each.is_closed()}
                found = self._loops[loop] = _LoopWakeups(self)
        return found

    async def look(self) -> None:
        """Read the head of the log, and wake all waiting tasks if another process has written."""
        self.note(await self._read_head())


class _LoopWakeups:
    """The registered functions of one event loop, and the task that polls the log for all of them."""

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._waiting: dict[Wake, None] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def is_awaited(self) -> bool:
        return bool(self._waiting)

    def add(self, wake: Wake) -> None:
        self._waiting[wake] = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())

    def discard(self, wake: Wake) -> None:
        self._waiting.pop(wake, None)
        if not self._waiting and self._task is not None:
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        for wake in tuple(self._waiting):
            wake()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            with contextlib.suppress(ClewError):  # those who wait will meet it themselves
                await self._wakeups.look()
