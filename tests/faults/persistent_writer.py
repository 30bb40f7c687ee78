"""A process for test_postgres_crash.py that outlives its database: it repeats what was not acknowledged."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from clew.errors import StorageError
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker
from tests.faults.processes import open_at
from tests.faults.writer import ME, Notebook, content_of, echo

LEASE = timedelta(seconds=2)
PAUSE = 0.05


async def write_through_crashes(channel: Connection, folder: Path, writer: str) -> None:
    """Write notes and handle them until the test says that it is enough."""
    trail, book, is_over = await open_at(folder), Notebook(folder), asyncio.Event()
    asyncio.get_running_loop().add_reader(channel.fileno(), is_over.set)
    worker = Worker(trail, [echo], by=ME, worker_id=writer, lease=LEASE, concurrency=4)
    await worker.register()
    channel.send("ready")
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        writing = [group.create_task(write_notes(trail, book, f"{writer}-{n}", is_over)) for n in range(2)]
        await asyncio.gather(*writing)
        worker.stop()
    await trail.close()


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
    """The id of the record. Whether a write that failed took place is not known: the key makes it one."""
    while True:
        try:
            return (await trail.records.create(draft, by=ME)).id
        except StorageError:
            await asyncio.sleep(PAUSE)
