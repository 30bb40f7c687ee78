"""External interruptions of work: a question during the time limit, a hand-off without a work tree."""

from __future__ import annotations

from typing import Any

import pytest

from clew.team.machines.effects import AskAgent, CallTool, SendMessage, StartTimer
from clew.team.machines.handoff import FALLBACK
from clew.team.machines.pipeline_state import PipelineStatus, Stage
from clew.team.machines.team_state import Outcome
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, ENGINEER, ORCHESTRATOR, RUNTIME, MessageType
from tests.team.machines.world import World, default_output, plan

T = MessageType
TIMEOUT = {"key": "a.1/timeout"}


def asked_world() -> World:
    """A task with a time limit whose Engineer has asked the user a question."""
    nodes = plan(("a", ()))
    nodes["nodes"][0]["metadata"] = {"timeout_ms": 60_000}
    world = World(nodes)

    def ask(effect: AskAgent) -> list[TeamMessage]:
        question = {"pipeline": effect.pipeline, "question": "which one?"}
        return [world.message(T.TASK_HELP, ENGINEER, ORCHESTRATOR, question), world.ended(effect)]

    world.agents[ENGINEER] = ask
    world.start().run()
    assert world.state.pipelines["a.1"].stage is Stage.QUESTION
    del world.agents[ENGINEER]
    return world


def timers(world: World) -> list[str]:
    return [each.key for each in world.effects if isinstance(each, StartTimer)]


@pytest.mark.req("SYL-46")
def test_a_time_limit_that_ends_during_a_question_starts_again_after_the_answer() -> None:
    world = asked_world()
    assert timers(world) == ["a.1/timeout"]
    world.deliver(world.message(T.TIMER_DUE, RUNTIME, ORCHESTRATOR, TIMEOUT))
    assert world.state.pipelines["a.1"].stage is Stage.QUESTION
    world.agents[ENGINEER] = lambda effect: []
    world.user(T.CLARIFICATION_RESPONSE, pipeline="a.1", text="the first")
    assert timers(world) == ["a.1/timeout", "a.1/timeout"]
    world.run()
    world.deliver(world.message(T.TIMER_DUE, RUNTIME, ORCHESTRATOR, TIMEOUT))
    assert world.state.pipelines["a.1"].reason == "it took longer than its time limit"
    assert world.replayed() == world.state


def test_a_time_limit_that_did_not_end_is_not_started_again() -> None:
    world = asked_world()
    world.user(T.CLARIFICATION_RESPONSE, pipeline="a.1", text="the first")
    world.run()
    assert timers(world) == ["a.1/timeout"]
    assert world.state.outcome is Outcome.COMPLETED


def handed_over(failures: int) -> World:
    """A task that its Engineer hands over, while the new work tree fails a number of times."""
    world = World(plan(("a", ()), default_retry={"max": 2, "backoff_ms": 1}))
    left = iter(range(failures))
    starts: list[str] = []

    def open_tree(effect: CallTool) -> dict[str, Any]:
        starts.append(effect.input["start"])
        is_new = effect.input["pipeline"] != "a.1"
        return {"status": "error"} if is_new and next(left, None) is not None else default_output(effect)

    def hand_over(effect: AskAgent) -> list[TeamMessage] | None:
        if effect.pipeline != "a.1":
            return None
        given = {"old_pipeline_id": "a.1", "engineer_state": {"remaining": ["the rest"]}}
        return [world.message(T.HANDOFF_REQUEST, ENGINEER, ARCHITECT, given)]

    world.tools["team-worktree"], world.agents[ENGINEER] = open_tree, hand_over
    world.start().run()
    assert starts == ["", *["c-a.1"] * (len(starts) - 1)]
    return world


@pytest.mark.req("SYL-58")
def test_a_hand_off_whose_work_tree_fails_once_goes_on_from_its_commit() -> None:
    world = handed_over(failures=1)
    assert world.state.outcome is Outcome.COMPLETED
    assert world.state.pipelines["a.1"].reason == "handed over to a.3"
    assert world.state.pipelines["a.3"].start_from == "c-a.1"
    assert "the rest" in world.state.pipelines["a.3"].context.handoff_notes
    assert world.replayed() == world.state


@pytest.mark.req("SYL-58")
def test_a_hand_off_that_never_gets_a_work_tree_leaves_the_task_with_the_old_engineer() -> None:
    world = handed_over(failures=3)
    assert world.state.dag is not None
    assert world.state.dag.nodes["a"].pipeline == "a.1"
    assert world.state.pipelines["a.1"].state is PipelineStatus.RUNNING
    assert world.state.handoffs == {}
    stored = [each.payload for each in world.effects if isinstance(each, SendMessage) and each.type is T.STORE_SUMMARY]
    assert stored[-1]["category"] == FALLBACK
    asked = next(each for each in world.effects if isinstance(each, AskAgent) and each.pipeline == "a.1")
    world.pending += [[*world.said(asked), world.ended(asked)]]
    world.run()
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("team-worktree", "its work tree cannot be made: it is gone"),
        ("team-commit", "its work cannot be committed: it is gone"),
        ("team-check", "its files cannot be checked: it is gone"),
    ],
)
def test_a_call_that_fails_is_named_by_what_it_does(tool: str, reason: str) -> None:
    world = World(plan(("a", ()), default_retry={"max": 0, "backoff_ms": 1}))
    world.start()
    failed: list[str] = []

    def fail(effect: CallTool) -> dict[str, Any]:
        failed.append(effect.call)
        return {"status": "error", "error": "it is gone"}

    world.tools[tool] = fail
    world.run()
    assert failed
    assert world.state.reason == f"a: {reason}"
