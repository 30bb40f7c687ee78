"""Kill the process at every event boundary of a conversation with tools: the end is that of the uninterrupted run.

Before an event the file is as it is after the event before. So a kill after every other event shows every second
state, and one before it some of the rest; the others run with `--full`. One run is killed after all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.trail.bootstrap import read_pieces
from clew.trail.model.event import MAX_DEATHS
from clew.trail.model.flow import shipped_flow
from tests.faults.processes import KILLED, Child, open_at
from tests.faults.tool_conversation import (
    CLERK,
    ME,
    NOWHERE,
    PAYING,
    SENDING,
    SENT_WELL,
    Doom,
    Outside,
    Point,
    SameDay,
    converse,
    final_state,
    prepare,
    read_records,
)

EVENTS = 31
"""How many events the conversation has from its message on."""
FLOW = shipped_flow(read_pieces())
AGAIN = (FLOW.delta, FLOW.budget, FLOW.host)
"""Records of every start and of every call of a model: dying after each of them would make no progress."""
BILL = "please settle the bill"
LETTER = "please send the letter"
FATAL: list[dict[str, Any]] = [PAYING[0], {"expect": f"{MAX_DEATHS} workers died with it", "say": "I cannot look."}]


def live(folder: Path, doom: Doom = NOWHERE, script: list[dict[str, Any]] = PAYING, text: str = BILL) -> str:
    """One life of the process: its last output, empty if it was killed."""
    with Child(converse, folder, script, text, doom) as child:
        code = child.wait()
        assert code in (0, KILLED), f"the process ended with {code}"
        return str(child.hear()) if code == 0 else ""


def end_of(folder: Path) -> dict[str, Any]:
    return asyncio.run(final_state(folder))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The final state of a conversation that nothing disturbed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    asyncio.run(prepare(folder))
    assert live(folder) == "Settled."
    return end_of(folder)


def test_the_uninterrupted_conversation_does_each_thing_once(tmp_path: Path) -> None:
    base = asyncio.run(prepare(tmp_path))
    assert live(tmp_path) == "Settled."
    state = end_of(tmp_path)

    async def count() -> int:
        trail = await open_at(tmp_path, clock=SameDay())
        events, _ = await trail.log.read(base, by=ME)
        await trail.close()
        return len(events)

    assert asyncio.run(count()) == EVENTS
    assert state["effects"] == 1
    assert state["prompts"] == [True] * 3
    assert (state["reserved"], state["dead letters"], state["damage"]) == ({}, [], [])


@pytest.mark.req("BEY-07")
@pytest.mark.req("RCR-25")
@pytest.mark.req("RCR-29")
@pytest.mark.parametrize(
    ("point", "event"),
    [
        pytest.param(point, at, marks=() if at % often == 1 else pytest.mark.full)
        for point, often in (("before", 8), ("after", 2))
        for at in range(1, EVENTS + 1)
    ],
)
def test_a_process_killed_around_an_event_goes_on_to_the_same_end(
    tmp_path: Path, uninterrupted: dict[str, Any], point: Point, event: int
) -> None:
    base = asyncio.run(prepare(tmp_path))
    assert live(tmp_path, Doom(point, base + event)) == "", "nobody died"
    assert live(tmp_path) == "Settled."
    assert end_of(tmp_path) == uninterrupted


@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("tool", ["look", "pay", "note"])
def test_a_process_killed_inside_a_tool_repeats_what_may_be_repeated_and_no_keyed_effect(
    tmp_path: Path, uninterrupted: dict[str, Any], tool: str
) -> None:
    asyncio.run(prepare(tmp_path))
    assert live(tmp_path, Doom("inside", tool=tool)) == ""
    assert live(tmp_path) == "Settled."
    assert end_of(tmp_path) == uninterrupted


@pytest.mark.req("BEY-07")
def test_a_process_killed_after_every_event_still_finishes(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    asyncio.run(prepare(tmp_path))
    lives, said = 0, ""
    while not said:
        said = live(tmp_path, Doom("after", asyncio.run(head(tmp_path)) + 1, passed=AGAIN))
        lives += 1
    assert said == "Settled."
    assert lives > len(uninterrupted["records"]) / 2
    assert end_of(tmp_path) == uninterrupted


@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("doom", [Doom("inside", tool="send"), Doom("stop", tool="send")])
def test_an_interrupted_effect_without_a_key_is_reported_and_not_repeated(tmp_path: Path, doom: Doom) -> None:
    asyncio.run(prepare(tmp_path))
    assert live(tmp_path, doom, SENDING, LETTER) in ("", "stopped")
    assert live(tmp_path, NOWHERE, SENDING, LETTER) == "Unsure."
    assert Outside(tmp_path).effects() == ["letter"]
    assert asyncio.run(statuses(tmp_path)) == ["success", "interrupted", "success"]


@pytest.mark.req("SYL-113")
def test_a_run_goes_on_with_an_error_if_a_tool_kills_every_worker(tmp_path: Path) -> None:
    asyncio.run(prepare(tmp_path))
    doom = Doom("inside", tool="look")
    assert [live(tmp_path, doom, FATAL) for _ in range(MAX_DEATHS)] == [""] * MAX_DEATHS
    assert live(tmp_path, doom, FATAL) == "I cannot look."
    assert asyncio.run(statuses(tmp_path)) == ["success", "error", "success"]
    assert end_of(tmp_path)["dead letters"] == []


@pytest.mark.req("BEY-07")
def test_a_finished_effect_without_a_key_is_not_repeated(tmp_path: Path) -> None:
    """Only the current call is in doubt: its response may be on the trail already."""
    base = asyncio.run(prepare(tmp_path))
    answered = asyncio.run(prepare(tmp_path / "dry"))
    assert live(tmp_path / "dry", NOWHERE, SENT_WELL, LETTER) == "Done."
    events = asyncio.run(responses(tmp_path / "dry"))
    assert live(tmp_path, Doom("after", base + events[1] - answered), SENT_WELL, LETTER) == ""
    assert live(tmp_path, NOWHERE, SENT_WELL, LETTER) == "Done."
    assert Outside(tmp_path).effects() == ["letter"]
    assert asyncio.run(statuses(tmp_path)) == ["success"] * 3


async def head(folder: Path) -> int:
    trail = await open_at(folder, clock=SameDay())
    try:
        return await trail.log.head()
    finally:
        await trail.close()


async def statuses(folder: Path) -> list[str]:
    """Of all responses, in order."""
    trail = await open_at(folder, clock=SameDay())
    try:
        return [str(each.context["status"]) for each in await read_records(trail) if "tool:response" in each.tags]
    finally:
        await trail.close()


async def responses(folder: Path) -> list[int]:
    """The numbers of the events of all responses."""
    trail = await open_at(folder, clock=SameDay())
    try:
        events, _ = await trail.log.read(0, by=ME)
        return [each.seq for each in events if "tool:response" in each.tags and f"consumer:{CLERK}" in each.tags]
    finally:
        await trail.close()
