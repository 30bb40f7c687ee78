"""The status record of a team: written at once when the work waits, and after a short delay when it continues."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.machines.phases import Phase
from clew.team.machines.team_state import Outcome, TeamStage, TeamState
from clew.team.runtime import status_records
from clew.team.runtime.status_records import STATUS, StatusRecords
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE

PLANNING = TeamState(session="s", phase=Phase.PLANNING, stage=TeamStage.PLAN, messages=1)


def later(state: TeamState, **changes: object) -> TeamState:
    return msgspec.structs.replace(state, messages=state.messages + 1, **changes)


async def test_quick_changes_of_work_under_way_are_written_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    statuses = StatusRecords(trail, clock, by=me)
    await statuses.note(PLANNING)
    head = await trail.log.head()
    state = PLANNING
    for tokens in range(1, 6):
        state = later(state, tokens=tokens)
        await statuses.note(state)
    async with asyncio.timeout(PATIENCE):
        await trail.log.wait(head, PATIENCE, selector=Selector(schema_name=STATUS))
        [status] = await statuses.list(by=me)
    assert (status.tokens, status.messages) == (5, 6)
    [record] = (await trail.records.list(Selector(schema_name=STATUS), by=me)).items
    assert record.version == 2


async def test_the_status_of_work_that_waits_or_is_over_is_written_at_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    statuses = StatusRecords(trail, clock, by=me)
    await statuses.note(PLANNING)
    await statuses.note(later(PLANNING, tokens=1))
    asking = later(later(PLANNING), stage=TeamStage.APPROVAL)
    await statuses.note(asking)
    [status] = await statuses.list(by=me)
    assert (status.stage, status.waits_for_user) == ("approval", True)
    await statuses.note(later(asking, stage=TeamStage.OVER, phase=Phase.COMPLETE, outcome=Outcome.COMPLETED))
    [status] = await statuses.list(by=me)
    assert status.stage == "over"


async def test_a_status_that_waits_is_written_before_the_process_ends(
    trail: Trail, clock: ManualClock, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_records, "DELAY", 10 * PATIENCE)
    statuses = StatusRecords(trail, clock, by=me)
    await statuses.note(PLANNING)
    await statuses.note(later(PLANNING, tokens=7))
    await statuses.flush()
    [status] = await statuses.list(by=me)
    assert status.tokens == 7
