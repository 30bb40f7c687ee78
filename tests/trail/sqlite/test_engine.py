"""The SQLite file: transactions, one writer, many readers, and checks at its opening."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.clock import ManualClock, from_micros, to_micros
from clew.errors import Busy, ConfigError, Corrupted, InvalidInput, ReadOnly, StorageError, StorageFull
from clew.sqlite_file import Sql, translated
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.edge import Edge
from clew.trail.sqlite import SqliteTrail
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.selector_sql import add_functions
from clew.trail.store import Trail

PATIENCE = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trail.db"


@pytest.fixture
def engine(path: Path, clock: ManualClock) -> Iterator[Engine]:
    opened = Engine(path, clock, on_connect=add_functions)
    yield opened
    opened.close()


def put(key: str) -> Callable[[Writing], str]:
    def work(writing: Writing) -> str:
        writing.execute("INSERT INTO meta VALUES (?, 'x')", (key,))
        return key

    return work


def begin(engine: Engine, work: Any) -> asyncio.Future[Any]:
    return asyncio.ensure_future(engine.write(work))


def keys(connection: Sql) -> set[str]:
    return {key for (key,) in connection.execute("SELECT key FROM meta")}


# -- writing ----------------------------------------------------------------------------------------------


async def test_a_unit_of_work_is_committed_when_it_returns(engine: Engine, path: Path) -> None:
    assert await engine.write(put("a")) == "a"
    other = apsw.Connection(str(path))
    assert "a" in keys(other)
    other.close()


async def test_a_unit_that_fails_is_undone_alone(engine: Engine) -> None:
    rolled_back: list[str] = []
    engine.on_rollback = lambda: rolled_back.append("undone")

    def broken(writing: Writing) -> None:
        writing.execute("INSERT INTO meta VALUES ('broken', '')")
        raise InvalidInput("a", "is wrong")

    units = [engine.write(put("a")), engine.write(broken), engine.write(put("b"))]
    first, second, third = await asyncio.gather(*units, return_exceptions=True)
    assert (first, third) == ("a", "b")
    assert isinstance(second, InvalidInput)
    assert engine.read(keys) >= {"a", "b"}
    assert "broken" not in engine.read(keys)
    assert rolled_back == ["undone"]


async def test_an_error_of_the_driver_comes_as_ours(engine: Engine) -> None:
    with pytest.raises(StorageError):
        await engine.write(lambda writing: writing.execute("NO SUCH STATEMENT"))
    with pytest.raises(StorageError):
        engine.read(lambda connection: connection.execute("SELECT * FROM absent").fetchall())
    assert await engine.write(put("a")) == "a"


async def test_pending_writes_share_a_commit_and_return_after_it(engine: Engine) -> None:
    commits: list[list[int]] = []
    gate, entered = threading.Event(), threading.Event()
    engine.on_commit = commits.append

    def hold(writing: Writing) -> None:
        entered.set()
        gate.wait(PATIENCE)

    def change(number: int) -> Callable[[Writing], int]:
        def work(writing: Writing) -> int:
            writing.changed.append(number)
            return number

        return work

    held = begin(engine, hold)
    await asyncio.to_thread(entered.wait, PATIENCE)
    waiting = [begin(engine, change(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert commits == []
    gate.set()
    assert await asyncio.gather(*waiting) == [0, 1, 2, 3, 4]
    assert await held is None
    assert commits == [[0, 1, 2, 3, 4]]


async def test_a_full_queue_is_refused_and_recovers(path: Path, clock: ManualClock) -> None:
    engine = Engine(path, clock, on_connect=add_functions, queue_limit=2)
    gate, entered = threading.Event(), threading.Event()

    def hold(writing: Writing) -> None:
        entered.set()
        gate.wait(PATIENCE)

    held = begin(engine, hold)
    await asyncio.to_thread(entered.wait, PATIENCE)
    waiting = [begin(engine, put(key)) for key in "ab"]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await engine.write(put("c"))
    gate.set()
    assert await asyncio.gather(held, *waiting) == [None, "a", "b"]
    assert await engine.write(put("c")) == "c"
    engine.close()


async def test_a_caller_that_is_cancelled_while_it_waits_writes_nothing(engine: Engine) -> None:
    gate, entered = threading.Event(), threading.Event()

    def hold(writing: Writing) -> None:
        entered.set()
        gate.wait(PATIENCE)

    held = begin(engine, hold)
    await asyncio.to_thread(entered.wait, PATIENCE)
    given_up = begin(engine, put("given up"))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    gate.set()
    await held
    await engine.write(put("after"))
    assert "given up" not in engine.read(keys)


async def test_durable_work_is_flushed_and_the_rest_need_not_be(engine: Engine) -> None:
    def level(writing: Writing) -> int:
        return int(writing.execute("PRAGMA synchronous").get)

    full, normal = 2, 1
    assert await engine.write(level) == full
    assert await engine.write(level, durable=False) == normal
    assert await engine.write(level) == full


async def test_the_writing_connection_keeps_foreign_keys_and_a_log(engine: Engine) -> None:
    def settings(writing: Writing) -> tuple[int, str]:
        return writing.execute("PRAGMA foreign_keys").get, writing.execute("PRAGMA journal_mode").get

    assert await engine.write(settings) == (1, "wal")


async def test_nothing_of_a_deleted_breadcrumb_stays_in_the_file(trail: Trail, me: Principal, tmp_path: Path) -> None:
    drafts = [Draft(title=title, context={}, tags=["t"], embedding=[1.0]) for title in "ab"]
    first, second = await trail.records.create_many(drafts, by=me)
    await trail.edges.add([Edge(source=first.id, target=second.id, type="calls")], by=me)
    await trail.records.update(first.id, Change(title="A"), expect=1, by=me)
    for made in (first, second):
        await trail.records.delete(made.id, by=me)
    await trail.close()
    with apsw.Connection(str(tmp_path / "trail.db")) as connection:
        for table in ("breadcrumbs", "versions", "tags", "vectors", "terms", "edges"):
            assert connection.execute(f"SELECT count(*) FROM {table}").get == 0, table


async def test_a_closed_engine_refuses_work_and_closing_again_is_harmless(path: Path, clock: ManualClock) -> None:
    engine = Engine(path, clock, on_connect=add_functions)
    accepted = [begin(engine, put(f"k{number}")) for number in range(20)]
    await asyncio.sleep(0)
    engine.close()
    engine.close()
    assert await asyncio.gather(*accepted) == [f"k{number}" for number in range(20)]
    with pytest.raises(StorageError):
        await engine.write(put("late"))
    again = Engine(path, clock, on_connect=add_functions)
    assert {f"k{number}" for number in range(20)} <= again.read(keys)
    again.close()


async def test_two_engines_on_one_file_take_turns(path: Path, clock: ManualClock) -> None:
    engines = [Engine(path, clock, on_connect=add_functions) for _ in range(2)]
    await asyncio.gather(*(engines[number % 2].write(put(f"k{number}")) for number in range(60)))
    for engine in engines:
        assert len([key for key in engine.read(keys) if key.startswith("k")]) == 60
        engine.close()


# -- reading ----------------------------------------------------------------------------------------------


async def test_a_reader_cannot_write(engine: Engine) -> None:
    with pytest.raises(StorageError):
        engine.read(lambda connection: connection.execute("DELETE FROM meta"))
    with pytest.raises(StorageError):
        await engine.read_aside(lambda connection: connection.execute("INSERT INTO meta VALUES ('a', 'b')"))


async def test_a_longer_read_sees_one_moment(engine: Engine) -> None:
    looked, written = threading.Event(), threading.Event()

    def work(connection: Sql) -> tuple[set[str], set[str]]:
        before = keys(connection)
        looked.set()
        assert written.wait(PATIENCE)
        return before, keys(connection)

    reading = asyncio.ensure_future(engine.read_aside(work))
    await asyncio.to_thread(looked.wait, PATIENCE)
    await engine.write(put("meanwhile"))
    written.set()
    before, after = await reading
    assert before == after
    assert "meanwhile" in engine.read(keys)


# -- time -------------------------------------------------------------------------------------------------


def test_time_goes_on_at_the_pace_of_the_clock_and_never_backwards(engine: Engine, clock: ManualClock) -> None:
    moments = []
    for seconds in (0, 5, -100, 1, 0, 50, 3):
        clock.advance(seconds=seconds)
        moments.append(engine.now())
    assert moments == sorted(moments)
    assert moments[-1] - moments[-2] == 3_000_000


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5.5))])))
def test_microseconds_and_back(moment: datetime) -> None:
    micros = to_micros(moment)
    if -62_135_596_800_000_000 <= micros < 253_402_300_800_000_000:
        assert from_micros(micros) == moment


# -- opening ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"x", b"SQLite format 3\x00", b"\x00" * 4_096])
async def test_a_file_that_is_no_trail_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Corrupted):
        await open_trail(f"sqlite://{path}")
    assert path.read_bytes() == content


async def test_an_empty_file_becomes_a_trail(path: Path, me: Principal) -> None:
    path.touch()
    trail = await open_trail(f"sqlite://{path}")
    assert (await trail.records.create(Draft(title="a", context={}), by=me)).version == 1
    await trail.close()


async def test_a_file_that_is_cut_short_is_refused(path: Path, me: Principal) -> None:
    trail = await open_trail(f"sqlite://{path}")
    await trail.records.create_many([Draft(title=f"t{n}", context={"a": "x" * 500}) for n in range(50)], by=me)
    await trail.close()
    path.write_bytes(path.read_bytes()[:-8_192])
    with pytest.raises(Corrupted):
        await open_trail(f"sqlite://{path}")


async def test_a_trail_of_a_newer_program_is_refused_and_left_alone(path: Path) -> None:
    await (await open_trail(f"sqlite://{path}")).close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("PRAGMA user_version=999")
    with pytest.raises(StorageError, match="newer"):
        await open_trail(f"sqlite://{path}")
    with apsw.Connection(str(path)) as connection:
        assert connection.execute("PRAGMA user_version").get == 999


async def test_folders_on_the_way_are_made_and_an_address_must_be_known(tmp_path: Path) -> None:
    await (await open_trail(f"sqlite://{tmp_path}/a/b/trail.db")).close()
    assert (tmp_path / "a/b/trail.db").exists()
    for address in ("mysql://x", "trail.db", "", "sqlite:/x"):
        with pytest.raises(ConfigError):
            await open_trail(address)
    (tmp_path / "file").touch()
    with pytest.raises((ReadOnly, StorageError)):
        await open_trail(f"sqlite://{tmp_path}/file/trail.db")


async def test_a_trail_in_memory_leaves_nothing_behind(me: Principal) -> None:
    trail = await open_trail("sqlite://:memory:")
    assert isinstance(trail, SqliteTrail)
    folder = trail.path.parent
    await trail.records.create(Draft(title="a", context={}), by=me)
    assert folder.exists()
    await trail.close()
    assert not folder.exists()


async def test_a_closed_trail_is_one_file(path: Path, me: Principal) -> None:
    trail = await open_trail(f"sqlite://{path}")
    await trail.records.create(Draft(title="a", context={}), by=me)
    await trail.close()
    log = path.with_name("trail.db-wal")
    assert not log.exists() or log.stat().st_size == 0


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (apsw.FullError, StorageFull),
        (apsw.CorruptError, Corrupted),
        (apsw.NotADBError, Corrupted),
        (apsw.ReadOnlyError, ReadOnly),
        (apsw.CantOpenError, ReadOnly),
        (apsw.IOError, StorageError),
        (apsw.BusyError, Busy),
        (apsw.SQLError, StorageError),
    ],
)
def test_errors_of_the_driver_are_translated(path: Path, raised: type[Exception], expected: type[StorageError]) -> None:
    with pytest.raises(expected) as caught, translated(path):
        raise raised("told by SQLite")
    assert type(caught.value) is expected
    assert isinstance(caught.value.__cause__, raised)


async def test_writes_go_on_after_a_disk_was_too_full_even_to_open_the_file(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("clew.trail.sqlite.engine.connect", full)
        for work in (full, put("a"), put("b"), put("c")):
            with pytest.raises(StorageFull):
                await asyncio.wait_for(engine.write(work), PATIENCE)
    assert await asyncio.wait_for(engine.write(put("d")), PATIENCE) == "d"
    assert "d" in engine.read(keys)


# -- damage -----------------------------------------------------------------------------------------------


@pytest.fixture
async def damaged(path: Path, me: Principal, clock: ManualClock) -> AsyncIterator[tuple[Trail, list[str]]]:
    """A trail in which somebody changed the title of one record and of an old version of another."""
    trail = await open_trail(f"sqlite://{path}", clock)
    made = await trail.records.create_many([Draft(title=title, context={}) for title in "abc"], by=me)
    await trail.records.update(made[1].id, Change(title="B"), expect=1, by=me)
    await trail.close()
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE breadcrumbs SET title = 'forged' WHERE id = ?", (made[0].id,))
        connection.execute("UPDATE versions SET context = '{\"a\":1}'")
    again = await open_trail(f"sqlite://{path}", clock)
    yield again, [each.id for each in made]
    await again.close()


@pytest.mark.req("RCR-05")
async def test_a_corrupted_row_is_reported_and_the_others_are_served(
    damaged: tuple[Trail, list[str]], me: Principal
) -> None:
    trail, (forged, aged, sound) = damaged
    for call in (trail.records.get(forged, by=me), trail.records.get(aged, by=me, version=1)):
        with pytest.raises(Corrupted):
            await call
    with pytest.raises(Corrupted):
        await trail.records.read(forged, by=me)
    assert (await trail.records.get(aged, by=me)).title == "B"
    assert (await trail.records.get(sound, by=me)).title == "c"


@pytest.mark.req("RCR-05")
async def test_the_check_names_every_damaged_row(damaged: tuple[Trail, list[str]]) -> None:
    trail, (forged, aged, sound) = damaged
    found = await trail.upkeep.check()
    assert len(found) == 2
    assert any(forged in line for line in found)
    assert any(f"{aged} version 1" in line for line in found)
    assert not any(sound in line for line in found)


@pytest.mark.parametrize(("rows", "is_here"), [(10, True), (100_000, False)])
async def test_a_read_that_turns_out_long_begins_again_in_another_thread(
    engine: Engine, rows: int, is_here: bool
) -> None:
    threads: list[threading.Thread] = []

    def count(connection: Sql) -> int:
        threads.append(threading.current_thread())
        numbers = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT count(*) FROM n"
        return int(connection.execute(numbers, (rows,)).get)

    for _ in range(3):
        threads.clear()
        assert await engine.read_either(count) == rows
        assert (threads[-1] is threading.current_thread()) == is_here
