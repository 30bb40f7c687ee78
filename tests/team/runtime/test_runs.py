"""Runs and calls of the team: their ends always become messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations
from clew.clock import ManualClock
from clew.config import Config
from clew.errors import ClewError, IllegalState, NotFound
from clew.llm.model import Models
from clew.team.guide import build_message
from clew.team.messages.message import TeamMessage, message_draft
from clew.team.runtime.team_handlers import team_additions
from clew.team.runtime.team_states import EXPIRED, TeamStates
from clew.team.runtime.timers import timer_handler
from clew.team.team import Team, TeamOptions
from clew.tools.permissions.policy import read_policy
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow
from tests.agents.runtimes import ALLOW, PATIENCE, no_code
from tests.handlers import look_again
from tests.team.runtime.scripted_crew import PLAN, ROLES, SCRIPT, TeamTools, crew, define, member_tools, no_gate

JUDGED: list[dict[str, Any]] = [
    {"user": "All tasks of this request", "call": {"report": {"issues": []}}},
    {"say": "It is fine."},
]


async def test_each_run_and_each_call_ends_with_one_message(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        state = await team.end(session)
        runs = await team.messages(session, "RUN_ENDED")
        assert [(each.payload["role"], each.payload["status"]) for each in runs][:2] == [
            ("architect", "answered"),
            ("engineer", "answered"),
        ]
        assert state.tokens == sum(each.payload["tokens"] for each in runs) > 0
        calls = [each.payload["call"] for each in await team.messages(session, "CALL_RESULT")]
        assert len(calls) == len(set(calls)) == len(team.tools.calls)
        assert {each.metadata.get("via") for each in await team.messages(session)} == {"guide"}


async def test_the_end_of_a_run_or_a_call_and_its_message_are_one_transaction(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        await team.end(session)
        events, _ = await trail.log.read(0, by=me, limit=5_000)
    names = [(each.schema_name, (each.breadcrumb.context if each.breadcrumb else {}).get("type")) for each in events]
    for schema, type in (("tool.response.v1", "CALL_RESULT"), ("agent.response.v1", "RUN_ENDED")):
        told = [at for at, (_, found) in enumerate(names) if found == type]
        assert told
        assert {names[at - 1][0] for at in told} == {schema}
        assert [events[at].seq - events[at - 1].seq for at in told] == [1] * len(told)


async def test_a_response_that_another_program_writes_becomes_a_message(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        await team.end(session)
        before = len(await team.messages(session, "CALL_RESULT"))
        tags = (f"session:{session}", "consumer:team", "request:late@1")
        context = {"request_id": "late@1", "tool": "team-check", "status": "success", "output": {"passed": True}}
        response = Draft(title="A response", schema_name="tool.response.v1", tags=tags, context=context)
        await trail.records.create(response, by=me)
        await team.run.until(Selector(schema_name="team.message.v1", any_tags=("type:CALL_RESULT",)), before + 1)
        assert (await team.messages(session, "CALL_RESULT"))[-1].payload["call"] == "late"


@pytest.mark.req("BEY-09")
async def test_a_model_that_fails_ends_the_work_with_the_reason(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me, [{"user": "Plan this request", "fault": "refused", "times": 9}]) as team:
        session = await team.start()
        state = await team.end(session)
        assert state.outcome == "failed"
        assert "the Architect made no plan" in state.reason
        (ended,) = await team.messages(session, "RUN_ENDED")
        assert (ended.payload["status"], ended.payload["cause"]) == ("failed", "model")


async def test_an_undefined_agent_ends_the_work_with_the_reason(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me, roles=["engineer"]) as team:
        state = await team.end(await team.start())
        assert "no agent 'architect' is defined" in state.reason


@pytest.mark.req("BEY-09")
async def test_a_loop_of_identical_turns_stops_within_three_repeats(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    looping = [{"user": "Plan this request", "call": {"no-such-tool": {}}}, *[{"call": {"no-such-tool": {}}}] * 9]
    async with crew(trail, clock, me, looping) as team:
        state = await team.end(await team.start())
        assert "the same turn 3 times" in state.reason
        assert len(team.run.model.requests) == 3


@pytest.mark.req("BEY-09")
async def test_a_session_stops_at_its_budget_and_keeps_its_work(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    """The limit is passed by no more than one call; the unfinished work is committed."""
    async with crew(trail, clock, me) as team:
        session = await team.start(budget=300, approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        await team.team.approve(session, by=me, over_budget=True)
        state = await team.end(session)
        assert state.outcome == "failed"
        assert "budget" in state.reason
        ended = (await team.messages(session, "RUN_ENDED"))[-1]
        assert ended.payload["cause"] == "budget"
        largest = max(each.context["input_tokens"] + each.context["output_tokens"] for each in await usage(trail, me))
        assert state.tokens <= 300 + largest
        await team.run.until(Selector(schema_name="team.message.v1", any_tags=("type:CALL_RESULT",)), 3)
        assert team.tools.named("team-commit")[-1]["message"] == "Unfinished work on add"


async def usage(trail: Trail, me: Principal) -> list[Any]:
    return list((await trail.records.list(Selector(schema_name="usage.v1"), by=me, limit=100)).items)


@pytest.mark.req("SYL-46")
async def test_a_tool_that_fails_is_tried_again_after_a_pause(trail: Trail, clock: ManualClock, me: Principal) -> None:
    attempts: list[str] = []

    def worktree(input: dict[str, Any]) -> dict[str, Any]:
        attempts.append(input["pipeline"])
        if len(attempts) == 1:
            raise ClewError("the disk is full")
        return {"folder": "/nowhere", "base_commit": "b0"}

    async with crew(trail, clock, me, patient(SCRIPT), answers={"team-worktree": worktree}) as team:
        state = await team.end(await team.start())
        assert (state.outcome, attempts) == ("completed", ["add.1", "add.2"])


@pytest.mark.req("SYL-46")
async def test_a_timer_waits_until_it_is_due(trail: Trail, clock: ManualClock, me: Principal) -> None:
    context = {"session_id": "s", "key": "add.1/timeout", "due_at": (clock.now() + timedelta(seconds=9)).isoformat()}
    record = await trail.records.create(Draft(title="Timer", schema_name="team.timer.v1", context=context), by=me)
    ((event,), _) = await trail.log.read(0, by=me)
    handler = timer_handler(clock, by=me)
    with pytest.raises(NotNow) as later:
        await handler.function(event, None)
    assert later.value.seconds == 9
    clock.advance(seconds=9)
    (due,) = await handler.function(event, None) or ()
    assert (due.context["type"], due.context["payload"]) == ("TIMER_DUE", {"key": "add.1/timeout"})
    assert due.idempotency_key == f"team/timer/{record.id}"


async def test_a_result_that_cannot_be_used_fails_instead_of_waiting(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    bad = {"passed": False, "issues": [{"nonsense": 1}]}
    async with crew(trail, clock, me, patient(SCRIPT), answers={"team-check": bad}) as team:
        session = await team.start()
        state = await team.end(session)
        assert "its result cannot be used" in state.reason
        assert len(await team.messages(session, "MESSAGE_REFUSED")) == 3


def patient(script: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The script with a plan that tries again without a pause."""
    plan = {**PLAN, "policy": {"default_retry": {"max": 2, "backoff_ms": 0}}}
    return [{**script[0], "call": {"plan": {"plan": plan}}}, *script[1:]]


@pytest.mark.req("SYL-41")
async def test_a_halt_starts_nothing_new_until_the_user_continues(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        await team.team.interrupt(session, "halt", by=me)
        await team.team.approve(session, by=me)
        await team.until(session, lambda state: state.dag is not None)
        assert not team.tools.named("team-worktree")
        await team.team.resume(session, by=me)
        assert (await team.end(session)).outcome == "completed"


@pytest.mark.req("SYL-41")
async def test_a_suspended_session_goes_on_after_resume(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        await team.team.interrupt(session, "suspend", by=me)
        with pytest.raises(IllegalState, match="suspended"):
            await team.team.approve(session, by=me)
        await team.team.resume(session, by=me)
        await team.team.approve(session, by=me)
        assert (await team.end(session)).outcome == "completed"


@pytest.mark.req("SYL-41")
async def test_a_question_of_the_architect_is_answered_by_the_user(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [
        {"user": "Plan this request", "call": {"clarify": {"question": "Integers only?"}}},
        {"say": "I wait."},
        {"user": "The user answers: yes", "call": {"plan": {"plan": PLAN}}},
        *SCRIPT[1:],
    ]
    async with crew(trail, clock, me, script) as team:
        session = await team.start()
        state = await team.until(session, lambda state: bool(state.questions))
        assert [each.question for each in state.questions.values()] == ["Integers only?"]
        await team.team.answer(session, "yes", by=me)
        assert (await team.end(session)).outcome == "completed"


@pytest.mark.req("SYL-53")
async def test_a_task_is_found_by_its_number_and_its_id(trail: Trail, clock: ManualClock, me: Principal) -> None:
    failing = {"passed": False, "failures": [{"test_name": "test_add", "message": "no"}]}

    def check(input: dict[str, Any]) -> dict[str, Any]:
        return failing if input["kind"] == "test" and input["pipeline"] else {"passed": True}

    script = [*SCRIPT, *feedback(), *JUDGED]
    async with crew(trail, clock, me, script, answers={"team-check": check}) as team:
        session = await team.start()
        state = await team.until(session, lambda state: bool(state.questions))
        assert state.pipelines["add.1"].tester_loops == 3
        with pytest.raises(NotFound, match="task"):
            await team.team.task(session, "7", "prompt", "Hello", by=me)
        await team.team.choose(session, "ignore", by=me, task="1", reason="known")
        state = await team.end(session)
        assert state.outcome == "completed"
        assert state.summary is not None
        assert state.summary.deferred_overrides


def feedback() -> list[dict[str, Any]]:
    return [{"user": "/[Tt]est/", "call": {"signal": {"summary": "again"}}}, {"say": "Again."}]


async def test_the_state_is_the_same_for_a_process_that_reads_it_anew(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        state = await team.end(session)
        assert await TeamStates(trail, no_gate, by=me).latest(session) == state


@pytest.mark.req("SYL-43")
async def test_a_message_that_expires_before_it_is_handled_changes_nothing(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        deadline = clock.now() - timedelta(seconds=1)
        late = build_message(
            "USER_INTERRUPT", {"kind": "halt"}, source="user", session_id=session, clock=clock, deadline=deadline
        )
        late = msgspec.structs.replace(late, id=clock.new_id())
        await trail.records.create(message_draft(late), by=me)
        await team.run.until(Selector(schema_name="team.message.v1", all_tags=("type:MESSAGE_REFUSED",)))
        assert not (await team.team.state(session, by=me)).is_halted


async def test_a_message_of_somebody_else_is_no_prompt_of_the_team(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    """A record that only looks like a prompt does not end a run of the team."""
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        forged = {"message": "x", "number": 0, "role": "engineer", "conversation": f"{session}.add.1.engineer"}
        draft = Draft(
            title="Forged",
            schema_name="user.message.v1",
            tags=("team:run", f"session:{session}.add.1.engineer", "consumer:engineer"),
            context={"message": "Write add.", "content": "Write add.", "team": forged},
        )
        written = await trail.records.create(draft, by=me)
        await team.run.until(Selector(schema_name="agent.response.v1", all_tags=(f"run:{written.id}",)))
        await team.team.stop(session, by=me)
        await team.end(session)
        roles = [each.payload["role"] for each in await team.messages(session, "RUN_ENDED")]
        assert "engineer" not in roles


async def test_readers_at_the_same_time_apply_each_message_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        state = await team.end(session)
        states = TeamStates(trail, no_gate, by=me)
        assert await asyncio.gather(*(states.latest(session) for _ in range(4))) == [state] * 4


@pytest.mark.req("SYL-43")
async def test_a_reader_that_was_faster_than_the_refusal_of_a_message_comes_to_the_same_state(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await bootstrap(trail, me)
    states = TeamStates(trail, no_gate, by=me)

    async def write(type: str, payload: dict[str, Any], source: str, **more: Any) -> TeamMessage:
        message = build_message(type, payload, source=source, session_id="s", clock=clock, **more)
        message = msgspec.structs.replace(message, id=clock.new_id())
        await trail.records.create(message_draft(message), by=me)
        return message

    await write("PLAN_REQUEST", {"request": "add rate limiting"}, "user")
    halt = await write("USER_INTERRUPT", {"kind": "halt"}, "user", ttl=1.0)
    assert (await states.latest("s")).is_halted
    await write("MESSAGE_REFUSED", {"message": halt.id, "reason": EXPIRED}, "runtime", target="user")
    assert not (await states.latest("s")).is_halted


@pytest.mark.req("SYL-41")
async def test_work_under_way_is_not_lost_when_its_session_is_suspended(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        await team.team.approve(session, by=me)
        await team.until(session, lambda state: bool(state.pipelines))
        await team.team.suspend(session, by=me)
        state = await team.until(session, lambda state: state.dag is not None and state.dag.is_over)
        assert not state.is_over
        await team.team.resume(session, by=me)
        assert (await team.end(session)).outcome == "completed"


@pytest.mark.req("SYL-01")
@pytest.mark.parametrize("is_suspended", [False, True])
async def test_a_session_that_is_closed_stops_its_work(
    trail: Trail, clock: ManualClock, me: Principal, is_suspended: bool
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        if is_suspended:
            await team.team.suspend(session, by=me)
        closed = await team.team.close(session, by=me, summary="not wanted")
        assert closed.state in ("completed", "failed")
        assert (await team.end(session)).outcome == "stopped"
        assert await team.team.close_all(by=me) == []


@pytest.mark.req("SYL-01")
async def test_a_switch_to_a_suspended_session_continues_its_work(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start(approves_plan=False)
        await team.until(session, lambda state: state.stage == "approval")
        await team.team.suspend(session, by=me)
        await team.team.switch(session, by=me)
        assert not (await team.team.state(session, by=me)).is_halted
        await team.team.approve(session, by=me)
        assert (await team.end(session)).outcome == "completed"


@pytest.mark.req("SYL-41")
async def test_a_process_without_a_model_leaves_the_steps_of_members_to_one_that_has_one(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    """As where `clew up` runs without a model, and `clew code` was killed."""
    await bootstrap(trail, me)
    await define(trail, me, ROLES)
    flow = await read_flow(trail, by=me)
    conversations = Conversations(trail, flow, clock)
    own = team_additions(trail, conversations, clock, no_gate, by=me)
    team = Team(trail, conversations, clock, no_gate, me=me)
    was_left = asyncio.Event()

    async def needs_model(event: Event) -> bool:
        assert own.needs_model is not None
        is_left = await own.needs_model(event)
        if is_left:
            was_left.set()
        return is_left

    runtime = await build_runtime(
        trail,
        clock,
        Models(Config(), {}),
        by=me,
        from_record=no_code,
        tools=[*TeamTools().tools(), *member_tools(lambda: team, clock)],
        policy=read_policy(ALLOW),
        additions=replace(own, needs_model=needs_model),
    )
    async with runtime.running():
        session = (await team.start("Add add", by=me, options=TeamOptions(approves_plan=True))).id
        async with asyncio.timeout(PATIENCE):
            await was_left.wait()
        async with crew(trail, clock, me, roles=()) as able:
            ended = asyncio.create_task(able.end(session))
            while not ended.done():  # the released step is due a second later
                clock.advance(seconds=2)
                await look_again(trail)
                await asyncio.wait([ended], timeout=0.05)
            state = await ended
    assert (state.outcome, state.reason) == ("completed", "")
