"""Kill the process around the events of a team's work, from the plan to the merge: the end is that of the uninterrupted
run. A sample runs always, all events with `make faults`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.trail.bootstrap import read_pieces
from clew.trail.model.event import MAX_DEATHS
from clew.trail.model.flow import shipped_flow
from tests.faults.processes import KILLED, Child
from tests.faults.teamwork import RIGHT, final_state, head_of, outcome_of, prepare, responses_of, work
from tests.faults.tool_conversation import NOWHERE, Doom, Point

PATIENCE = 300.0
MOST = 200
"""More events than the work has."""
SAMPLE = (5, 100)
"""Around the plan, and in a check."""
FLOW = shipped_flow(read_pieces())
AGAIN = (FLOW.delta, FLOW.budget, FLOW.host, FLOW.snapshot, "team.status.v1")
"""Records of every start and of every call of a model: dying after each of them would make no progress."""


def live(folder: Path, doom: Doom = NOWHERE) -> str:
    """One life of the process: the end of the work, empty if it was killed."""
    with Child(work, folder, doom) as child:
        code = child.wait(PATIENCE)
        assert code in (0, KILLED), f"the process ended with {code}"
        return str(child.hear()) if code == 0 else ""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The final state of work that nothing disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    asyncio.run(prepare(folder))
    assert live(folder) == "completed"
    return asyncio.run(final_state(folder))


@pytest.mark.req("SYL-49")
@pytest.mark.req("SYL-51")
def test_the_work_passes_on_the_third_version(uninterrupted: dict[str, Any]) -> None:
    """The linter refuses the first one, a test the second one."""
    ((_, state, tree, inspections, tests, receipts),) = uninterrupted["verdicts"]
    assert (state, inspections, tests) == ("completed", 1, 1)
    assert {each for _, _, each in receipts} == {tree} == {uninterrupted["tree"]}
    assert uninterrupted["file"] == RIGHT
    assert uninterrupted["commits"] == [*["Write the function add."] * 3, "first"]
    assert (uninterrupted["effects"], uninterrupted["checkout"]) == (3, "")
    assert (uninterrupted["dead letters"], uninterrupted["damage"]) == ([], [])


@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("event", SAMPLE)
def test_a_team_killed_around_an_event_goes_on_to_the_same_end(
    tmp_path: Path, uninterrupted: dict[str, Any], event: int
) -> None:
    kill(tmp_path, uninterrupted, "after", event)


@pytest.mark.full
@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("event", range(1, MOST + 1))
@pytest.mark.parametrize("point", ["before", "after"])
def test_a_team_killed_around_any_event_goes_on_to_the_same_end(
    tmp_path: Path, uninterrupted: dict[str, Any], point: Point, event: int
) -> None:
    if event > uninterrupted["events"] - 5:  # the order of the last few events differs from run to run
        pytest.skip("the work has fewer events")
    kill(tmp_path, uninterrupted, point, event)


@pytest.mark.full
@pytest.mark.req("BEY-07")
def test_a_team_killed_after_every_event_still_finishes(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    asyncio.run(prepare(tmp_path))
    lives, said = 0, ""
    while not said:
        said = live(tmp_path, Doom("after", asyncio.run(head_of(tmp_path)) + 1, passed=AGAIN))
        lives += 1
    assert said == "completed"
    assert lives > uninterrupted["events"] / 4
    assert comparable(asyncio.run(final_state(tmp_path))) == comparable(uninterrupted)


@pytest.mark.req("SYL-113")
def test_a_team_ends_with_the_reason_if_its_first_tool_kills_every_worker(tmp_path: Path) -> None:
    asyncio.run(prepare(tmp_path))
    doom = Doom("inside", tool="team-open")
    assert [live(tmp_path, doom) for _ in range(MAX_DEATHS)] == [""] * MAX_DEATHS
    assert live(tmp_path, doom) == "failed"
    (response,) = asyncio.run(responses_of(tmp_path, "team-open"))
    assert (response["status"], response["error"]) == ("error", f"it was given up: {MAX_DEATHS} workers died with it")
    assert asyncio.run(outcome_of(tmp_path)) == f"the work tree cannot be made: {response['error']}"


def kill(folder: Path, uninterrupted: dict[str, Any], point: Point, event: int) -> None:
    base = asyncio.run(prepare(folder))
    assert live(folder, Doom(point, base + event)) == "", "nobody died"
    assert live(folder) == "completed"
    assert comparable(asyncio.run(final_state(folder))) == comparable(uninterrupted)


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "events"}
