"""The time from a write to the handler in another process on PostgreSQL, with NATS and by polling alone."""

from __future__ import annotations

import asyncio

import wakeups
from speed.report import Finding, Promise, Row
from speed.scale_stage import Engines, ScaleSettings, running_nats
from speed.timing import percentile, tell

MEASURE = "write to handler in another process"
SHOWN = {"bus": "with NATS", "poll": "by polling"}
MOST_MS = {"bus": 8.0, "poll": 60.0}


async def measure(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    tell(MEASURE)
    count = settings.count(200, 60)
    with running_nats(settings.scratch / "nats") as bus:
        found = await asyncio.to_thread(wakeups.measure, engines.make_database(), bus, count)
    rows: list[Finding] = [
        Row(
            measure=MEASURE,
            records=len(took),
            contender=SHOWN[name],
            values={"p50 ms": percentile(took, 0.5), "p95 ms": percentile(took, 0.95)},
        )
        for name, took in found.items()
    ]
    return [
        *rows,
        *(
            Promise(
                name=f"write to handler {SHOWN[name]}, p50 ms",
                records=len(took),
                value=percentile(took, 0.5),
                target=MOST_MS[name],
                at_least=False,
            )
            for name, took in found.items()
        ),
    ]
