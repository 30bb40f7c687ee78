"""Free text of the user becomes the message that fits the state."""

from __future__ import annotations

import pytest

from clew.errors import IllegalState
from clew.team.machines.effects import AskAgent
from clew.team.machines.pipeline_state import Stage
from clew.team.machines.team_state import Outcome
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ENGINEER, GUIDE, ORCHESTRATOR, MessageType
from tests.team.machines.world import World, plan

T = MessageType


@pytest.mark.req("SYL-44")
def test_a_first_text_is_a_request_and_a_text_during_the_work_adds_to_it() -> None:
    world = World(plan(("a", ())), agents={ENGINEER: lambda effect: []})
    world.user(T.USER_INPUT, GUIDE, text="add rate limiting")
    world.run()
    assert world.state.request is not None
    assert world.state.request.request == "add rate limiting"
    world.user(T.USER_INPUT, GUIDE, text="use tabs")
    world.run()
    assert [each.payload["text"] for each in world.log if each.type is T.PLAN_MODIFIED] == ["use tabs"]
    world.user(T.PLAN_APPROVED)
    world.run()
    world.user(T.USER_INPUT, GUIDE, text="and a test")
    world.run()
    assert [each.payload for each in world.log if each.type is T.USER_INTERRUPT] == [
        {"kind": "add", "text": "and a test"}
    ]


@pytest.mark.req("SYL-44")
@pytest.mark.parametrize("type", [T.USER_INPUT, T.USER_RESPONSE])
def test_a_text_answers_the_open_question(type: MessageType) -> None:
    world = World(plan(("a", ())))

    def ask(effect: AskAgent) -> list[TeamMessage]:
        question = {"pipeline": effect.pipeline, "question": "which one?"}
        return [world.message(T.TASK_HELP, ENGINEER, ORCHESTRATOR, question), world.ended(effect)]

    world.agents[ENGINEER] = ask
    world.start().run()
    assert world.state.pipelines["a.1"].stage is Stage.QUESTION
    del world.agents[ENGINEER]
    world.user(type, GUIDE, text="the first")
    world.run()
    assert world.state.outcome is Outcome.COMPLETED
    assert any("the first" in each.prompt for each in world.effects if isinstance(each, AskAgent))


def test_a_response_without_a_question_is_refused() -> None:
    with pytest.raises(IllegalState, match="question"):
        World(plan(("a", ()))).user(T.USER_RESPONSE, GUIDE, text="yes")


@pytest.mark.req("SYL-44")
def test_messages_about_the_session_halt_continue_and_stop_its_work() -> None:
    world = World(plan(("a", ()), ("b", ())), agents={ENGINEER: lambda effect: []}).start(max_agents=1)
    world.run()
    world.user(T.SESSION_SUSPEND, GUIDE)
    assert world.state.is_halted
    world.user(T.SESSION_RESUME, GUIDE)
    assert not world.state.is_halted
    world.user(T.SESSION_COMPLETE, GUIDE)
    assert world.state.outcome is Outcome.STOPPED
    assert world.replayed() == world.state


@pytest.mark.req("SYL-44")
def test_the_inspector_and_the_tester_are_reported_when_work_is_ready_for_them() -> None:
    types = World(plan(("a", ()), ("b", ()))).start().run().types()
    assert types.count(T.VALIDATE_TASK) == types.count(T.TESTS_READY) == 2
    assert types.count(T.INSPECTION_REQUEST) == 1
