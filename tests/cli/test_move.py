"""Moving a trail between files and servers, with everything on it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest

from clew.clock import SystemClock
from clew.config import read_config
from clew.errors import SchemaViolation, StorageError
from clew.llm import open_embedder
from clew.trail import open_replica, open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.move.tables import TABLES
from clew.trail.ownership import Ownership, open_owned
from clew.trail.postgres.operations.replica import DERIVED as POSTGRES_DERIVED
from clew.trail.sqlite.replica import DERIVED as SQLITE_DERIVED
from clew.trail.store import Trail
from tests.cli.conftest import Clew, Result
from tests.postgres_server import PostgresServer
from tests.trail_contents import ANN, EVE, KEY, OWNERS, fill, read_all

KILLED = """
import asyncio, os, signal, sys
from clew.trail import open_replica
from clew.trail.move.move import move_trail

_, source, target, stage = sys.argv
source, target = open_replica(source, "locked"), open_replica(target, "target")
clear = target.clear

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def tell(doing, done, total):
    if doing == stage and done > 40:
        die()

if stage == "cleared":
    target.clear = lambda *given: (clear(*given), die())
asyncio.run(move_trail(source, target, tell))
"""
"""A move that is killed in the middle of copying or comparing, or when it has cleared the target."""


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    made: list[str] = []

    def make() -> str:
        made.append(postgres_server.make_database())
        return made[-1]

    yield make
    for address in made:
        postgres_server.give_back(address)


Places = Callable[[str], str]


@pytest.fixture
def places(databases: Callable[[], str], folder: Path) -> Places:
    """New places of a kind: `sqlite` or `postgres`."""
    numbers = iter(range(100))

    def make(kind: str) -> str:
        return databases() if kind == "postgres" else f"sqlite://{folder}/moved-{next(numbers)}/trail.db"

    return make


def on(address: str, work: Callable[[Trail], Any]) -> Any:
    """The result of some work on a trail that is open only for it."""

    async def run() -> Any:
        trail = await open_trail(address, SystemClock(), open_embedder("hash"))
        try:
            return await work(trail)
        finally:
            await trail.close()

    return asyncio.run(run())


def kill_move(source: str, target: str, stage: str) -> None:
    """Kill a move at a stage."""
    killed = subprocess.run([sys.executable, "-c", KILLED, source, target, stage], timeout=60, check=False)
    assert killed.returncode == -9


def counts(result: Result) -> dict[str, tuple[str, str]]:
    return {table: (rows, owners) for table, rows, owners, _ in result.rows}


both_ways = pytest.mark.parametrize(("old", "new"), [("sqlite", "postgres"), ("postgres", "sqlite")])


@both_ways
@pytest.mark.req("BEY-07")
@pytest.mark.req("RCR-22")
@pytest.mark.req("RCR-23")
def test_everything_on_a_trail_is_moved(clew: Clew, places: Places, old: str, new: str) -> None:
    source, target = places(old), places(new)
    on(source, fill)
    before = on(source, read_all)
    done = clew("trail", "move", source, target)
    assert done.code == 0, done.err
    assert counts(done)["secrets"] == ("2", "2")
    assert all(rows != "0" for table, (rows, _) in counts(done).items() if table != "vectors_next")
    assert on(target, read_all) == before
    assert on(target, lambda trail: trail.upkeep.check()) == []
    assert on(source, read_all) == before, "the source was changed"


@both_ways
@pytest.mark.req("RCR-28")
@pytest.mark.req("RCR-29")
def test_work_goes_on_where_it_was(clew: Clew, places: Places, old: str, new: str) -> None:
    source, target = places(old), places(new)
    on(source, fill)
    assert clew("trail", "move", source, target).code == 0

    async def go_on(trail: Trail) -> None:
        head = await trail.log.head()
        again = await trail.records.create(Draft(title="Second", context={}, idempotency_key=KEY), by=ANN)
        assert again.context == {"request_id": "r-1"}, "a key that was used writes nothing new"
        with pytest.raises(SchemaViolation):
            await trail.records.create(Draft(title="x", schema_name="tool.v1", context={}), by=ANN)
        written = await trail.records.create(Draft(title="Third", context={"text": "sorting"}), by=ANN)
        assert await trail.log.creation_of(written.id, by=ANN) == head + 1
        claims = await trail.deliveries.claim("errands", by=ANN, worker="new", limit=10)
        # the lease of the old worker did not come along, its attempt does not count, and sessions stay in order
        titles = {each.event.breadcrumb.title: each.attempt for each in claims if each.event.breadcrumb}
        assert titles == {"s1 1": 1, "s2 2": 1, "s3 1": 1}
        for claim in claims:
            await trail.deliveries.finish(claim, [], by=ANN)
        later = await trail.deliveries.claim("errands", by=ANN, worker="new", limit=10)
        assert sorted(each.event.breadcrumb.title for each in later if each.event.breadcrumb) == ["s1 2", "s3 2"]
        load = await trail.deliveries.load("pool", by=EVE)
        assert load is not None
        assert (sum(each.running for each in load.groups), sum(each.waiting for each in load.groups)) == (0, 6)
        await trail.secrets.put("another", "value", by=ANN)

    on(target, go_on)


@both_ways
@pytest.mark.parametrize("stage", ["copied", "compared"])
@pytest.mark.req("BEY-07")
def test_a_move_that_was_killed_goes_on(clew: Clew, places: Places, old: str, new: str, stage: str) -> None:
    source, target = places(old), places(new)
    on(source, fill)
    before = on(source, read_all)
    kill_move(source, target, stage)
    with pytest.raises(StorageError, match="is not finished"):
        on(target, read_all)
    assert "is not finished" in clew("trail", "move", target, places("sqlite")).err
    done = clew("trail", "move", source, target, "--json").json
    total = sum(each["rows"] for each in done["tables"])
    assert done["resumed"]
    assert done["copied"] == 0 if stage == "compared" else 0 < done["copied"] < total
    assert on(target, read_all) == before


def test_a_source_that_was_changed_after_the_kill_is_copied_anew(clew: Clew, places: Places) -> None:
    source, target = places("sqlite"), places("postgres")
    on(source, fill)
    kill_move(source, target, "copied")

    async def change(trail: Trail) -> None:
        counted = [each for each in (await trail.records.list(by=ANN)).items if each.title == "Counted"]
        await trail.records.read(counted[0].id, by=ANN)  # no event: only the comparison finds it

    on(source, change)
    done = clew("trail", "move", source, target, "--json").json
    assert done["copied"] > sum(each["rows"] for each in done["tables"])
    assert on(target, read_all) == on(source, read_all)
    on(source, lambda trail: trail.records.create(Draft(title="Late", context={}), by=EVE))
    refused = clew("trail", "move", source, target)
    assert (refused.code, "state of the same trail" in refused.err) == (1, True)


@both_ways
@pytest.mark.req("BEY-07")
def test_a_move_that_was_killed_when_it_had_cleared_the_target_goes_on(
    clew: Clew, places: Places, old: str, new: str
) -> None:
    source, target = places(old), places(new)
    on(source, fill)
    kill_move(source, target, "compared")
    on(source, lambda trail: trail.records.create(Draft(title="Late", context={}), by=EVE))
    kill_move(source, target, "cleared")
    done = clew("trail", "move", source, target)
    assert done.code == 0, done.err
    assert on(target, read_all) == on(source, read_all)


def test_a_move_that_is_repeated_only_compares(clew: Clew, places: Places) -> None:
    source, target = places("sqlite"), places("postgres")
    on(source, fill)
    first = clew("trail", "move", source, target)
    again = clew("trail", "move", source, target)
    assert (again.code, again.out) == (0, first.out)
    assert again.err.startswith("Compared ")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_target_with_other_content_is_refused(clew: Clew, places: Places, kind: str) -> None:
    source, target = places("sqlite"), places(kind)
    on(source, fill)
    on(target, lambda trail: trail.records.create(Draft(title="Mine", context={}), by=EVE))
    for more in ((), ("--dry-run",)):
        refused = clew("trail", "move", source, target, *more)
        assert (refused.code, "another trail" in refused.err) == (1, True), refused.err
    assert on(target, lambda trail: trail.log.head()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("busy", ["source", "target"])
def test_a_trail_that_another_process_has_open_is_refused(
    clew: Clew, places: Places, kind: str, busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "postgres" if kind == "sqlite" else "sqlite"
    source, target = (places(kind), places(other)) if busy == "source" else (places(other), places(kind))
    on(source, fill)
    script = (
        "import asyncio, sys; from clew.trail import open_trail\n"
        "async def run():\n trail = await open_trail(sys.argv[1]); print('open', flush=True); sys.stdin.read(1)\n"
        "asyncio.run(run())"
    )
    address = source if busy == "source" else target
    with subprocess.Popen(
        [sys.executable, "-c", script, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with monkeypatch.context() as impatient:
            impatient.setattr("clew.trail.sqlite.replica.PATIENCE_MILLISECONDS", 100)
            impatient.setattr("clew.trail.postgres.operations.replica.PATIENCE_SECONDS", 0.1)
            refused = clew("trail", "move", source, target)
        assert (refused.code, "another process has" in refused.err, refused.err.count("\n")) == (1, True, 1)
        assert "End `clew up`" in refused.err
        holder.kill()
    assert clew("trail", "move", source, target).code == 0


@both_ways
def test_a_dry_run_changes_nothing(clew: Clew, places: Places, old: str, new: str, folder: Path) -> None:
    source, target = places(old), places(new)
    on(source, fill)
    if new == "postgres":  # as an administrator makes it
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("DROP OWNED BY clew")
            connection.execute("CREATE SCHEMA IF NOT EXISTS public")
    files = sorted(folder.rglob("*"))
    plan = clew("trail", "move", source, target, "--dry-run", "--json").json
    assert (plan["state"], plan["rows"]["secrets"], plan["copied"]) == ("empty", 2, 0)
    text = clew("trail", "move", source, target, "--dry-run")
    assert "Nothing was changed" in text.err
    assert sorted(folder.rglob("*")) == files
    if new == "postgres":
        with psycopg.connect(target) as connection:
            found = connection.execute("SELECT count(*) FROM pg_class WHERE relname = 'breadcrumbs'").fetchone()
            assert found == (0,)


def test_secrets_need_their_key(clew: Clew, places: Places) -> None:
    source, target = places("sqlite"), places("postgres")
    on(source, fill)
    key = Path(source.removeprefix("sqlite://") + ".key")
    kept = key.read_bytes()
    key.unlink()
    refused = clew("trail", "move", source, target)
    assert (refused.code, str(key) in refused.err, "Copy it there" in refused.err) == (1, True, True)
    key.write_bytes(kept[::-1])
    assert "cannot be opened" in clew("trail", "move", source, target).err
    key.write_bytes(kept)
    done = clew("trail", "move", source, target, "--json").json
    assert Path(done["key_file"]).read_bytes() == kept
    assert Path(done["key_file"]).stat().st_mode & 0o777 == 0o600


def test_a_password_is_never_shown(clew: Clew, places: Places) -> None:
    source, target = places("sqlite"), places("postgres")
    on(source, fill)
    secret = target.replace("clew@", "clew:hunter2@")
    shown = [
        clew("trail", "move", source, secret, "--dry-run"),
        clew("trail", "move", source, secret),
        clew("trail", "move", source, secret, "--json"),
        clew("trail", "move", source, secret + "_absent"),
        clew("trail", "move", source, secret.replace("postgresql:", "mysql:")),
        clew("trail", "move", secret, secret),
    ]
    assert [each.code for each in shown] == [0, 0, 0, 1, 1, 2]
    assert not any("hunter2" in each.out + each.err for each in shown)


@pytest.mark.parametrize("address", ["postgresql://clew:x%shunter2@127.0.0.1:1/trail", "host=db password=x%shunter2"])
@pytest.mark.parametrize("sign", ["/", "@", "", "/@"])
def test_a_password_with_a_sign_that_is_not_escaped_is_not_shown(
    clew: Clew, monkeypatch: pytest.MonkeyPatch, address: str, sign: str
) -> None:
    monkeypatch.setenv("CLEW_TRAIL", address % sign)
    shown = clew("trail", "ls")
    assert shown.code == 1
    assert "hunter2" not in shown.out + shown.err


def test_the_settings_show_no_part_of_a_password_with_a_sign_that_is_not_escaped(
    clew: Clew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_TRAIL", "postgresql://clew:x@hunter2@127.0.0.1:1/trail")
    shown = clew("config", "show")
    assert "127.0.0.1:1/trail" in shown.out
    assert "hunter2" not in shown.out


def test_mistakes_are_told_in_one_line(clew: Clew, places: Places, tmp_path: Path) -> None:
    absent = clew("trail", "move", str(tmp_path / "absent.db"), places("postgres"))
    assert (absent.code, "there is no trail at" in absent.err) == (1, True)
    (tmp_path / "notes.db").write_text("these are notes, and no database at all" * 50)
    foreign = clew("trail", "move", str(tmp_path / "notes.db"), str(tmp_path / "new.db"))
    assert (foreign.code, foreign.err.count("\n")) == (1, 1)
    on(f"sqlite://{tmp_path}/a.db", fill)
    same = clew("trail", "move", str(tmp_path / "a.db"), f"sqlite://{tmp_path}/./a.db")
    assert (same.code, "is the trail that is to be moved" in same.err) == (2, True)
    away = clew("trail", "move", str(tmp_path / "a.db"), "postgresql://clew@127.0.0.1:1/trail")
    assert (away.code, "Is the PostgreSQL server running?" in away.err) == (1, True)


def test_a_moved_trail_belongs_to_the_user_as_before(clew: Clew, folder: Path, places: Places) -> None:
    clew("trail", "put", "--title", "here")
    server = places("postgres")
    assert clew("trail", "move", str(folder / "trail.db"), server).code == 0
    (folder / "trail.db").unlink()
    back = clew("trail", "move", server, str(folder))
    assert (back.code, "clew trust" in back.err) == (0, False)

    async def holds(trail: Trail) -> bool:
        return await Ownership(trail, read_config(folder), is_made=False).holds()

    assert on(f"sqlite://{folder}/trail.db", holds)
    other = folder.parent / "other" / ".clew"
    other.mkdir(parents=True)
    on(f"sqlite://{other}/trail.db", fill)
    foreign = clew("trail", "move", str(other), str(folder.parent / "third.db"))
    assert "before you agree to it: `clew trust`" in foreign.err


def test_a_foreign_trail_on_a_server_needs_consent_as_a_file_does(clew: Clew, folder: Path, places: Places) -> None:
    other = folder.parent / "other" / ".clew"
    other.mkdir(parents=True)
    on(f"sqlite://{other}/trail.db", fill)

    def holds(server: str) -> bool:
        async def look() -> bool:
            config = msgspec.structs.replace(read_config(folder), trail=server)
            trail, ownership = await open_owned(config, lambda: open_trail(config.trail_url))
            try:
                return await ownership.holds()
            finally:
                await trail.close()

        return asyncio.run(look())

    server, mine, further = places("postgres"), places("postgres"), places("postgres")
    moved = clew("trail", "move", str(other), server)
    assert (moved.code, "before you agree to it: `clew trust`" in moved.err) == (0, True)
    assert not holds(server)
    assert clew("trail", "move", server, further).code == 0
    assert not holds(further)
    assert clew("trail", "move", "--mine", str(other), mine).code == 0
    assert holds(mine)
    assert clew("trail", "move", "--mine", str(other), server).code == 0
    assert holds(server), "said when it was there already"

    async def waits() -> bool:
        config = msgspec.structs.replace(read_config(folder), trail=further)
        trail, ownership = await open_owned(config, lambda: open_trail(config.trail_url))
        try:
            assert not await ownership.holds()
            await trail.upkeep.adopt()  # as somebody on another machine does
            return await ownership.holds()
        finally:
            await trail.close()

    assert asyncio.run(waits()), "an open trail notices consent from elsewhere"


def test_an_old_source_is_moved_and_stays_as_old_as_it_was(clew: Clew, places: Places, tmp_path: Path) -> None:
    source, steps = tmp_path / "old.db", sorted(files("clew.trail.sqlite").joinpath("migrations").iterdir(), key=str)
    with closing(apsw.Connection(str(source))) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        for step in steps[:-1]:
            connection.execute(step.read_text(encoding="utf-8"))
        connection.execute(f"PRAGMA user_version={len(steps) - 1}")

    def version() -> int:
        with closing(apsw.Connection(str(source))) as connection:
            return int(connection.execute("PRAGMA user_version").get)

    assert clew("trail", "move", str(source), str(tmp_path / "new.db"), "--dry-run").code == 0
    assert version() == len(steps) - 1
    for target in (f"sqlite://{tmp_path}/new.db", places("postgres")):
        done = clew("trail", "move", str(source), target)
        assert done.code == 0, done.err
        assert version() == len(steps) - 1
        assert on(target, lambda trail: trail.upkeep.check()) == []


def test_a_look_at_an_empty_database_makes_no_tables_there(clew: Clew, databases: Callable[[], str]) -> None:
    source = databases()
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA bare")
    empty = f"{source}?options=-csearch_path%3Dbare,public"
    try:
        assert clew("trail", "move", empty, "new.db", "--dry-run").code == 0
        with psycopg.connect(source) as connection:
            row = connection.execute("SELECT count(*) FROM pg_class WHERE relnamespace = 'bare'::regnamespace")
            assert row.fetchone() == (0,)
    finally:
        with psycopg.connect(source, autocommit=True) as connection:
            connection.execute("DROP SCHEMA bare CASCADE")


def test_rows_of_earlier_versions_are_moved(clew: Clew, places: Places) -> None:
    source, target = places("sqlite"), places("postgres")
    on(source, fill)
    before = on(source, read_all)
    connection = apsw.Connection(source.removeprefix("sqlite://"))
    connection.execute("UPDATE breadcrumbs SET checksum = lower(hex(checksum))")
    connection.execute("UPDATE events SET id = (SELECT b.id FROM breadcrumbs b WHERE b.rid = events.rid) WHERE rid < 3")
    connection.close()
    assert clew("trail", "move", source, target).code == 0
    assert on(target, read_all) == before


def test_a_new_table_or_column_must_be_moved_or_derived(places: Places) -> None:
    """A new one must be listed in `clew.trail.move.tables`, or in `DERIVED` of a replica."""
    moved = {table.name: set(table.columns) for table in TABLES}
    for kind, derived in (("sqlite", SQLITE_DERIVED), ("postgres", POSTGRES_DERIVED)):
        address = places(kind)
        on(address, lambda trail: trail.log.head())
        columns = _sqlite_columns(address) if kind == "sqlite" else _postgres_columns(address)
        assert set(columns) == {*moved, *derived}, kind
        for table, names in moved.items():
            assert columns[table] == {*names, *derived.get(table, ())}, f"{kind}: {table}"


def _sqlite_columns(address: str) -> dict[str, set[str]]:
    connection = apsw.Connection(address.removeprefix("sqlite://"))
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    found = {
        name: {each for (each,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        for (name,) in tables
    }
    connection.close()
    return found


def _postgres_columns(address: str) -> dict[str, set[str]]:
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        ).fetchall()
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def test_every_owner_is_compared(places: Places) -> None:
    source = places("sqlite")
    on(source, fill)
    replica = open_replica(source, "snapshot")
    owners = {table.name: {owner for owner, _ in replica.read(table, ())} for table in TABLES}
    replica.close()
    everyone = {each.owner_id for each in OWNERS}
    assert {name for name, found in owners.items() if found != everyone} == {"meta", "vectors_next"}
