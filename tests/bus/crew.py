"""Worker processes on one trail and one bus."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from clew.access import Principal
from clew.bus import open_bus
from clew.bus.trail import BusTrail
from clew.config import BusConfig
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker
from tests.faults.processes import open_at

ME = Principal(owner_id="acme", agent_id="crew")
NAME = "crew"
LEASE = timedelta(seconds=2)


async def open_on_bus(folder: Path, url: str) -> Trail:
    return BusTrail(await open_at(folder), await open_bus(BusConfig(url=url), folder))


def job_handler(*, sticks: bool = False, channel: Connection | None = None) -> Handler:
    async def do(event: Event, deps: object) -> list[Draft]:
        if sticks and channel is not None:
            channel.send(event.seq)
            await asyncio.Event().wait()
        return [Draft(title="Done", schema_name="done.v1", tags=(f"event:{event.seq}",), context={"pid": os.getpid()})]

    return Handler(name=NAME, selector=Selector(schema_name="job.v1"), function=do)


async def work(channel: Connection, folder: Path, url: str, sticks: bool = False) -> None:
    """Do jobs until the test says something; one that `sticks` begins a job, says so and never ends it."""
    trail = await open_on_bus(folder, url)
    handler = job_handler(sticks=sticks, channel=channel)
    worker = Worker(trail, [handler], by=ME, worker_id=str(os.getpid()), concurrency=4, lease=LEASE)
    await worker.register()
    running = asyncio.create_task(worker.run())
    channel.send("ready")
    await asyncio.to_thread(channel.recv)
    worker.stop()
    await running
    await trail.close()
