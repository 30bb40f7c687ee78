"""Many sessions share the worker pool: none starves, the queue is bounded, and users do not wait for tasks."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.runs.call_limits import CallLimits, read_loads
from clew.agents.runs.requests import request_draft
from clew.clock import ManualClock
from clew.errors import Busy
from clew.team.guide import build_message
from clew.team.messages.payloads import PlanRequest
from clew.team.sessions.session import SessionConfig
from clew.team.team import Team, TeamOptions
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE
from tests.agents.whole_runs import answer_of
from tests.team.runtime.scripted_crew import ROLES, Crew, crew

SESSIONS, TASKS, AGENTS = 5, 12, 4
LIMITS = CallLimits(models=4, tools=4, session=2)


def script(tasks: int) -> list[dict[str, Any]]:
    nodes = [{"id": f"t{at}", "prompt": "Write nothing.", "files": [f"f{at}.py"]} for at in range(tasks)]
    return [
        {"user": "Plan this request", "call": {"plan": {"plan": {"nodes": nodes}}}},
        {"say": "Here is the plan."},
        {"user": "Write nothing.", "call": {"signal": {"summary": "done"}}},
        {"say": "Done."},
        {"user": "All tasks of this request", "call": {"report": {"issues": []}}},
        {"say": "It is fine."},
        {"user": "hello", "say": "Hello."},
    ]


@pytest.mark.req("SYL-67")
async def test_no_session_starves_the_queue_is_bounded_and_a_person_overtakes(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    merged: list[str] = []
    third, half = asyncio.Event(), asyncio.Event()

    def merge(input: dict[str, Any]) -> dict[str, Any]:
        merged.append(input["session"])
        for part, event in ((3, third), (2, half)):
            if len(merged) * part >= SESSIONS * TASKS:
                event.set()
        return {"merged": True, "head": "m1", "tree": "t1"}

    roles = (*ROLES, "clerk")
    async with crew(trail, clock, me, script(TASKS), answers={"team-merge": merge}, roles=roles, limits=LIMITS) as team:
        for _ in range(SESSIONS):
            await team.start(max_agents=AGENTS)
        await wait_for(team, third)
        before = len(merged)
        assert answer_of(await team.run.say("hello", agent="clerk")).text == "Hello."
        assert len(merged) < SESSIONS * TASKS, f"{before} tasks were done before"
        longest = sum(load.waiting for _, load in await read_loads(trail, by=me))
        await wait_for(team, half)
    counts = Counter(merged[: SESSIONS * TASKS // 2])
    assert len(counts) == SESSIONS
    assert min(counts.values()) >= 0.6 * (TASKS / 2)
    assert longest <= SESSIONS * AGENTS * 2


async def wait_for(team: Crew, event: asyncio.Event) -> None:
    async with asyncio.timeout(5 * PATIENCE):
        await event.wait()


@pytest.mark.req("SYL-67")
async def test_new_work_is_refused_while_the_queue_is_full(trail: Trail, clock: ManualClock, me: Principal) -> None:
    limits = CallLimits(models=1, tools=1, session=1, queue=1)
    async with crew(trail, clock, me, script(8), limits=limits) as team:
        full = Team(trail, team.run.talk, clock, lambda pipeline, node: (), me=me, limits=limits)
        await fill_the_queue(team)
        with pytest.raises(Busy, match="calls wait, and no more than 1 may") as refused:
            await full.start("More", by=me)
        assert "clew team stop" in refused.value.hint
        assert "team.queue" in refused.value.hint


async def fill_the_queue(team: Crew) -> None:
    """Write calls of a tool that does not exist until at least one of them waits."""
    drafts = [
        request_draft(team.run.flow, "none", {}, request_id=f"r{at}", requested_by="", tags=("session:s",))
        for at in range(500)
    ]
    await team.run.trail.records.create_many(drafts, by=team.me)
    async with asyncio.timeout(PATIENCE):
        while not sum(load.waiting for _, load in await read_loads(team.run.trail, by=team.me)):
            await asyncio.sleep(0)


@pytest.mark.req("SYL-04")
async def test_work_begins_in_a_session_within_its_limits(trail: Trail, clock: ManualClock, me: Principal) -> None:
    building: set[str] = set()
    most = 0

    def worktree(input: dict[str, Any]) -> dict[str, Any]:
        nonlocal most
        building.add(input["pipeline"])
        most = max(most, len(building))
        return {"folder": "/nowhere", "base_commit": "b0"}

    def commit(input: dict[str, Any]) -> dict[str, Any]:
        building.discard(input["pipeline"])
        return {"commit": "c1", "tree": "t1", "changed": ["calc.py"], "created": [], "is_empty": False}

    answers: Any = {"team-worktree": worktree, "team-commit": commit}
    async with crew(trail, clock, me, script(4), answers=answers) as team:
        config = SessionConfig(max_concurrent_tasks=3, max_engineers=1, task_timeout=90.0)
        made = await team.team.sessions.create("limited", by=me, config=config, base_branch="main")
        options = TeamOptions(session="limited", approves_plan=True)
        started = await team.team.start("Do it", by=me, options=options)
        assert started.id == made.id
        state = await team.end(made.id)
        assert state.outcome == "completed"
        assert state.request is not None
        expected = PlanRequest(
            request="Do it",
            base="main",
            approves_plan=True,
            max_agents=3,
            max_engineers=1,
            task_timeout=90.0,
            branch="clew/limited",
        )
        assert state.request == expected
        assert team.tools.named("team-open")[0]["base"] == "main"
        assert most == 1
        timers = await team.run.written(None, "team.timer.v1")
        assert len([each for each in timers if each.context["key"].endswith("/timeout")]) == 4


@pytest.mark.req("SYL-04")
async def test_a_request_in_words_begins_within_the_limits_of_its_session(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me, script(1)) as team:
        config = SessionConfig(max_concurrent_tasks=3, max_engineers=1, task_timeout=90.0)
        made = await team.team.sessions.create("limited", by=me, config=config, base_branch="main")
        said = build_message("USER_INPUT", {"text": "Do it"}, source="user", session_id=made.id, clock=clock)
        await team.team.guide.send(said, by=me)
        state = await team.until(made.id, lambda state: state.request is not None)
        assert state.request == PlanRequest(
            request="Do it", base="main", max_agents=3, max_engineers=1, task_timeout=90.0, branch="clew/limited"
        )
