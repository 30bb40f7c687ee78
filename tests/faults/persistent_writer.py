"""A process that writes and handles records, and survives its servers: it repeats unacknowledged writes."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from clew.clock import SystemClock
from clew.errors import StorageError
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker
from tests.faults.processes import open_at
from tests.faults.writer import ME, Notebook, content_of, echo

LEASE = timedelta(seconds=2)
PAUSE = 0.05
JUMPS = (0, 0, -3_600, 3_600, -86_400, 86_400, 5, -5)
"""Seconds by which the clock of a process may be wrong."""


class WrongClock(SystemClock):
    """The clock of a machine that was set wrong. Each process has another mistake; within a process time is steady."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._mistake = timedelta(seconds=random.Random(seed).choice(JUMPS))

    def now(self) -> datetime:
        return super().now() + self._mistake


async def write_through_crashes(channel: Connection, folder: Path, writer: str, clock_jumps: bool = False) -> None:
    """Write notes and handle them until the test ends it."""
    clock = WrongClock(writer) if clock_jumps else SystemClock()
    trail, book, is_over = await open_patiently(folder, clock), Notebook(folder), asyncio.Event()
    asyncio.get_running_loop().add_reader(channel.fileno(), is_over.set)
    worker = Worker(trail, [echo], by=ME, worker_id=writer, lease=LEASE, concurrency=4)
    channel.send("ready")
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        writing = [group.create_task(write_notes(trail, book, f"{writer}-{n}", is_over)) for n in range(2)]
        await asyncio.gather(*writing)
        worker.stop()
    await trail.close()


async def open_patiently(folder: Path, clock: SystemClock) -> Trail:
    """The trail, as soon as its server answers."""
    while True:
        try:
            return await open_at(folder, clock=clock)
        except StorageError:
            await asyncio.sleep(PAUSE)


async def write_notes(trail: Trail, book: Notebook, writer: str, is_over: asyncio.Event) -> None:
    for number in itertools.count():
        if is_over.is_set():
            return
        name = f"{writer}w{number}"
        draft = Draft(
            title="A note",
            schema_name="note.v1",
            tags=(f"session:{writer}-{number % 3}",),
            context=content_of(name, 1),
            idempotency_key=name,
        )
        note = await repeat_until_written(trail, draft)
        book.note("wrote", note, 1, name)


async def repeat_until_written(trail: Trail, draft: Draft) -> str:
    """The id of the record. A failed write may have been committed; the key prevents a duplicate."""
    while True:
        try:
            return (await trail.records.create(draft, by=ME)).id
        except StorageError:
            await asyncio.sleep(PAUSE)
