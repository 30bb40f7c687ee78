"""Backup and restore, as docs/guides/backup.md says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Clew
from tests.cli.test_move import on
from tests.postgres_server import PostgresServer, find_binaries
from tests.trail_contents import fill, read_all

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "backup.md"
COMMANDS = re.findall(r"^\$ (.+)$", GUIDE.read_text(encoding="utf-8"), re.M)
WRITER = """
import asyncio, sys
from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft

async def run():
    trail = await open_trail(sys.argv[1])
    me = Principal(owner_id="writer")
    for n in range(1_000_000):
        await trail.records.create(Draft(title=f"w {n}", context={"n": n}), by=me)
        if n == 20:
            print("writing", flush=True)

asyncio.run(run())
"""


def guide_command(beginning: str) -> str:
    """The command of the guide that begins so; there is one."""
    (found,) = {each for each in COMMANDS if each.startswith(beginning)}
    return found


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database as an administrator makes it: the extension and nothing else."""
    admin = postgres_server.address("postgres", "root")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored OWNER clew ENCODING 'UTF8' TEMPLATE template0")
    with psycopg.connect(postgres_server.address("restored", "root"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    yield postgres_server.address("restored")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("DROP DATABASE restored WITH (FORCE)")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copy_of_a_trail_that_is_written_to_is_whole(
    clew: Clew, folder: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite://{folder}/trail.db" if kind == "sqlite" else request.getfixturevalue("postgres_address")
    monkeypatch.setenv("CLEW_TRAIL", address)
    on(address, fill)
    copy = tmp_path / "monday.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        done = clew("trail", "backup", str(copy))
        assert writer.poll() is None
        writer.kill()
    assert done.code == 0, done.err
    assert f"The key of 2 secrets is {copy}.key." in done.out
    assert [file.stat().st_mode & 0o777 for file in (copy, tmp_path / "monday.db.key")] == [0o600, 0o600]
    assert sorted(each.name for each in tmp_path.glob("*monday*")) == ["monday.db", "monday.db.key"]
    found, present = on(f"sqlite://{copy}", read_all), on(address, read_all)
    assert 20 < found.pop("head") <= present.pop("head")
    assert found == present
    assert on(f"sqlite://{copy}", lambda trail: trail.upkeep.check()) == []
    assert clew("trail", "backup", str(copy)).code == 1, "a file that exists stays"
    assert clew("trail", "backup", str(copy), "--force", "--json").json["target"] == str(copy)


def test_counts_of_a_copy_and_of_an_owner_say_what_they_count(clew: Clew, folder: Path, tmp_path: Path) -> None:
    clew("trail", "put", "--title", "here")
    clew("trail", "put", "--title", "gone", "--ttl", "2020-01-01T00:00:00Z")
    clew("trail", "put", "--title", "other", "--owner", "other")
    clew("doctor")  # opening the catalog writes the tools of the folder
    stats = clew("trail", "stats", "--json").json["breadcrumbs"]
    told = clew("trail", "stats")
    assert told.rows[0] == ["breadcrumbs", str(stats)]
    assert told.err == "The counts include the records that local can see, without expired ones.\n"
    found = {each["name"]: each["what"] for each in clew("doctor", "--json").json["findings"]}
    assert found["trail"].endswith(f"; {stats:,} breadcrumbs that local sees")
    copied = clew("trail", "backup", f"{tmp_path}/all.db").out
    others = clew("trail", "stats", "--owner", "other", "--json").json["breadcrumbs"]
    assert copied.startswith(f"Wrote {stats + others + 1:,} breadcrumbs (expired ones included) and ")
    assert " of 2 owners to " in copied


def test_a_copy_replaces_no_file_of_the_trail_and_no_folder(clew: Clew, folder: Path) -> None:
    clew("trail", "put", "--title", "here")
    on(f"sqlite://{folder}/trail.db", fill)
    before = on(f"sqlite://{folder}/trail.db", read_all)
    (folder / "link").symlink_to("trail.db")
    (folder / "keys").mkdir()
    for name in ("trail.db", "trail.db.key", "trail.db-wal", "trail.db-shm", "link", "keys"):
        refused = clew("trail", "backup", f"{folder}/{name}", "--force")
        assert (refused.code, refused.err.count("\n")) == (1, 1), name
    assert on(f"sqlite://{folder}/trail.db", read_all) == before


def test_a_copy_is_restored_in_the_place_of_a_damaged_file(clew: Clew, folder: Path, tmp_path: Path) -> None:
    clew("trail", "put", "--title", "here")
    on(f"sqlite://{folder}/trail.db", fill)
    before = on(f"sqlite://{folder}/trail.db", read_all)
    assert clew("trail", "backup", f"{tmp_path}/monday.db").code == 0
    (folder / "trail.db").write_bytes(b"damaged" * 500)
    assert "WRONG" in clew("doctor").out
    for beginning in ("mkdir damaged", "cp /backups/monday.db .clew", "cp /backups/monday.db.key"):
        command = guide_command(beginning).replace("/backups", str(tmp_path))
        subprocess.run(command, shell=True, check=True, cwd=folder.parent, timeout=60)
    assert on(f"sqlite://{folder}/trail.db", read_all) == before
    found = {each["name"]: each for each in clew("doctor", "--json").json["findings"]}
    assert (found["trail"]["level"], "no damage" in found["trail"]["what"]) == ("ok", True)


def test_a_copy_is_restored_to_a_server(
    clew: Clew, folder: Path, tmp_path: Path, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clew("trail", "put", "--title", "here")
    on(f"sqlite://{folder}/trail.db", fill)
    clew("trail", "backup", f"{tmp_path}/monday.db")
    move = guide_command("clew trail move").replace("postgresql://clew@db.example/restored", empty_database)
    assert clew(*move.replace("/backups", str(tmp_path)).split()[1:]).code == 0
    assert on(empty_database, read_all) == on(f"sqlite://{folder}/trail.db", read_all)
    monkeypatch.setenv("CLEW_TRAIL", empty_database)
    assert clew("trail", "ls").rows[-1][3] == "here"


@pytest.mark.req("BEY-07")
def test_a_dump_by_the_role_of_the_trail_holds_all_owners_and_is_restored(
    clew: Clew, postgres_address: str, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(postgres_address, fill)
    before = on(postgres_address, read_all)
    for beginning in ("PGOPTIONS=", "pg_restore"):
        command = guide_command(beginning).replace("postgresql://clew@db.example/trail", postgres_address)
        command = command.replace("postgresql://clew@db.example/restored", empty_database)
        path = f"{find_binaries()}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert on(empty_database, read_all) == before
    monkeypatch.setenv("CLEW_TRAIL", empty_database)
    found = {each["name"]: each["level"] for each in clew("doctor", "--json").json["findings"]}
    assert (found["rls"], found["indexes"], found["trail"]) == ("ok", "ok", "ok")
