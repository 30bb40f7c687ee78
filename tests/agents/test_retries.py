"""Retries and dead letters of agent handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.agents.repairs.guard import Guard
from clew.clock import SystemClock
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.handlers import ANN, Calls, handler_of, note, run_worker, until

FAST = RetryPolicy(attempts=3, backoff=0.01)


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", SystemClock())
    yield opened
    await opened.close()


class Flaky:
    """An agent that fails a number of times, behind a guard."""

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.guard = Guard(SystemClock())

    async def step(self, event: Event) -> list[Draft]:
        await self.guard.run("agent", self._try)
        return [Draft(title="Done", schema_name="done.v1", context={"attempt": event.attempt})]

    async def _try(self) -> None:
        if self.left:
            self.left -= 1
            raise ConnectionResetError("the model hung up")


@pytest.mark.req("SYL-112")
async def test_a_temporary_failure_succeeds_on_retry_and_the_event_has_the_attempt(trail: Trail) -> None:
    flaky = Flaky(failures=2)
    calls = Calls(flaky.step)
    async with run_worker(trail, handler_of(calls, retry=FAST)):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.cursor > 0 and state.pending == state.claimed == 0)

    done = await trail.records.list(Selector(schema_name="done.v1"), by=ANN)
    assert [each.context["attempt"] for each in done.items] == [3]
    assert [event.attempt for event in calls.events] == [1, 2, 3]
    assert len({event.key for event in calls.events}) == 1


@pytest.mark.req("SYL-113")
async def test_a_permanent_failure_becomes_a_dead_letter_that_can_be_replayed(
    trail: Trail,
) -> None:
    flaky = Flaky(failures=3)
    async with run_worker(trail, handler_of(Calls(flaky.step), retry=FAST)):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)
        [letter] = await trail.dead_letters.list(by=ANN)
        assert (letter.attempts, letter.reason) == (3, "ConnectionResetError: the model hung up")

        await trail.dead_letters.replay(letter.id, by=ANN)
        await until(trail, lambda state: state.dead == state.pending == state.claimed == 0)

    done = await trail.records.list(Selector(schema_name="done.v1"), by=ANN)
    assert len(done.items) == 1
    assert await trail.dead_letters.list(by=ANN) == []
