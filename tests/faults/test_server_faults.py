"""Rounds of faults under writers and workers on PostgreSQL and NATS: repeated kills, then a count.

A few rounds with a fault of each kind run always, all of them with `make faults-scale`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.engines import Engines, running_engines
from tests.faults.persistent_writer import write_through_crashes
from tests.faults.processes import PATIENCE, Child, drain, eventually, open_at
from tests.faults.test_kill import check_outputs, check_records, check_versions, read_log, read_notebook
from tests.faults.writer import ME, echo

WORKERS = 3
PROGRESS = 10
"""Acknowledged writes between two faults."""
SOME = 5
"""Rounds that always run: one of each kind."""
ROUNDS = {
    "workers": 100,
    "postgres": 30,
    "nats": 30,
    "cuts to postgres": 40,
    "cuts to nats": 20,
    "clocks": 20,
    "everything": 60,
}
"""The rounds of each kind with `--full`."""


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with running_engines() as found:
        yield found


class Crew:
    """Processes that write and work. One that is killed is replaced."""

    def __init__(self, folder: Path, stack: ExitStack, *, clock_jumps: bool) -> None:
        self._folder = folder
        self._stack = stack
        self._clock_jumps = clock_jumps
        self._made = 0
        self._alive = [self._start() for _ in range(WORKERS)]
        for each in self._alive:
            assert each.hear() == "ready"

    def _start(self) -> Child:
        self._made += 1
        return self._stack.enter_context(
            Child(write_through_crashes, self._folder, f"p{self._made}", self._clock_jumps)
        )

    def kill_one(self, moments: random.Random) -> None:
        """Kill one of them at random; the next one starts while the others go on."""
        at = moments.randrange(WORKERS)
        self._alive[at].kill()
        self._alive[at] = self._start()
        assert self._alive[at].hear() == "ready"

    def end(self) -> None:
        for each in self._alive:
            each.tell("stop")
        assert [each.wait(2 * PATIENCE) for each in self._alive] == [0] * WORKERS


@pytest.mark.slow
@pytest.mark.req("RCR-22")
@pytest.mark.req("RCR-28")
@pytest.mark.req("BEY-07")
@pytest.mark.parametrize(
    ("kind", "rounds"),
    [("everything", SOME), *(pytest.param(kind, rounds, marks=pytest.mark.full) for kind, rounds in ROUNDS.items())],
)
async def test_faults_lose_no_acknowledged_write_repeat_no_output_and_keep_the_order_of_sessions(
    engines: Engines, tmp_path: Path, kind: str, rounds: int
) -> None:
    folder, moments = engines.make_folder(tmp_path / "trail"), random.Random(kind)
    with ExitStack() as stack:
        crew = Crew(folder, stack, clock_jumps=kind in ("clocks", "everything"))
        faults = {
            "workers": [crew.kill_one],
            "postgres": [engines.crash_postgres],
            "nats": [engines.crash_nats],
            "cuts to postgres": [engines.cut_postgres],
            "cuts to nats": [engines.cut_nats],
            "clocks": [crew.kill_one],
            "everything": [
                crew.kill_one,
                engines.crash_postgres,
                engines.crash_nats,
                engines.cut_postgres,
                engines.cut_nats,
            ],
        }[kind]
        for round in range(rounds):
            await progress(folder)
            faults[round % len(faults)](moments)
        await progress(folder)
        crew.end()
    await check(folder)


async def check(folder: Path) -> None:
    """Let the remaining events be handled, and then count."""
    trail = await open_at(folder)
    try:
        await drain(trail, [echo], ME, timeout=2 * PATIENCE)
        notes, events = list(read_notebook(folder)), await read_log(trail)
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
    """Wait until writes were acknowledged since the last fault."""

    def count() -> int:
        note = folder / "notebook"
        return len(note.read_text().splitlines()) if note.exists() else 0

    before = count()

    async def has_grown() -> bool:
        return count() >= before + PROGRESS

    await eventually(has_grown, "the writers go on after a fault", 2 * PATIENCE)
