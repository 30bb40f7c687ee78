"""Overload: callers get an error, memory stays bounded, and one session does not block another."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from clew import sqlite_file
from clew.access import Principal
from clew.errors import Busy
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.sqlite import engine
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker
from tests.faults.processes import PATIENCE, eventually, is_settled, open_at

ME = Principal(owner_id="acme", agent_id="ann")
NOTES = Selector(schema_name="note.v1")
QUEUE = 8
MEGABYTE = 1_000_000


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of SQLite's virtual machine, one number for each statement, of trails that are opened afterwards."""
    counted: list[int] = []

    def count(connection: apsw.Connection) -> None:
        connection.trace_v2(
            apsw.SQLITE_TRACE_PROFILE, lambda event: counted.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
        )

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, count])
    return counted


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[Trail]:
    opened = await open_at(tmp_path)
    yield opened
    await opened.close()


def note(text: str, session: str | None = None) -> Draft:
    tags = (f"session:{session}",) if session else ()
    return Draft(title="Note", schema_name="note.v1", tags=tags, context={"text": text}, embed="never")


async def texts(trail: Trail) -> Counter[str]:
    found, cursor = Counter[str](), None
    while True:
        page = await trail.records.list(NOTES, by=ME, limit=1_000, cursor=cursor)
        found.update(str(item.context["text"]) for item in page.items)
        cursor = page.cursor
        if cursor is None:
            return found


@contextmanager
def writing_elsewhere(folder: Path) -> Iterator[None]:
    """Another process's transaction, which nobody can write beside."""
    other = apsw.Connection(str(folder / "trail.db"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


# -- writes ---------------------------------------------------------------------------------------------------


async def test_writes_beyond_the_queue_are_refused_and_the_accepted_ones_written(tmp_path: Path) -> None:
    trail = await open_at(tmp_path, queue_limit=QUEUE)
    try:
        with writing_elsewhere(tmp_path):
            calls = {str(n): asyncio.create_task(trail.records.create(note(str(n)), by=ME)) for n in range(1_000)}
            refused = await first_refusal(calls)
        answers = await asyncio.gather(*calls.values(), return_exceptions=True)
        accepted = Counter(text for text, answer in zip(calls, answers, strict=True) if not isinstance(answer, Busy))

        assert "try again" in str(refused)
        assert 0 < accepted.total() < 1_000
        assert all(isinstance(answer, Busy) for answer in answers if isinstance(answer, BaseException))
        assert await texts(trail) == accepted, "refused writes left something, or accepted ones were lost"
        assert await trail.log.head() == accepted.total()
        await trail.records.create(note("later"), by=ME)
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


async def first_refusal(calls: dict[str, asyncio.Task[Any]]) -> BaseException | None:
    done, _ = await asyncio.wait(calls.values(), timeout=PATIENCE, return_when=asyncio.FIRST_EXCEPTION)
    return next((task.exception() for task in done if task.exception() is not None), None)


async def test_refused_writes_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    trail = await open_at(tmp_path, queue_limit=QUEUE)
    waiting = set[asyncio.Task[Any]]()
    refused = 0
    try:
        with writing_elsewhere(tmp_path), traced() as grown:
            for number in range(600):
                call = asyncio.create_task(trail.records.create(note("-" * 10_000 + str(number)), by=ME))
                await asyncio.sleep(0)  # one step: it is refused, or waits
                if call.done():
                    refused += isinstance(call.exception(), Busy)
                else:
                    waiting.add(call)
            assert grown() < 2 * MEGABYTE, "6 megabytes were offered"
        await asyncio.gather(*waiting)
        assert refused + len(waiting) == 600
        assert len(waiting) <= QUEUE + engine.GROUP
    finally:
        await trail.close()


@contextmanager
def traced() -> Iterator[Any]:
    """The growth of Python's memory since the beginning of the block, in bytes."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


async def test_long_words_do_not_stay_in_memory(trail: Trail) -> None:
    """Such as encoded images: no word of them comes again."""
    noise, letters = random.Random(9), bytes(ord("a") + byte % 26 for byte in range(256))
    images = [noise.randbytes(100_000).translate(letters).decode() for _ in range(101)]
    await trail.records.create(note(images.pop()), by=ME)
    with traced() as grown:
        while images:
            await trail.records.create(note(images.pop()), by=ME)
        assert grown() < 3 * MEGABYTE, "10 megabytes were written"


async def test_a_file_that_another_process_holds_too_long_is_busy_and_writable_afterwards(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    with writing_elsewhere(tmp_path):
        with pytest.raises(Busy, match="another process"):
            await trail.records.create(note("refused"), by=ME)
        assert (await trail.records.list(by=ME)).items == (), "reading goes on"
    await trail.records.create(note("written"), by=ME)

    assert await texts(trail) == {"written": 1}


# -- readers --------------------------------------------------------------------------------------------------


async def test_a_slow_reader_of_the_log_uses_bounded_memory(trail: Trail) -> None:
    await trail.records.create(note("first"), by=ME)
    async with aclosing(aiter(trail.log.follow(0, by=ME))) as reader:  # type: ignore[type-var]
        await anext(reader)
        with traced() as grown:
            for _ in range(30):
                await trail.records.create_many([note("-" * 2_000) for _ in range(100)], by=ME)
            assert grown() < 2 * MEGABYTE, "6 megabytes were written"
            await anext(reader)
            assert grown() < 4 * MEGABYTE, "one stretch of the log was read"
        rest = [await anext(reader) for _ in range(2_999)]

    assert [event.seq for event in rest] == list(range(3, 3_002))


async def test_a_read_of_the_log_stops_at_its_limit_and_goes_on_from_its_cursor(trail: Trail) -> None:
    await trail.records.create_many([note(str(number)) for number in range(1_000)], by=ME)
    seen, after = list[int](), 0
    while after < await trail.log.head():
        events, after = await trail.log.read(after, by=ME, limit=300)
        assert len(events) <= 300
        seen += [event.seq for event in events]

    assert seen == list(range(1, 1_001))


# -- deliveries -----------------------------------------------------------------------------------------------


def handler_of(function: Any, **options: Any) -> Handler:
    return Handler(name="reader", selector=NOTES, function=function, **options)


@pytest.mark.slow
@pytest.mark.req("SYL-116")
async def test_twenty_thousand_events_of_one_session_do_not_delay_another(steps: list[int], trail: Trail) -> None:
    stuck, reached, handled = asyncio.Event(), asyncio.Event(), list[str]()

    async def read(event: Event, deps: None) -> None:
        assert event.breadcrumb is not None
        handled.append(str(event.breadcrumb.context["text"]))
        if event.breadcrumb.session == "crowded":
            stuck.set()
            await asyncio.get_running_loop().create_future()
        reached.set()

    worker = Worker(trail, [handler_of(read)], by=ME, worker_id="w", concurrency=2)
    await worker.register()
    for first in range(0, 20_000, 2_000):
        await trail.records.create_many([note(str(first + at), "crowded") for at in range(2_000)], by=ME)
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(stuck.wait(), PATIENCE)
        await eventually(lambda: has_looked_at_everything(trail), "the events are queued")
        steps.clear()
        await trail.records.create(note("urgent", "quiet"), by=ME)
        await asyncio.wait_for(reached.wait(), PATIENCE)
        work = sum(steps)
    finally:
        worker.stop()
        await running

    assert handled == ["0", "urgent"]
    assert 0 < work < 20_000, f"{work:,} steps of SQLite behind 20,000 waiting events"


async def has_looked_at_everything(trail: Trail) -> bool:
    [state] = await trail.deliveries.consumers(by=ME)
    return state.cursor >= await trail.log.head()


@pytest.mark.req("SYL-112")
@pytest.mark.req("SYL-116")
async def test_each_session_keeps_its_order_under_failures_and_retries(trail: Trail) -> None:
    luck, tries = random.Random(4), Counter[int]()

    async def read(event: Event, deps: None) -> list[Draft]:
        assert event.breadcrumb is not None
        tries[event.seq] += 1
        if tries[event.seq] < 20 and luck.random() < 0.3:
            raise ConnectionError("a passing failure")
        return [
            Draft(
                title="Read",
                schema_name="read.v1",
                tags=event.breadcrumb.session_tags,
                context={"of": event.seq},
                embed="never",
            )
        ]

    retry = RetryPolicy(attempts=20, backoff=0.002, backoff_limit=0.01)
    workers = [Worker(trail, [handler_of(read, retry=retry)], by=ME, worker_id=f"w{n}") for n in range(3)]
    await workers[0].register()
    for number in range(15):
        await trail.records.create_many([note(str(number), f"s{session}") for session in range(10)], by=ME)
    running = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        await eventually(lambda: is_settled(trail, "reader", ME), "everything is read")
    finally:
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)

    assert max(tries.values()) > 1, "nothing failed"
    orders: dict[str | None, list[int]] = defaultdict(list)
    read_notes = Selector(schema_name="read.v1")
    for output in (await trail.records.list(read_notes, by=ME, limit=1_000, oldest_first=True)).items:
        orders[output.session].append(int(output.context["of"]))
    assert len(orders) == 10
    for order in orders.values():
        assert len(order) == 15
        assert order == sorted(order)
