"""The further worker processes of `clew up --workers N`. They end with the process that started them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence

from clew.background_tasks import cancel_all, log_failure

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""The delay before a dead worker is restarted, in seconds. It doubles while the worker keeps dying early."""
HEALTHY_SECONDS = 60.0
"""A worker that ran for this long did not die early."""
GRACE_SECONDS = 5.0
"""The seconds that a worker may take beyond its drain time before it is killed."""

_log = logging.getLogger(__name__)


class ChildWorkers:
    """Runs a command in several processes and restarts a process that dies. The standard input of each is a pipe; its
    end tells the process to drain, even if this process is killed."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command = list(command)
        self._count = count
        self._running: set[asyncio.subprocess.Process] = set()
        self._is_ending = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the processes running while the context is open. Processes that remain at its end are killed."""
        tasks = [asyncio.create_task(self._keep()) for _ in range(self._count)]
        for task in tasks:
            task.add_done_callback(log_failure)
        try:
            yield
        finally:
            self._is_ending = True
            await cancel_all(tasks)
            left = tuple(self._running)
            for process in left:  # a draining worker gives back its claims, and ends
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
            if left:
                await asyncio.wait([asyncio.create_task(each.wait()) for each in left], timeout=GRACE_SECONDS)
            for process in tuple(self._running):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def drain(self, seconds: float) -> bool:
        """Let all of them drain; False when one has not ended in time."""
        self._is_ending = True
        waits = []
        for process in tuple(self._running):
            if process.stdin is not None:
                process.stdin.close()
            waits.append(asyncio.create_task(process.wait()))
        return not waits or not (await asyncio.wait(waits, timeout=seconds + GRACE_SECONDS))[1]

    async def _keep(self) -> None:
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        while not self._is_ending:
            began = loop.time()
            code = await self._run_once()
            if self._is_ending:
                return
            pause = FIRST_PAUSE if loop.time() - began >= HEALTHY_SECONDS else pause
            _log.warning("a worker ended with %d; the next one starts in %g s", code, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run_once(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # this process handles Ctrl-C and passes it on
        )
        self._running.add(process)
        try:
            return await process.wait()
        finally:
            if process.returncode is not None:
                self._running.discard(process)


def worker_command(*arguments: str) -> list[str]:
    """The command that starts `clew up` in another process."""
    return [sys.executable, "-m", "clew", "up", *arguments]
