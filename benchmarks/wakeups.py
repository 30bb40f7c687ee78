"""Write → handler in another process: how long an event takes, with the bus and by polling alone, interleaved.

    .venv/bin/python benchmarks/wakeups.py [EVENTS]

Starts a nats-server on a free port. Both handlers run at once on one SQLite trail in processes of their own; each event
goes to both, after a pause, so that neither is busy. Times are of one machine's monotonic clock. `make bench-scale`
does the same on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clew.access import Principal
from clew.bus import open_bus
from clew.bus.trail import BusTrail
from clew.config import BusConfig
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from speed.scale_stage import running_nats
from speed.timing import percentile

ME = Principal(owner_id="bench", agent_id="bench")


async def open_on(url: str, bus: str) -> Trail:
    trail = await open_trail(url)
    return BusTrail(trail, await open_bus(BusConfig(url=bus), Path())) if bus != "-" else trail


async def receive(url: str, bus: str, name: str) -> None:
    """Handle events, and print the milliseconds that each one took."""
    trail = await open_on(url, bus)

    @handles(Selector(schema_name="bench.event.v1"), name=name)
    async def note(event: Event, deps: object) -> list[Draft]:
        now = time.monotonic_ns()
        assert event.breadcrumb is not None
        print(json.dumps((now - event.breadcrumb.context["at"]) / 1e6), flush=True)
        return [Draft(title="done", schema_name="bench.done.v1", context={}, embed="never")]

    worker = Worker(trail, [note], by=ME, worker_id=name)
    await worker.register()
    print("ready", flush=True)
    await worker.run()


async def send(url: str, bus: str, count: int) -> None:
    trail = await open_on(url, bus)
    for _ in range(count):
        await asyncio.sleep(random.uniform(0.03, 0.08))
        at = time.monotonic_ns()
        await trail.records.create(
            Draft(title="e", schema_name="bench.event.v1", context={"at": at}, embed="never"), by=ME
        )
    await asyncio.sleep(0.5)
    await trail.close()


def measure(url: str, bus: str, count: int) -> dict[str, list[float]]:
    """The milliseconds that each event took to a handler with the bus and to one without, sorted."""
    receivers = {}
    try:
        for name, address in (("bus", bus), ("poll", "-")):
            command = [sys.executable, __file__, "receive", url, address, name]
            receivers[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert receivers[name].stdout is not None
            assert receivers[name].stdout.readline() == "ready\n"
        asyncio.run(send(url, bus, count))
    finally:
        for each in receivers.values():
            each.terminate()
    return {name: sorted(map(float, each.communicate()[0].splitlines())) for name, each in receivers.items()}


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder, running_nats(Path(folder, "nats")) as bus:
        for name, took in measure(f"sqlite://{folder}/trail.db", bus, count).items():
            half, late = percentile(took, 0.5), percentile(took, 0.95)
            print(f"{name:6} {len(took):5} events   p50 {half:6.2f} ms   p95 {late:6.2f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        asyncio.run(receive(*sys.argv[2:5]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 300)
