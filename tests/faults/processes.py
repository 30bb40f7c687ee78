"""Real processes for the fault tests. They are forked from a server that has Clew loaded, so that starting one takes
milliseconds and a test can afford to kill hundreds."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from clew.access import Principal
from clew.bus import open_bus
from clew.bus.trail import BusTrail
from clew.config import BusConfig
from clew.trail import open_trail
from clew.trail.model.event import ConsumerState
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker

PATIENCE = 60.0
"""Seconds after which a wait in a test has failed."""
KILLED = -9
ADDRESS = "address"
"""The file in the folder of a test that holds the address of its trail."""
BUS = "bus"
"""The file that holds the address of its bus, if it has one."""

_forks = multiprocessing.get_context("forkserver")
_CLEW = ["clew.trail.sqlite", "clew.trail.work.handlers", "clew.agents.assembly", "clew.catalog.catalog"]
_LATE = ["clew.trail.sqlite.search", "clew.trail.postgres", "clew.bus.nats", "nats.aio.client", "splintr"]
"""Modules that Clew imports late and that nearly every process of these tests needs."""
_forks.set_forkserver_preload(["pytest", *_CLEW, *_LATE])


class Child:
    """A process that runs one coroutine function with a channel to the test, until it returns or is killed."""

    def __init__(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        self._channel, theirs = _forks.Pipe()
        self._process = _forks.Process(target=_run, args=(function, theirs, arguments), daemon=True)
        self._process.start()
        self._pid = self._process.pid or 0
        theirs.close()

    def hear(self, timeout: float = PATIENCE) -> Any:
        """The next thing that the child says."""
        assert self._channel.poll(timeout), f"the child said nothing for {timeout} s"
        try:
            return self._channel.recv()
        except EOFError:
            raise AssertionError(f"the child ended with {self.wait()} instead of saying something") from None

    def tell(self, message: Any) -> None:
        self._channel.send(message)

    def kill(self) -> None:
        """SIGKILL: no handler, no `finally`, no flush runs in the child."""
        self._process.kill()
        assert self.wait() == KILLED, "the child had ended by itself"

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    async def has_ended(self) -> bool:
        return not self._process.is_alive()

    def kill_if_alive(self) -> None:
        """SIGKILL, even if the child ends at the same moment."""
        self._process.kill()
        self.wait()

    def pause(self) -> None:
        """SIGSTOP: the child stands still, as on a machine that is suspended."""
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code of the child, negative for a signal."""
        self._process.join(timeout)
        code = self._process.exitcode
        assert code is not None, f"the child did not end within {timeout} s"
        return code

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join(PATIENCE)
        self._process.close()
        self._channel.close()


def _run(function: Callable[..., Awaitable[None]], channel: Connection, arguments: tuple[Any, ...]) -> None:
    async def main() -> None:
        await function(channel, *arguments)

    asyncio.run(main())


async def eventually(holds: Callable[[], Awaitable[Any]], what: str, timeout: float = PATIENCE) -> Any:
    """The first truthy answer of a call that is repeated every few milliseconds."""
    deadline = time.monotonic() + timeout
    while not (answer := await holds()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        await asyncio.sleep(0.005)
    return answer


async def state_of(trail: Trail, consumer: str, by: Principal) -> ConsumerState | None:
    states = await trail.deliveries.consumers(by=by)
    return next((state for state in states if state.consumer.name == consumer), None)


async def is_settled(trail: Trail, consumer: str, by: Principal) -> bool:
    """Whether the consumer has read all events, and has no claimed or waiting ones."""
    head, state = await trail.log.head(), await state_of(trail, consumer, by)
    return state is not None and state.cursor >= head and state.pending + state.claimed == 0


async def drain(trail: Trail, handlers: list[Handler], by: Principal, timeout: float = PATIENCE) -> None:
    """Run the handlers here until all of them are settled."""
    worker = Worker(trail, handlers, by=by, worker_id="drain", concurrency=16)
    running = asyncio.create_task(worker.run())

    async def all_settled() -> bool:
        return all([await is_settled(trail, handler.name, by) for handler in handlers])

    try:
        await eventually(all_settled, "the handlers have caught up", timeout)
    finally:
        worker.stop()
        await running


async def open_at(folder: Path, **options: Any) -> Trail:
    """The trail of a test's folder: the one whose address it holds, or a file in it; on its bus, if it has one."""
    note, bus = folder / ADDRESS, folder / BUS
    trail = await open_trail(note.read_text() if note.exists() else f"sqlite://{folder}/trail.db", **options)
    return BusTrail(trail, await open_bus(BusConfig(url=bus.read_text()), folder)) if bus.exists() else trail
