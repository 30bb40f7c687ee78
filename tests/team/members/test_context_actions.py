"""Thresholds of members are carried out: checkpoints in the journal, hand-offs, stored summaries, open items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.assembly import RuntimeAdditions
from clew.clock import ManualClock
from clew.knowledge.base import Knowledge
from clew.knowledge.history.entries import CheckpointCategory
from clew.team.guide import checked_message_draft
from clew.team.machines.team_state import TeamState
from clew.team.members.context_checkpoints import CATEGORIES
from clew.team.members.context_handlers import ContextActions, load_checkpoint
from clew.team.members.toolkit.scratchpad import Scratchpad
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import SCHEMA, TeamMessage
from clew.team.messages.message_types import MessageType
from clew.team.messages.payloads import CheckIssue, Findings, PlanRequest, TestFailure, TestReport
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import Flow, read_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.team.members.kit import PIPELINE, SESSION, Kit, open_kit
from tests.team.members.working import Team, working

ISSUE = CheckIssue(file="calc/core.py", line=2, message="sub is missing", suggestion="add it")
FAILURE = TestFailure(test_name="test_sub", message="no sub")


@pytest.fixture
async def kit(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> Kit:
    return await open_kit(trail, clock, me, tmp_path)


async def actions_of(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> ContextActions:
    async def known() -> Knowledge:
        assert kit.knowledge is not None
        return kit.knowledge

    async def state_of(session: str) -> TeamState:
        return kit.state

    flow = await read_flow(trail, by=me)
    return ContextActions(trail=trail, flow=flow, clock=clock, by=me, knowledge=known, state_of=state_of)


def ordered(flow: Flow, role: str, do: str, at: float, pipeline: str = "main") -> Draft:
    """The record of a crossed threshold."""
    conversation = f"{SESSION}.{pipeline}.{role}"
    context = {
        "agent_id": role,
        "kind": role,
        "generation": 0,
        "at": at,
        "do": do,
        "local": False,
        "used": 85,
        "limit": 100,
    }
    tags = (f"agent:{role}", f"session:{conversation}", f"context:{do}")
    return Draft(title=f"{role}: {do}", schema_name=flow.checkpoint, tags=tags, context=context, embed="never")


async def stored(team: Team, category: str) -> dict[str, Any]:
    match = ContextMatch(path="category", value=category)
    [record] = await team.run.until(Selector(schema_name="node.v1", context_match=(match,)))
    assert record.context["metadata"]["session"] == SESSION
    found: dict[str, Any] = msgspec.json.decode(record.context["content"])
    return found


def with_results(kit: Kit) -> None:
    pipeline = msgspec.structs.replace(
        kit.state.pipelines[PIPELINE],
        inspector_result=Findings(passed=False, issues=(ISSUE,)),
        tester_result=TestReport(passed=False, tests_run=3, tests_passed=2, failures=(FAILURE,)),
    )
    request = PlanRequest(request="Add subtraction")
    kit.state = msgspec.structs.replace(kit.state, pipelines={PIPELINE: pipeline}, request=request)


@pytest.mark.req("SYL-55", "SYL-56", "SYL-57")
@pytest.mark.parametrize("role", CATEGORIES)
async def test_a_checkpoint_is_stored_under_its_category_with_its_fields(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit, role: str
) -> None:
    with_results(kit)
    actions = await actions_of(trail, clock, me, kit)
    additions = RuntimeAdditions(handlers=actions.handlers())
    category, shape = CATEGORIES[role]
    async with working(trail, clock, me, tools=kit.tools, additions=additions) as team:
        pipeline = PIPELINE if role in ("inspector", "tester") else "main"
        await trail.records.create(ordered(actions.flow, role, "checkpoint", 85, pipeline), by=me)
        content = await stored(team, category)
    checkpoint = msgspec.convert(content, shape, strict=False)
    assert set(content) == set(shape.__struct_fields__)
    assert checkpoint.session_id == SESSION
    assert checkpoint.context_usage == 0.85
    if role == "architect":
        assert content["original_request"] == "Add subtraction"
        assert content["current_dag"]["total_nodes"] == 1
        assert [each["id"] for each in content["pending_tasks"]] == ["add"]
    if role == "inspector":
        [fix] = content["fixes_pending"]
        assert (fix["file"], fix["line"], fix["severity"], fix["priority"]) == ("calc/core.py", 2, "high", 1)
    if role == "tester":
        assert (content["pass_count"], content["fail_count"], content["skip_count"]) == (2, 1, 0)
    if role == "librarian":
        assert "calc/" in content["directory_structure"]


@pytest.mark.req("SYL-55")
async def test_routings_and_research_of_a_conversation_are_in_its_checkpoint(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    actions = await actions_of(trail, clock, me, kit)
    additions = RuntimeAdditions(handlers=actions.handlers())
    script = [
        {"call": {"guide_route_message": {"input": "Where is add?", "target": "librarian"}}},
        {"say": "librarian"},
    ]
    async with working(trail, clock, me, script, tools=kit.tools, additions=additions) as team:
        await team.tell("guide", "Where is add?")
        await trail.records.create(ordered(actions.flow, "guide", "checkpoint", 50), by=me)
        content = await stored(team, "guide_checkpoint")
    assert content["known_routings"] == {"Where is add?": "librarian"}
    assert content["frequent_matches"][0]["usage_count"] == 1
    assert content["checkpoint_index"] == 1


@pytest.mark.req("SYL-54", "SYL-58", "SYL-59")
async def test_a_full_engineer_asks_for_a_hand_off_with_its_notes(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    actions = await actions_of(trail, clock, me, kit)
    script = [
        {"call": {"scratchpad_write": {"key": "api", "note": "Use v2."}}},
        {"call": {"save_checkpoint": {"summary": "Half", "next_steps": ["test"]}}},
        {"say": "Done."},
    ]
    additions = RuntimeAdditions(handlers=actions.handlers())
    async with working(trail, clock, me, script, tools=kit.tools, additions=additions) as team:
        await team.tell("engineer", "Begin.", PIPELINE, SESSION)
        await trail.records.create(ordered(actions.flow, "engineer", "hand_off", 95, PIPELINE), by=me)
        tags = (f"type:{MessageType.HANDOFF_REQUEST}",)
        [record] = await team.run.until(Selector(schema_name=SCHEMA, all_tags=tags))
    message = record.context
    assert (message["source"], message["target"], message["session_id"]) == ("runtime", "architect", SESSION)
    payload = message["payload"]
    assert payload["old_pipeline_id"] == PIPELINE
    assert payload["handoff_reason"] == "the context is 95 % full"
    assert payload["engineer_state"]["accomplished"] == "Half"
    assert payload["engineer_state"]["remaining"] == ["test"]
    assert payload["engineer_state"]["context_notes"] == "api: Use v2."


@pytest.mark.req("SYL-58")
async def test_a_stored_hand_off_is_found_in_the_journal_by_its_category(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    actions = await actions_of(trail, clock, me, kit)
    payload = {"category": "pipeline_handoff", "content": {"old_pipeline_id": PIPELINE}, "pipeline": PIPELINE}
    message = TeamMessage(
        id=clock.new_id(),
        session_id=SESSION,
        source="runtime",
        target="archivalist",
        type=MessageType.STORE_SUMMARY,
        payload=payload,
        timestamp=clock.now(),
    )
    script = [
        {"call": {"archivalist_query_chronicle": {"categories": ["pipeline_handoff"]}}},
        {"call": {"archivalist_query_chronicle": {}}},
        {"call": {"archivalist_query_chronicle": {"categories": ["gossip"]}}},
        {"say": "Done."},
    ]
    additions = RuntimeAdditions(handlers=actions.handlers())
    async with working(trail, clock, me, script, tools=kit.tools, additions=additions) as team:
        await trail.records.create(checked_message_draft(message), by=me)
        await stored(team, "pipeline_handoff")
        await team.tell("archivalist", "Find it.")
        named, usual, wrong = await team.results("archivalist_query_chronicle")
    assert PIPELINE in named
    assert PIPELINE not in usual
    assert "pipeline_handoff" in wrong
    found = await load_checkpoint(trail, CheckpointCategory.PIPELINE_HANDOFF, SESSION, by=me)
    assert found == {"old_pipeline_id": PIPELINE}


@pytest.mark.req("SYL-57")
async def test_a_local_compaction_keeps_open_findings_and_notes(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    with_results(kit)
    actions = await actions_of(trail, clock, me, kit)
    inside = Principal(owner_id=me.owner_id, agent_id="inspector", session=SESSION)
    await Scratchpad(trail, clock, inside).write("api", "Use v2.")
    kept = await actions.open_items("inspector", f"{SESSION}.{PIPELINE}.inspector")
    assert kept == "- calc/core.py:2 sub is missing\n- test_sub: no sub\n- note api: Use v2."
    assert await actions.open_items("helper", "another session") == ""


def test_a_conversation_has_three_parts() -> None:
    found = find_conversation("s1.add.1.engineer")
    assert found is not None
    assert (found.session, found.pipeline, found.role, found.id) == ("s1", "add.1", "engineer", "s1.add.1.engineer")
    assert find_conversation("s1.main.stranger") is None
    assert find_conversation(None) is None
