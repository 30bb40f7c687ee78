from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.agents.hooks.thresholds import (
    ContextUsage,
    HighestFill,
    Table,
    Threshold,
    find_crossed,
    observe,
    read_mark,
    thresholds_of,
)
from clew.agents.repairs.reliability_settings import read_reliability
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import Flow, read_flow
from clew.trail.store import Trail
from tests.agents.records import shipped_reliability

SHIPPED = shipped_reliability().thresholds
EXPECTED = {
    "librarian": ["25 checkpoint", "50 checkpoint", "75 checkpoint", "75 compact"],
    "guide": ["50 checkpoint", "75 checkpoint", "90 checkpoint", "95 compact"],
    "academic": ["85 checkpoint", "95 compact"],
    "architect": ["85 checkpoint", "95 compact"],
    "inspector": ["85 checkpoint", "95 compact local"],
    "tester": ["85 checkpoint", "95 compact local"],
    "engineer": ["95 hand_off"],
}


def words(thresholds: tuple[Threshold, ...]) -> list[str]:
    return [f"{each.at:g} {each.do}{' local' if each.local else ''}" for each in thresholds]


def usage(used: int, kind: str = "guide") -> ContextUsage:
    return ContextUsage(agent=kind, session="s1", used=used, limit=1000, kind=kind)


async def ramp(trail: Trail, flow: Flow, table: Table, me: Principal, kind: str, points: range) -> list[str]:
    """The thresholds that fire while a context fills up; each is written as a runner writes it."""
    fired = []
    for used in points:
        found, drafts = await observe(trail, flow, table, usage(used, kind), by=me)
        await trail.records.create_many(drafts, by=me)
        fired += words(found)
    return fired


@pytest.mark.req("SYL-54")
@pytest.mark.parametrize("kind", EXPECTED)
async def test_a_ramp_fires_each_threshold_once_in_order(trail: Trail, flow: Flow, me: Principal, kind: str) -> None:
    table = (await read_reliability(trail, by=me)).thresholds

    assert await ramp(trail, flow, table, me, kind, range(0, 1001, 20)) == EXPECTED[kind]
    assert await ramp(trail, flow, table, me, kind, range(0, 1001, 200)) == []


@pytest.mark.req("SYL-54")
async def test_a_restart_fires_nothing_again(tmp_path: Path, me: Principal, clock: ManualClock) -> None:
    address = f"sqlite://{tmp_path}/again.db"
    trail = await open_trail(address, clock)
    await bootstrap(trail, me)
    flow = await read_flow(trail, by=me)
    first = await ramp(trail, flow, SHIPPED, me, "guide", range(0, 801, 50))
    await trail.close()

    trail = await open_trail(address, clock)
    second = await ramp(trail, flow, SHIPPED, me, "guide", range(0, 1001, 50))
    await trail.close()

    assert first + second == EXPECTED["guide"]


async def test_a_jump_fires_all_that_lie_between_and_a_repeat_before_the_write_is_one_record(
    trail: Trail, flow: Flow, me: Principal
) -> None:
    fired, drafts = await observe(trail, flow, SHIPPED, usage(990), by=me)
    again, same = await observe(trail, flow, SHIPPED, usage(990), by=me)
    first = await trail.records.create_many(drafts, by=me)
    second = await trail.records.create_many(same, by=me)

    assert words(fired) == words(again) == EXPECTED["guide"]
    assert [each.id for each in first] == [each.id for each in second]


async def test_after_a_compaction_the_thresholds_above_it_fire_anew(trail: Trail, flow: Flow, me: Principal) -> None:
    await ramp(trail, flow, SHIPPED, me, "librarian", range(0, 801, 50))
    told = {"agent_id": "librarian", "kind": "librarian", "generation": 0, "at": 30.0, "do": "compacted"}
    await trail.records.create(
        Draft(
            title="Compacted",
            schema_name=flow.checkpoint,
            tags=("agent:librarian", "session:s1"),
            context=told | {"local": False, "used": 300, "limit": 1000},
        ),
        by=me,
    )

    assert await read_mark(trail, flow, "librarian", "s1", by=me) == HighestFill(generation=1, percent=30)
    assert await ramp(trail, flow, SHIPPED, me, "librarian", range(300, 801, 50)) == EXPECTED["librarian"][1:]


async def test_sessions_and_agents_have_thresholds_of_their_own(trail: Trail, flow: Flow, me: Principal) -> None:
    await ramp(trail, flow, SHIPPED, me, "guide", range(0, 1001, 100))

    other = ContextUsage(agent="guide", session="s2", used=990, limit=1000, kind="guide")
    fired, _ = await observe(trail, flow, SHIPPED, other, by=me)
    assert words(fired) == EXPECTED["guide"]
    fired, _ = await observe(trail, flow, SHIPPED, usage(990, "tester"), by=me)
    assert words(fired) == EXPECTED["tester"]


@given(points=st.lists(st.floats(0, 120), max_size=30))
def test_however_a_context_grows_nothing_is_skipped_or_fires_twice(points: list[float]) -> None:
    thresholds, fired, highest = SHIPPED["guide"], [], 0.0
    for point in points:
        fired += find_crossed(highest, point, thresholds)
        highest = max(highest, point)

    assert fired == [each for each in thresholds_of(SHIPPED, "guide") if each.at <= highest]


def test_an_unknown_kind_has_the_default_and_a_context_without_a_size_is_refused() -> None:
    assert words(thresholds_of(SHIPPED, "Gardener")) == ["85 checkpoint", "95 compact"]
    assert words(thresholds_of(SHIPPED, "Engineer")) == ["95 hand_off"]
    assert thresholds_of({}, "guide") == ()
    with pytest.raises(InvalidInput):
        _ = ContextUsage(agent="a", session="s", used=1, limit=0).percent
