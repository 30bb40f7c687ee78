"""Runs on PostgreSQL and NATS that are disturbed again and again: a chat, and the work of a team from the plan to QA,
end in the state of the undisturbed run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import teamwork
from tests.faults.engines import Engines, running_engines
from tests.faults.processes import PATIENCE, Child, eventually
from tests.faults.test_team_crash import comparable
from tests.faults.tool_conversation import NOWHERE, PAYING, converse, final_state, prepare

BILL = "please settle the bill"
CHAT_EVENTS = (3, 9, 15, 21, 27)
"""Events of the chat after which something happens."""
TEAM_EVENTS = (5, 30, 60, 90, 120, 150)
LIFE = 4 * PATIENCE
FAULTS = ("worker", "postgres", "nats", "cuts")
Start = Callable[[Path], Child]


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with running_engines() as found:
        yield found


def begin_chat(folder: Path) -> Child:
    return Child(converse, folder, PAYING, BILL, NOWHERE)


def begin_team(folder: Path) -> Child:
    return Child(teamwork.work, folder)


async def run_through(engines: Engines, folder: Path, start: Start, fault: str, events: tuple[int, ...]) -> str:
    """Disturb a run after some of its events, and return its last output. A process that ends early is started anew."""
    moments, left = random.Random(fault), list(events)
    base = engines.head(folder)
    child = start(folder)
    try:
        while True:
            while left and child.is_alive and engines.head(folder) < base + left[0]:
                await asyncio.sleep(0.01)
            if left and child.is_alive:
                left.pop(0)
                disturb(engines, child, fault or FAULTS[len(left) % len(FAULTS)], moments)
            if left and child.is_alive:
                continue
            await eventually(child.has_ended, "the run ends", LIFE)
            if child.wait() == 0:
                return str(child.hear())
            child.__exit__(None, None, None)
            child = start(folder)
    finally:
        child.__exit__(None, None, None)


def disturb(engines: Engines, child: Child, fault: str, moments: random.Random) -> None:
    match fault:
        case "worker":
            child.kill_if_alive()
        case "postgres":
            engines.crash_postgres(moments)
        case "nats":
            engines.crash_nats(moments)
        case _:
            engines.cut_postgres(moments)
            engines.cut_nats(moments)


Run = Callable[[Path, str, tuple[int, ...]], dict[str, Any]]
"""Does the work of a test in a folder, disturbed by a fault after some events, and returns its final state."""


@pytest.fixture(scope="module")
def chat(engines: Engines) -> Run:
    def run(folder: Path, fault: str, events: tuple[int, ...]) -> dict[str, Any]:
        async def talk() -> dict[str, Any]:
            await prepare(engines.make_folder(folder))
            assert await run_through(engines, folder, begin_chat, fault, events) == "Settled."
            return await final_state(folder)

        return asyncio.run(talk())

    return run


@pytest.fixture(scope="module")
def team(engines: Engines) -> Run:
    def run(folder: Path, fault: str, events: tuple[int, ...]) -> dict[str, Any]:
        async def work() -> dict[str, Any]:
            await teamwork.prepare(engines.make_folder(folder))
            assert await run_through(engines, folder, begin_team, fault, events) == "completed"
            return comparable(await teamwork.final_state(folder))

        return asyncio.run(work())

    return run


@pytest.fixture(scope="module")
def calm_chat(chat: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return chat(tmp_path_factory.mktemp("chat"), "", ())


@pytest.fixture(scope="module")
def calm_team(team: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return team(tmp_path_factory.mktemp("team"), "", ())


EACH_FAULT = ["", *(pytest.param(fault, marks=pytest.mark.full) for fault in FAULTS)]
"""One of each kind, or one kind again and again."""


@pytest.mark.slow
@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("fault", EACH_FAULT)
def test_a_disturbed_chat_ends_in_the_state_of_the_undisturbed_one(
    chat: Run, calm_chat: dict[str, Any], tmp_path: Path, fault: str
) -> None:
    assert chat(tmp_path, fault, CHAT_EVENTS) == calm_chat


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("fault", EACH_FAULT)
def test_disturbed_work_of_a_team_ends_in_the_state_of_the_undisturbed_one(
    team: Run, calm_team: dict[str, Any], tmp_path: Path, fault: str
) -> None:
    assert team(tmp_path, fault, TEAM_EVENTS) == calm_team
