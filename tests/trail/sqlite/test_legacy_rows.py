"""Checksums and the ids of events as they are stored: as bytes, and as text in trails of earlier versions."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from clew.access import Principal
from clew.clock import SystemClock
from clew.errors import Corrupted
from clew.trail.model.breadcrumb import Draft
from clew.trail.sqlite.trail import SqliteTrail

ME = Principal(owner_id="me", agent_id="test")


async def store(path: Path, change: str) -> str:
    """The id of a breadcrumb whose row was changed since."""
    trail = SqliteTrail(path, SystemClock())
    made = await trail.records.create(Draft(title="kept", context={"a": 1}), by=ME)
    await trail.close()
    connection = apsw.Connection(str(path))
    connection.execute(change)
    connection.close()
    return made.id


async def test_a_checksum_stored_as_text_is_read(tmp_path: Path) -> None:
    id = await store(tmp_path / "trail.db", "UPDATE breadcrumbs SET checksum = lower(hex(checksum))")
    trail = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        found = await trail.records.get(id, by=ME)
        assert [each.checksum for each in await trail.records.history(id, by=ME)] == [found.checksum]
        assert len(found.checksum) == 32
    finally:
        await trail.close()


async def test_an_invalid_checksum_is_refused(tmp_path: Path) -> None:
    id = await store(tmp_path / "trail.db", "UPDATE breadcrumbs SET checksum = randomblob(16)")
    trail = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        with pytest.raises(Corrupted):
            await trail.records.get(id, by=ME)
    finally:
        await trail.close()


async def test_an_event_id_stored_as_text_is_read(tmp_path: Path) -> None:
    change = "UPDATE events SET id = (SELECT b.id FROM breadcrumbs b WHERE b.rid = events.rid)"
    id = await store(tmp_path / "trail.db", change)
    trail = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        await trail.records.delete(id, by=ME)
        events, _ = await trail.log.read(0, by=ME)
        assert [event.breadcrumb_id for event in events] == [id, id]
    finally:
        await trail.close()
