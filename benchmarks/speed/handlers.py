"""From a write to the handler that it wakes, in one process; and events a second next to a bare loop on SQLite."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from statistics import median

from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from speed.bare_loop import BareLoop
from speed.contenders import OURS
from speed.report import Finding, Promise, Row
from speed.stage import ME, Stage, open_file
from speed.timing import Rounds, paired_ratio, rotate, tell

LATENCY = "write to handler"
RATE = "events handled"
SCHEMA = "ping.v1"
LATENCIES, EVENTS, WRITERS = 200, 300, 8
PATIENCE = 120.0
MOST = {"p50 ms": 1.0, "p95 ms": 3.0}
LEAST = 0.4


async def measure(stage: Stage) -> list[Finding]:
    trail = await open_file(await stage.copy_trail("handlers"), None)
    try:
        with closing(BareLoop(stage.folder / "events.db")) as loop:
            found = await measure_latency(stage, trail, loop)
            return [*found, *await measure_rate(stage, trail, loop)]
    finally:
        await trail.close()


class Seen:
    """When the handler began with each event."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._changed = asyncio.Event()

    def note(self, title: str) -> None:
        self.at[title] = time.perf_counter()
        self._changed.set()

    async def until(self, is_done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_done():
                self._changed.clear()
                await self._changed.wait()


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


async def measure_latency(stage: Stage, trail: Trail, loop: BareLoop) -> list[Finding]:
    """One write at a time while the handler is idle; between them a bare commit, as a measure of the disk."""
    times = {f"{OURS}, from the call": Rounds(), f"{OURS}, from the answer": Rounds(), "sqlite, commit alone": Rounds()}
    from_call, from_answer, commit = times.values()
    async with working(trail, "latency") as seen:
        for turn in range(stage.settings.rounds):
            tell(f"{LATENCY}: round {turn + 1} of {stage.settings.rounds}")
            for rounds in times.values():
                rounds.begin()
            for number in range(stage.settings.samples(LATENCIES)):
                called, answered, started = await ping_once(trail, seen, f"{turn}-{number}")
                from_call.add(started - called)
                from_answer.add(max(0.0, started - answered))
                commit.add(loop.write())
    return [
        *(
            Row(measure=LATENCY, records=stage.size, contender=name, values=rounds.spread())
            for name, rounds in times.items()
        ),
        *(
            Promise(
                name=f"write to handler, {since}, {name}",
                records=stage.size,
                value=value,
                target=MOST[name],
                at_least=False,
            )
            for since, rounds in (("from the call", from_call), ("from the answer", from_answer))
            for name, value in rounds.spread().items()
        ),
    ]


async def ping_once(trail: Trail, seen: Seen, title: str) -> tuple[float, float, float]:
    """The times of the call of the write, of its return, and of the start of the handler."""
    called = time.perf_counter()
    await trail.records.create(ping(title), by=ME)
    answered = time.perf_counter()
    await seen.until(lambda: title in seen.at)
    await until_acknowledged(trail, "latency")
    return called, answered, seen.at[title]


async def measure_rate(stage: Stage, trail: Trail, loop: BareLoop) -> list[Finding]:
    rates: dict[str, list[float]] = {f"{OURS}, one writer": [], f"{OURS}, {WRITERS} writers": [], "sqlite loop": []}
    one, many, bare = rates.values()
    count = stage.settings.samples(EVENTS, least=24)
    for turn in range(stage.settings.rounds):
        tell(f"{RATE}: round {turn + 1} of {stage.settings.rounds}")
        for kept, writers in rotate(((one, 1), (many, WRITERS), (bare, 0)), turn):
            name = f"{writers}-writers-{turn}"
            kept.append(await rate_of_events(trail, name, count, writers) if writers else loop.rate(count))
    return [
        *(
            Row(
                measure=RATE,
                records=stage.size,
                contender=name,
                values={"events/s": median(each), "× of the loop": paired_ratio(each, bare)},
            )
            for name, each in rates.items()
        ),
        Promise(name="events of a bare loop", records=stage.size, value=paired_ratio(one, bare), target=LEAST),
    ]


async def rate_of_events(trail: Trail, name: str, count: int, writers: int) -> float:
    """Events a second, written and handled, until the last is acknowledged."""
    drafts = [ping(f"{name}-{number}") for number in range(count)]
    async with working(trail, name) as seen:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for at in range(writers):
                group.create_task(write_all(trail, drafts[at::writers]))
        await seen.until(lambda: len(seen.at) == count)
        await until_acknowledged(trail, name)
        return count / (time.perf_counter() - began)


async def write_all(trail: Trail, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        await trail.records.create(draft, by=ME)


async def until_acknowledged(trail: Trail, name: str) -> None:
    """Wait until all started work of the handler is committed."""
    async with asyncio.timeout(PATIENCE):
        while True:  # an acknowledgement sends no signal, so poll for it
            if await trail.deliveries.due_in(name, by=ME) is None:
                return
            await asyncio.sleep(0.001)


def ping(title: str) -> Draft:
    return Draft(title=title, context={"n": 1}, tags=("kind:ping",), schema_name=SCHEMA)
