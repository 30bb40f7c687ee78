"""Events in an unusual order: a late result, verdict or question, with actions of the user in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clew.errors import IllegalState
from clew.team.machines.effects import AskAgent, CallTool, CancelRun
from clew.team.machines.pipeline_state import PipelineStatus, Stage
from clew.team.machines.team_state import Outcome, TeamStage, TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import (
    ARCHITECT,
    ENGINEER,
    INSPECTOR,
    ORCHESTRATOR,
    TESTER,
    MessageType,
)
from clew.team.runtime.status_records import waits_for_user
from tests.team.machines.world import World, default_output, plan

T = MessageType
PAIR = plan(("a", ()), ("b", ()))


def until(world: World, is_met: Callable[[TeamState], bool]) -> World:
    """Deliver messages until the state is as wanted."""
    while not is_met(world.state):
        world.deliver_next()
    return world


def silent(effect: AskAgent) -> list[TeamMessage]:
    """An agent whose run does not end."""
    return []


def last_ask(world: World, role: str) -> AskAgent:
    return [each for each in world.effects if isinstance(each, AskAgent) and each.role == role][-1]


def broken_linter(effect: CallTool) -> dict[str, Any]:
    """A `team-check` whose linter fails on the whole session without a finding at a line."""
    if effect.input["kind"] != "lint" or effect.input["pipeline"]:
        return default_output(effect)
    receipt = {"id": "r", "command": "ruff check .", "exit_code": 2, "log": "ruff.toml cannot be read"}
    return {"passed": False, "receipts": [receipt]}


@pytest.mark.req("BEY-10")
def test_the_late_result_of_a_linter_does_not_count_as_tests() -> None:
    world = until(World(PAIR).start(), lambda state: state.stage is TeamStage.LINT)
    world.tools["team-check"] = lambda effect: {"passed": False, "failures": [{"test_name": "t"}]}
    world.user(T.USER_OVERRIDE, INSPECTOR, reason="known")
    until(world, lambda state: state.tests is not None)
    assert world.state.tests is not None
    assert not world.state.tests.passed
    assert world.state.outcome is Outcome.OPEN


@pytest.mark.req("BEY-10")
@pytest.mark.parametrize("note", ["it prints the key", ""])
def test_a_verdict_that_does_not_pass_needs_no_finding_at_a_line(note: str) -> None:
    nodes = plan(("a", ()))
    nodes["nodes"][0]["criteria"] = ["no key is printed"]
    world = World(nodes)

    def judge(effect: AskAgent) -> list[TeamMessage]:
        verdict = {"passed": False, "note": note, "pipeline": effect.pipeline}
        return [world.message(T.VALIDATION_RESULT, INSPECTOR, ORCHESTRATOR, verdict), world.ended(effect)]

    world.agents[INSPECTOR] = judge
    world.start().run()
    assert world.state.pipelines["a.1"].stage is Stage.CHOICE
    assert (note or "does not let it pass") in last_ask(world, ENGINEER).prompt


@pytest.mark.req("BEY-10")
def test_a_verdict_on_the_session_that_does_not_pass_is_corrected() -> None:
    world = World(PAIR)

    def judge(effect: AskAgent) -> list[TeamMessage]:
        verdict = {"passed": False, "note": "the parts do not fit"}
        return [world.message(T.INSPECTION_RESULTS, INSPECTOR, ARCHITECT, verdict), world.ended(effect)]

    world.agents[INSPECTOR] = judge
    until(world.start(), lambda state: state.stage is TeamStage.FIX)
    assert "the parts do not fit" in last_ask(world, ARCHITECT).prompt


def test_a_linter_that_fails_without_a_finding_is_corrected_by_its_output() -> None:
    world = World(PAIR, tools={"team-check": broken_linter}).start()
    until(world, lambda state: state.stage is TeamStage.FIX)
    assert "ruff.toml cannot be read" in last_ask(world, ARCHITECT).prompt


@pytest.mark.req("SYL-53")
def test_a_prompt_right_after_an_interrupt_is_not_lost() -> None:
    world = World(plan(("a", ())), agents={ENGINEER: silent}).start().run()
    cancelled = world.ended(last_ask(world, ENGINEER), "cancelled")
    world.user(T.USER_TASK_INTERRUPT, ORCHESTRATOR, pipeline="a.1")
    assert waits_for_user(world.state)
    world.user(T.USER_TASK_PROMPT, ORCHESTRATOR, pipeline="a.1", text="use a token bucket")
    world.deliver(cancelled)
    assert world.state.pipelines["a.1"].state is PipelineStatus.RUNNING
    assert "use a token bucket" in last_ask(world, ENGINEER).prompt


@pytest.mark.req("SYL-41")
def test_a_task_that_is_added_leaves_those_that_wait() -> None:
    nodes = plan(("a", ()), ("b", ()), ("c", ("a",)), ("d", ("b",)), fail_fast=False)
    world = World(nodes, agents={ENGINEER: silent}).start().run()
    more = {**plan(("e", ("c",))), "touches_tests": True}
    world.deliver(world.message(T.DAG_EXECUTE, ARCHITECT, ORCHESTRATOR, {"plan": more}))
    dag = world.state.dag
    assert dag is not None
    assert list(dag.nodes) == ["a", "b", "c", "d", "e"]
    assert not dag.plan.policy.fail_fast
    assert not dag.plan.touches_tests


@pytest.mark.parametrize("role", [ARCHITECT, INSPECTOR])
def test_stop_cancels_the_run_that_the_team_waits_for(role: str) -> None:
    world = World(PAIR, agents={role: silent}).start().run()
    world.user(T.USER_INTERRUPT, kind="stop")
    assert CancelRun(conversation=f"s.main.{role}", reason="stopped by the user") in world.effects


def test_stop_cancels_the_judgement_of_a_task() -> None:
    nodes = plan(("a", ()))
    nodes["nodes"][0]["criteria"] = ["it is documented"]
    world = World(nodes, agents={INSPECTOR: silent}).start().run()
    world.user(T.USER_INTERRUPT, kind="stop")
    assert CancelRun(conversation="s.a.1.inspector", reason="stopped by the user") in world.effects


@pytest.mark.req("SYL-58")
def test_two_requests_for_a_hand_off_lead_to_one_new_pipeline() -> None:
    world = World(plan(("a", ())), agents={ENGINEER: silent}).start().run()
    for _ in range(2):
        world.deliver(world.message(T.HANDOFF_REQUEST, ENGINEER, ARCHITECT, {"old_pipeline_id": "a.1"}))
    world.run()
    assert list(world.state.pipelines) == ["a.1", "a.2"]


@pytest.mark.req("SYL-53")
def test_a_question_is_settled_when_its_task_goes_on_without_an_answer() -> None:
    def check(effect: CallTool) -> dict[str, Any]:
        issue = {"file": "a.py", "line": 1, "message": "unused"}
        return {"passed": False, "issues": [issue]} if effect.input["kind"] == "lint" else default_output(effect)

    world = World(plan(("a", ())), tools={"team-check": check}).start().run()
    assert world.state.questions
    world.user(T.USER_IGNORE_INSPECTOR, ORCHESTRATOR, pipeline="a.1")
    assert not world.state.questions


def test_an_override_settles_the_question_about_the_session() -> None:
    world = World(PAIR)
    world.agents[INSPECTOR] = lambda effect: [world.ended(effect)]
    world.start().run()
    assert (world.state.stage, len(world.state.questions)) == (TeamStage.CHOICE, 1)
    world.user(T.USER_OVERRIDE, INSPECTOR, reason="known")
    assert not world.state.questions


@pytest.mark.req("SYL-45")
def test_the_user_asks_about_a_plan_and_gets_an_answer() -> None:
    world = World(PAIR)
    world.user(T.PLAN_REQUEST, request="add rate limiting")
    world.run()
    world.agents[ARCHITECT] = lambda effect: [world.ended(effect, text="They are independent.")]
    world.user(T.USER_INTERRUPT, kind="ask", text="Why two tasks?")
    world.run()
    answers = [each.payload["text"] for each in world.log if each.type is T.TASK_ANSWER]
    assert answers == ["They are independent."]
    assert world.state.stage is TeamStage.APPROVAL


@pytest.mark.req("SYL-40")
def test_a_choice_and_an_override_are_refused_where_nothing_waits_for_them() -> None:
    world = until(World(PAIR).start(), lambda state: bool(state.pipelines))
    with pytest.raises(IllegalState, match="name a task"):
        world.user(T.USER_CHOICE, ORCHESTRATOR, choice="ignore")
    until(world, lambda state: state.stage is TeamStage.LINT)
    with pytest.raises(IllegalState, match="inspection"):
        world.user(T.USER_OVERRIDE, TESTER, reason="known", what="testing")


def test_the_tasks_of_the_first_plan_are_known_after_corrections() -> None:
    world = World(PAIR, tools={"team-check": broken_linter}).start()
    until(world, lambda state: "fix1-a.1" in state.pipelines)
    node = world.state.find_node("a")
    assert node is not None
    assert node.prompt == "do a"
    with pytest.raises(IllegalState, match="completed"):
        world.user(T.USER_TASK_PROMPT, ORCHESTRATOR, pipeline="a.1", text="once more")
