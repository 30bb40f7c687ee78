"""The machines of the team against a scripted world: order, limits, loops, retries, conflicts, and the user."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import IllegalState, InvalidInput
from clew.team.machines.dag import NodeStatus
from clew.team.machines.effects import AskAgent, CallTool, CancelRun
from clew.team.machines.phases import Phase
from clew.team.machines.pipeline_state import TRANSITIONS, PipelineStatus, Stage, move
from clew.team.machines.team_state import Outcome, TeamStage
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ENGINEER, INSPECTOR, ORCHESTRATOR, MessageType
from tests.team.machines.world import World, builtins, default_output, plan

T = MessageType
PAIR = plan(("a", ()), ("b", ()))


def failing(kind: str, times: int, output: dict[str, Any]) -> Any:
    """A `team-check` whose first checks of a kind fail."""
    left = [times]

    def check(effect: CallTool) -> dict[str, Any]:
        if effect.input["kind"] == kind and effect.input["pipeline"] and left[0] > 0:
            left[0] -= 1
            return {"passed": False, **output}
        return default_output(effect)

    return check


def prompts_of(world: World, role: str) -> list[str]:
    return [each.prompt for each in world.effects if isinstance(each, AskAgent) and each.role == role]


@pytest.mark.req("SYL-40")
def test_a_run_passes_all_phases_and_ends_with_a_summary() -> None:
    world = World(PAIR).start(research=True)
    assert world.state.phase == "research"
    world.run()
    assert world.state.outcome is Outcome.COMPLETED
    assert world.state.phase is Phase.COMPLETE
    assert {T.RESEARCH_RESPONSE, T.PLAN_RESPONSE, T.DAG_EXECUTE, T.VALIDATION_FULL, T.TEST_RESULTS} <= set(
        world.types()
    )
    summary = world.state.summary
    assert summary is not None
    assert summary.modified == ("a.1.py", "b.1.py")
    assert (summary.tests_run, summary.validation) == (3, "passed")


def test_work_without_tests_does_not_claim_that_tests_passed() -> None:
    untested = {"passed": True, "receipts": [], "skipped_reason": "the project has no tests"}
    world = World(plan(("a", ())), tools={"team-check": lambda effect: dict(untested)}).start().run()
    assert world.state.summary is not None
    assert world.state.summary.text == "All tasks passed inspection and are merged. No tests ran."


@pytest.mark.req("BEY-14")
def test_a_chain_of_tasks_runs_as_one_pipeline() -> None:
    world = World(plan(("a", ()), ("b", ("a",)), ("c", ("b",)))).start().run()
    assert list(world.state.pipelines) == ["work.1"]
    assert world.state.preflight is not None
    assert world.state.preflight.one_agent
    assert "do a" in prompts_of(world, ENGINEER)[0]
    assert "do c" in prompts_of(world, ENGINEER)[0]


@pytest.mark.req("BEY-14")
def test_a_plan_above_its_budget_is_not_approved_by_itself() -> None:
    world = World(PAIR).start(budget=10).run()
    assert world.state.stage is TeamStage.APPROVAL
    with pytest.raises(IllegalState, match="over budget"):
        world.user(T.PLAN_APPROVED)
    world.user(T.PLAN_APPROVED, over_budget=True)
    assert world.run().state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-51")
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("lint", {"issues": [{"file": "a.py", "line": 3, "message": "unused"}]}),
        ("test", {"failures": [{"test_name": "t", "message": "3 != 4"}]}),
    ],
)
def test_failures_give_three_rounds_and_then_the_user_decides(kind: str, output: dict[str, Any]) -> None:
    world = World(plan(("a", ())), tools={"team-check": failing(kind, 3, output)}).start().run()
    pipeline = world.state.pipelines["a.1"]
    assert pipeline.stage is Stage.CHOICE
    assert pipeline.inspector_loops + pipeline.tester_loops == 3
    assert len(prompts_of(world, ENGINEER)) == 3
    assert next(iter(world.state.questions.values())).pipeline == "a.1"
    world.user(T.USER_CHOICE, ORCHESTRATOR, pipeline="a.1", choice="ignore", reason="known")
    world.run()
    assert world.state.outcome is Outcome.COMPLETED
    assert world.state.summary is not None
    assert "known" in world.state.summary.deferred_overrides[0]


@pytest.mark.req("SYL-49")
def test_the_second_prompt_holds_the_feedback_of_the_first_round() -> None:
    output = {"issues": [{"file": "a.py", "line": 3, "message": "unused import"}]}
    world = World(plan(("a", ())), tools={"team-check": failing("lint", 1, output)}).start().run()
    assert "a.py:3: lint error: unused import" in prompts_of(world, ENGINEER)[1]
    assert world.state.outcome is Outcome.COMPLETED


def test_a_claim_without_a_change_is_refused() -> None:
    commits: list[dict[str, Any]] = [
        {"is_empty": True, "tree": "t"},
        {"tree": "t2", "commit": "c", "changed": ["a.py"]},
    ]
    world = World(plan(("a", ())), tools={"team-commit": lambda effect: commits.pop(0)}).start().run()
    assert "no file has changed" in prompts_of(world, ENGINEER)[1]
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("BEY-10")
def test_the_gate_has_the_last_word() -> None:
    answers = [("the log belongs to another commit",), ()]
    world = World(plan(("a", ())), gate=lambda pipeline, node: answers.pop(0)).start().run()
    assert "the log belongs to another commit" in prompts_of(world, ENGINEER)[1]
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-46")
def test_an_error_is_retried_with_backoff_and_then_fails_the_plan_fast() -> None:
    def crash(effect: AskAgent) -> list[TeamMessage]:
        return [world.ended(effect, "failed", error="the provider is away")] if effect.pipeline[0] == "b" else None  # type: ignore[return-value]

    nodes = plan(("a", ()), ("b", ()), ("c", ("b",)))
    world = World(nodes, agents={"engineer": crash})
    world.start().run()
    assert world.state.dag is not None
    assert world.state.dag.nodes["b"].attempts == 3
    assert world.state.dag.nodes["b"].status is NodeStatus.FAILED
    assert world.state.dag.nodes["c"].status is NodeStatus.CANCELLED
    assert world.state.outcome is Outcome.FAILED
    assert "the provider is away" in world.state.reason


def test_a_budget_that_is_spent_is_not_retried() -> None:
    world = World(plan(("a", ())))
    world.agents["engineer"] = lambda effect: [world.ended(effect, "failed", error="budget exceeded", cause="budget")]
    world.start().run()
    assert list(world.state.pipelines) == ["a.1"]
    assert world.state.outcome is Outcome.FAILED


def test_an_agent_that_ends_without_a_claim_is_asked_once_more() -> None:
    world = World(plan(("a", ())))
    world.agents["engineer"] = lambda effect: [world.ended(effect)] if len(prompts_of(world, ENGINEER)) < 2 else None
    world.start().run()
    assert "ended without" in prompts_of(world, ENGINEER)[1]
    assert world.state.outcome is Outcome.COMPLETED


def test_a_merge_conflict_starts_the_task_again_with_both_sides() -> None:
    sides: list[dict[str, Any]] = [
        {"merged": False, "conflicts": [{"path": "x.py", "ours": "their line", "theirs": "my line"}]}
    ]
    merge = lambda effect: sides.pop() if sides and effect.input["pipeline"] == "b.1" else default_output(effect)  # noqa: E731
    world = World(PAIR, tools={"team-merge": merge}).start().run()
    again = next(text for text in prompts_of(world, ENGINEER) if "both changes hold" in text)
    assert "their line" in again
    assert "my line" in again
    assert "b.2" in world.state.pipelines
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-47")
def test_a_defect_of_the_whole_session_leads_to_a_plan_of_corrections() -> None:
    left = [1]

    def check(effect: CallTool) -> dict[str, Any]:
        if not effect.input["pipeline"] and effect.input["kind"] == "test" and left[0]:
            left[0] -= 1
            return {"passed": False, "failures": [{"test_name": "together", "message": "broken"}]}
        return default_output(effect)

    world = World(PAIR, tools={"team-check": check}).start().run()
    assert T.TEST_CORRECTIONS in world.types()
    assert world.state.fix_rounds == 1
    assert len(world.state.dag_history) == 2
    assert "fix1-a.1" in world.state.pipelines
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-41")
def test_a_question_of_the_engineer_reaches_the_user_signed_by_the_architect() -> None:
    asked: list[AskAgent] = []

    def engineer(effect: AskAgent) -> list[TeamMessage] | None:
        if asked:
            return None
        asked.append(effect)
        question = {"question": "which limit?", "pipeline": effect.pipeline}
        return [world.message(T.TASK_HELP, ENGINEER, ORCHESTRATOR, question), world.ended(effect)]

    world = World(plan(("a", ())), agents={"engineer": engineer})
    world.start().run()
    hops = [(each.source, each.target) for each in world.log if each.type in (T.TASK_HELP, T.CLARIFICATION_REQUEST)]
    assert hops == [("engineer", "orchestrator"), ("orchestrator", "architect"), ("architect", "user")]
    id = next(iter(world.state.questions))
    world.user(T.CLARIFICATION_RESPONSE, text="100 a minute", request=id, pipeline="a.1")
    world.run()
    assert "100 a minute" in prompts_of(world, ENGINEER)[1]
    assert not world.state.questions
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-41")
def test_a_halt_stops_new_work_until_the_user_continues() -> None:
    world = World(plan(("a", ()), ("b", ("a",)), ("c", ()))).start()
    while world.state.dag is None:
        world.deliver_next()
    world.user(T.USER_INTERRUPT, kind="halt")
    world.run()
    assert "b.1" not in world.state.pipelines
    world.user(T.USER_INTERRUPT, kind="continue")
    assert world.run().state.outcome is Outcome.COMPLETED


def test_stop_cancels_all_runs_and_keeps_the_branch() -> None:
    world = World(PAIR).start()
    while not world.state.pipelines or any(each.state == "created" for each in world.state.pipelines.values()):
        world.deliver_next()
    world.user(T.USER_INTERRUPT, kind="stop")
    world.run()
    assert world.state.outcome is Outcome.STOPPED
    assert {each.conversation for each in world.effects if isinstance(each, CancelRun)} == {
        "s.a.1.engineer",
        "s.b.1.engineer",
    }
    assert world.state.branch == "clew/s"


@pytest.mark.req("SYL-53")
def test_ignoring_the_tester_skips_tests_of_that_task_only() -> None:
    world = World(PAIR).start()
    while len(world.state.pipelines) < 2:
        world.deliver_next()
    world.user(T.USER_IGNORE_TESTER, ORCHESTRATOR, pipeline="a.1")
    world.run()
    calls = [each for each in world.effects if isinstance(each, CallTool) and each.tool == "team-check"]
    checked = [each.input["pipeline"] for each in calls if each.input["kind"] == "test"]
    assert "a.1" not in checked
    assert "b.1" in checked


@pytest.mark.req("SYL-53")
def test_a_question_about_a_task_is_answered_without_disturbing_it() -> None:
    world = World(plan(("a", ()))).start()
    while "a.1" not in world.state.pipelines:
        world.deliver_next()
    world.agents["inspector"] = lambda effect: (
        [world.ended(effect, text="half done")] if effect.conversation.endswith(".query") else None
    )
    world.user(T.USER_TASK_QUERY, ORCHESTRATOR, pipeline="a.1", text="how far?")
    world.run()
    assert [each.payload["text"] for each in world.log if each.type is T.TASK_ANSWER] == ["half done"]
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-58")
def test_a_hand_off_passes_the_prompt_and_the_rest_to_a_new_engineer() -> None:
    world = World(plan(("a", ())))
    asked: list[AskAgent] = []

    def engineer(effect: AskAgent) -> list[TeamMessage] | None:
        asked.append(effect)
        if len(asked) > 1:
            return None
        state = {"old_pipeline_id": effect.pipeline, "engineer_state": {"remaining": ["write the test"]}}
        return [world.message(T.HANDOFF_REQUEST, ENGINEER, "architect", state)]

    world.agents["engineer"] = engineer
    world.start().run()
    assert asked[1].conversation == "s.a.2.engineer"
    assert asked[1].prompt.startswith("do a\n")
    assert "write the test" in asked[1].prompt
    order = world.types()
    assert order.index(T.CREATE_PIPELINE_WITH_STATE) < order.index(T.HANDOFF_COMPLETE)
    assert world.state.pipelines["a.1"].state is PipelineStatus.FAILED
    assert world.state.pipelines["a.2"].handoff_index == 1
    assert world.state.outcome is Outcome.COMPLETED


def test_an_inspector_that_gives_no_verdict_never_passes_a_change() -> None:
    nodes = plan(("a", ()))
    nodes["nodes"][0]["criteria"] = ["it is documented"]
    world = World(nodes)
    world.agents["inspector"] = lambda effect: [world.ended(effect)]
    world.start().run()
    assert world.state.outcome is Outcome.FAILED
    assert "no verdict" in world.state.reason
    assert INSPECTOR in world.state.reason.lower()


@pytest.mark.req("SYL-40")
def test_an_action_that_the_phase_does_not_allow_is_refused_with_what_is_possible() -> None:
    world = World(PAIR).start()
    with pytest.raises(IllegalState, match="planning") as refusal:
        world.user(T.USER_TASK_INTERRUPT, ORCHESTRATOR, pipeline="a.1")
    assert "approve the plan" in str(refusal.value.hint)
    with pytest.raises(IllegalState, match="not there yet"):
        world.user(T.PLAN_APPROVED)


def test_a_payload_that_does_not_fit_is_refused_by_name() -> None:
    world = World(PAIR)
    with pytest.raises(InvalidInput, match="request"):
        world.user(T.PLAN_REQUEST, text="hello")


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    names = [f"n{at}" for at in range(draw(st.integers(1, 6)))]
    nodes = [
        (name, tuple(draw(st.sets(st.sampled_from(names[:at]), max_size=2)) if at else ()))
        for at, name in enumerate(names)
    ]
    return plan(*nodes, max_concurrency=draw(st.integers(1, 4)), fail_fast=draw(st.booleans()))


@pytest.mark.req("SYL-46")
@given(nodes=plans(), data=st.data())
def test_any_order_of_events_ends_in_a_state_that_the_log_rebuilds(nodes: dict[str, Any], data: st.DataObject) -> None:
    def check(effect: CallTool) -> dict[str, Any]:
        if data.draw(st.integers(0, 4)) == 0:
            return {"passed": False, "failures": [{"test_name": "t"}], "issues": [{"file": "f", "message": "bad"}]}
        return default_output(effect)

    def engineer(effect: AskAgent) -> list[TeamMessage] | None:
        fails = data.draw(st.integers(0, 5)) == 0
        return [world.ended(effect, "failed", error="crash")] if fails else None

    world = World(nodes, tools={"team-check": check}, agents={"engineer": engineer})
    world.start()
    choose = lambda count: data.draw(st.integers(0, count - 1))  # noqa: E731
    world.run(choose)
    while world.state.questions:
        name = next(iter(world.state.questions.values())).pipeline
        world.user(T.USER_CHOICE, ORCHESTRATOR, pipeline=name, choice=data.draw(st.sampled_from(["ignore", "fail"])))
        world.run(choose)
    state = world.state
    assert state.outcome in (Outcome.COMPLETED, Outcome.FAILED)
    assert world.peak <= nodes["policy"]["max_concurrency"]
    assert state.dag is not None
    assert (state.outcome is Outcome.COMPLETED) <= state.dag.has_passed
    assert builtins(world.replayed()) == builtins(state)


@pytest.mark.req("SYL-41")
def test_a_question_during_the_work_is_answered_beside_it() -> None:
    world = World(PAIR).start()
    while len(world.state.pipelines) < 2:
        world.deliver_next()
    world.agents["architect"] = lambda effect: [world.ended(effect, text="two tasks run")]
    world.user(T.USER_INTERRUPT, kind="ask", text="how far are you?")
    world.run()
    assert [each.payload["text"] for each in world.log if each.type is T.TASK_ANSWER] == ["two tasks run"]
    assert "how far are you?" in prompts_of(world, "architect")[-1]
    assert world.state.outcome is Outcome.COMPLETED


@pytest.mark.req("SYL-48")
@pytest.mark.parametrize("before", PipelineStatus)
@pytest.mark.parametrize("after", PipelineStatus)
def test_a_pipeline_moves_only_along_its_life_cycle(before: PipelineStatus, after: PipelineStatus) -> None:
    world = World(plan(("a", ()))).start().run()
    pipeline = msgspec.structs.replace(world.state.pipelines["a.1"], state=before)
    if after is before or after in TRANSITIONS[before]:
        assert move(pipeline, after).state is after
        return
    with pytest.raises(IllegalState, match=f"it is {before}") as refusal:
        move(pipeline, after)
    assert set(refusal.value.allowed) == {str(each) for each in TRANSITIONS[before]}


@pytest.mark.req("SYL-48")
def test_the_sequence_of_states_of_a_pipeline_is_in_its_log() -> None:
    output = {"issues": [{"file": "a.py", "message": "unused"}]}
    world = World(plan(("a", ())), tools={"team-check": failing("lint", 1, output)}).start()
    seen: list[PipelineStatus] = []
    while world.pending:
        world.deliver_next()
        found = world.state.pipelines.get("a.1")
        if found is not None and (not seen or seen[-1] is not found.state):
            seen.append(found.state)
    assert seen == ["created", "running", "inspecting", "running", "inspecting", "testing", "completed"]


@pytest.mark.req("SYL-33")
def test_a_session_has_no_more_engineers_at_once_than_it_may() -> None:
    world = World(plan(*((f"n{at}", ()) for at in range(9)))).start(max_agents=2).run()
    assert world.peak == 2
    assert world.state.outcome is Outcome.COMPLETED
    assert len({each.engineer_id for each in world.state.pipelines.values()}) == 9
