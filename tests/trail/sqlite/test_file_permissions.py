"""The files of a trail: owner, permissions, and files that stay unchanged."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from clew.access import Principal
from clew.errors import StorageError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft


@pytest.fixture(autouse=True)
def open_handed() -> Iterator[None]:
    """A process that lets everybody read what it writes, unless it says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_trail_and_all_beside_it_are_readable_by_their_owner_only(tmp_path: Path, me: Principal) -> None:
    folder = tmp_path / "new"
    trail = await open_trail(f"sqlite://{folder}/trail.db")
    await trail.records.create(Draft(title="Private", context={}), by=me)
    await trail.secrets.put("key", "value", by=me)
    files = [path for path in folder.iterdir() if path.is_file()]
    assert {"trail.db", "trail.db-wal", "trail.db.key"} <= {path.name for path in files}
    assert {path.name: oct(rights(path)) for path in files if rights(path) != 0o600} == {}
    await trail.close()


async def test_concurrent_creation_gives_one_complete_key(tmp_path: Path, me: Principal) -> None:
    trails = [await open_trail(f"sqlite://{tmp_path}/trail.db") for _ in range(4)]
    puts = (trail.secrets.put(f"key-{at}", f"value-{at}", by=me) for at, trail in enumerate(trails))
    await asyncio.gather(*puts)
    for at in range(4):
        assert await trails[at - 1].secrets.reveal(f"key-{at}", by=me) == f"value-{at}"
    assert [path.name for path in tmp_path.iterdir() if "key" in path.name] == ["trail.db.key"]
    for trail in trails:
        await trail.close()


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
async def test_a_damaged_key_is_reported_and_not_replaced(tmp_path: Path, me: Principal, content: bytes) -> None:
    key = tmp_path / "trail.db.key"
    key.write_bytes(content)
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db")
    with pytest.raises(StorageError, match=r"trail\.db\.key is not a key"):
        await trail.secrets.put("key", "value", by=me)
    assert key.read_bytes() == content
    await trail.close()


@pytest.mark.parametrize(
    ("journal", "version"),
    [("delete", 0), ("wal", 0), ("wal", 1)],
)
async def test_a_sqlite_file_of_another_program_is_refused_and_unchanged(
    tmp_path: Path, journal: str, version: int
) -> None:
    path = tmp_path / "browser.db"
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode={journal}; PRAGMA user_version={version}").fetchall()
    connection.execute("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('https://example.org')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="another program"):
        await open_trail(f"sqlite://{path}")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["browser.db"]
