"""Worker processes for test_workers.py: good ones, and ones that stop in the middle of their work."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from clew.access import Principal
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker
from tests.faults.processes import open_at
from tests.faults.writer import Notebook

ME = Principal(owner_id="acme", agent_id="crew")
NAME = "crew"
ATTEMPTS = 3


def output_of(event: Event) -> list[Draft]:
    return [Draft(title="Done", schema_name="done.v1", tags=(f"event:{event.seq}",), context={"pid": os.getpid()})]


def crew_handler(function: Callable[[Event, object], Awaitable[list[Draft]]]) -> Handler:
    retry = RetryPolicy(attempts=ATTEMPTS, backoff=0.01)
    return Handler(name=NAME, selector=Selector(schema_name="job.v1"), function=function, retry=retry)


async def do_job(event: Event, deps: object) -> list[Draft]:
    return output_of(event)


@asynccontextmanager
async def working(folder: Path, handler: Handler, lease: timedelta) -> AsyncIterator[Trail]:
    """A registered worker of this process with one job at a time, and its trail; at the end it finishes its job."""
    trail = await open_at(folder)
    worker = Worker(trail, [handler], by=ME, worker_id=str(os.getpid()), concurrency=1, lease=lease)
    await worker.register()
    running = asyncio.create_task(worker.run())
    yield trail
    worker.drain()
    await running
    await trail.close()


async def work_until_told(channel: Connection, folder: Path, lease: timedelta) -> None:
    """Do jobs, noting each execution, until the test says something."""
    book = Notebook(folder)

    async def note_and_do(event: Event, deps: object) -> list[Draft]:
        book.note(event.seq, os.getpid())
        return output_of(event)

    async with working(folder, crew_handler(note_and_do), lease):
        channel.send("ready")
        await asyncio.to_thread(channel.recv)


async def stick_in_handler(channel: Connection, folder: Path, lease: timedelta) -> None:
    """Begin a job and say so; finish it only when the test says something."""

    async def stick(event: Event, deps: object) -> list[Draft]:
        channel.send(("started", event.seq))
        await asyncio.to_thread(channel.recv)
        return output_of(event)

    async with working(folder, crew_handler(stick), lease):
        channel.send("ready")
        await asyncio.get_running_loop().create_future()


async def die_in_handler(channel: Connection, folder: Path, lease: timedelta) -> None:
    """Let the job kill the process, as the kernel does when memory runs out."""

    async def die(event: Event, deps: object) -> list[Draft]:
        channel.send(("started", event.seq))
        os.kill(os.getpid(), signal.SIGKILL)
        return output_of(event)

    async with working(folder, crew_handler(die), lease):
        channel.send("ready")
        await asyncio.get_running_loop().create_future()


async def claim_and_wait(channel: Connection, folder: Path, lease: timedelta) -> None:
    """Claim one event by hand, report its key, and do nothing more."""
    trail = await open_at(folder)
    [claim] = await trail.deliveries.claim(NAME, by=ME, worker="idle", lease=lease)
    channel.send((claim.event.seq, claim.attempt, claim.key))
    await asyncio.get_running_loop().create_future()
