"""From a write to the handler that it wakes, in one process; and events a second, next to a bare SQLite loop that
commits twice for each event: once to write it, once to mark it done."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from clew.trail.breadcrumb import Draft
from clew.trail.event import Event
from clew.trail.handlers import Worker, handles
from clew.trail.selector import Selector
from clew.trail.store import Trail
from speed.bare_sqlite import connect
from speed.contenders import OURS
from speed.report import Finding, Promise, Row
from speed.stage import ME, Stage, open_file
from speed.timing import Rounds, median, paired_ratio, tell

LATENCY = "write to handler"
RATE = "events handled"
SCHEMA = "ping.v1"
LATENCIES, EVENTS, WRITERS = 200, 300, 8
PATIENCE = 120.0
MOST_P50, MOST_P95, LEAST = 1.0, 3.0, 0.4


async def measure(stage: Stage) -> list[Finding]:
    trail = await open_file(await stage.copy_trail("handlers"), None)
    try:
        found = await measure_latency(stage, trail)
        return [*found, *await measure_rate(stage, trail)]
    finally:
        await trail.close()


class Seen:
    """When the handler began with each event, and a way to wait for the last of them."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._wanted = 0
        self._done = asyncio.Event()

    def note(self, title: str) -> None:
        self.at[title] = time.perf_counter()
        if len(self.at) >= self._wanted:
            self._done.set()

    async def wait(self, count: int) -> None:
        """Return once this many events have been seen."""
        self._wanted = count
        if len(self.at) < count:
            self._done.clear()
            async with asyncio.timeout(PATIENCE):
                await self._done.wait()


@asynccontextmanager
async def working(trail: Trail, name: str) -> AsyncIterator[Seen]:
    """A worker with one handler that only notes the time."""
    seen = Seen()

    @handles(Selector(schema_name=SCHEMA), name=name)
    async def note(event: Event, deps: None) -> None:
        assert event.breadcrumb is not None
        seen.note(event.breadcrumb.title)

    worker = Worker(trail, [note], by=ME, worker_id="bench")
    await worker.register()
    task = asyncio.create_task(worker.run())
    try:
        yield seen
    finally:
        worker.stop()
        await task
        await trail.deliveries.unregister(name, by=ME)


async def measure_latency(stage: Stage, trail: Trail) -> list[Finding]:
    """One write at a time, the handler idle before it."""
    from_call, from_answer = Rounds(), Rounds()
    async with working(trail, "latency") as seen:
        for turn in range(stage.settings.rounds):
            tell(f"{LATENCY}: round {turn + 1} of {stage.settings.rounds}")
            from_call.begin()
            from_answer.begin()
            for number in range(stage.settings.samples(LATENCIES)):
                title = f"{turn}-{number}"
                began = time.perf_counter()
                await trail.records.create(ping(title), by=ME)
                answered = time.perf_counter()
                await seen.wait(len(seen.at) + (title not in seen.at))
                from_call.add(seen.at[title] - began)
                from_answer.add(max(0.0, seen.at[title] - answered))
                await until_acknowledged(trail, "latency")
    spreads = {"from the call to create": from_call.spread(), "from its answer": from_answer.spread()}
    call = spreads["from the call to create"]
    return [
        *(
            Row(measure=LATENCY, records=stage.size, contender=f"{OURS}, {name}", values=values)
            for name, values in spreads.items()
        ),
        *(
            Promise(name=f"write to handler, {name}", records=stage.size, value=call[name], target=most, at_least=False)
            for name, most in (("p50 ms", MOST_P50), ("p95 ms", MOST_P95))
        ),
    ]


async def measure_rate(stage: Stage, trail: Trail) -> list[Finding]:
    one, eight, bare = [], [], []
    count = stage.settings.samples(EVENTS, least=24)
    loop = BareLoop(stage.folder / "events.db")
    for turn in range(stage.settings.rounds):
        tell(f"{RATE}: round {turn + 1} of {stage.settings.rounds}")
        bare.append(loop.rate(count))
        one.append(await rate_of_events(trail, f"one-{turn}", count, 1))
        eight.append(await rate_of_events(trail, f"eight-{turn}", count, WRITERS))
    loop.close()
    rows = ((f"{OURS}, one writer", one), (f"{OURS}, {WRITERS} writers", eight), ("sqlite loop", bare))
    return [
        *(
            Row(
                measure=RATE,
                records=stage.size,
                contender=name,
                values={"events/s": median(rates), "× of the loop": paired_ratio(rates, bare)},
            )
            for name, rates in rows
        ),
        Promise(name="events of a bare loop", records=stage.size, value=paired_ratio(one, bare), target=LEAST),
    ]


async def rate_of_events(trail: Trail, name: str, count: int, writers: int) -> float:
    """Events written and handled, until the last is acknowledged."""
    drafts = [ping(f"{name}-{number}") for number in range(count)]
    async with working(trail, name) as seen:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for at in range(writers):
                group.create_task(write_all(trail, drafts[at::writers]))
        await seen.wait(count)
        await until_acknowledged(trail, name)
        return count / (time.perf_counter() - began)


async def write_all(trail: Trail, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        await trail.records.create(draft, by=ME)


async def until_acknowledged(trail: Trail, name: str) -> None:
    """Wait until nothing that the handler has begun is left to commit."""
    async with asyncio.timeout(PATIENCE):
        while True:  # nothing tells of an acknowledgement, so it is looked for
            if await trail.deliveries.due_in(name, by=ME) is None:
                return
            await asyncio.sleep(0.001)


def ping(title: str) -> Draft:
    return Draft(title=title, context={"n": 1}, tags=("kind:ping",), schema_name=SCHEMA)


class BareLoop:
    """Write a record with its event, commit; take the next event, move the cursor, commit."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.executescript(
            "CREATE TABLE records (rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, content TEXT NOT NULL);"
            "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, rid INTEGER NOT NULL, at REAL NOT NULL);"
            "CREATE TABLE consumers (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL);"
            "INSERT INTO consumers VALUES ('bench', 0);"
        )
        self._written = 0

    def rate(self, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            self._write()
            self._handle()
        return count / (time.perf_counter() - began)

    def _write(self) -> None:
        execute = self._connection.execute
        self._written += 1
        content = json.dumps({"title": f"ping {self._written}", "context": {"n": 1}, "tags": ["kind:ping"]})
        execute("BEGIN IMMEDIATE")
        rid = execute("INSERT INTO records (id, content) VALUES (?, ?)", (f"id-{self._written}", content)).lastrowid
        execute("INSERT INTO events (rid, at) VALUES (?, ?)", (rid, time.time()))
        execute("COMMIT")

    def _handle(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        sql = (
            "SELECT e.seq, r.content FROM events e JOIN records r ON r.rid = e.rid"
            " WHERE e.seq > (SELECT cursor FROM consumers WHERE name = 'bench') ORDER BY e.seq LIMIT 1"
        )
        seq, content = execute(sql).fetchone()
        json.loads(content)
        execute("UPDATE consumers SET cursor = ? WHERE name = 'bench'", (seq,))
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
