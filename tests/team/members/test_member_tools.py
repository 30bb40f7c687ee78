"""The tools of members, called by members in conversations with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.members.roster import shipped_manifest, tools_of_member
from clew.team.members.toolkit.member_tools import CROSS_AGENT
from clew.team.messages.message_types import AGENTS
from clew.team.messages.payloads import CheckIssue, Findings, TestFailure, TestReport
from clew.tools.permissions.policy import Policy, extend
from clew.tools.permissions.rules import parse_rule
from clew.trail.store import Trail
from tests.team.members.kit import PIPELINE, Kit, open_kit
from tests.team.members.working import SESSION, Team, working

SNAPSHOT = Path(__file__).parent / "cross_agent_schemas.json"


async def play(
    trail: Trail,
    clock: ManualClock,
    me: Principal,
    kit: Kit,
    role: str,
    *calls: dict[str, Any],
    text: str = "Begin.",
    policy: Policy | None = None,
) -> list[Any]:
    """The results of successive calls of a member."""
    script = [*({"call": each} for each in calls), {"say": "Done."}]
    async with working(trail, clock, me, script, tools=kit.tools, policy=policy) as team:
        pipeline = PIPELINE if role in ("engineer", "designer", "inspector", "tester") else "main"
        await team.tell(role, text, pipeline, SESSION)
        return [result for each in calls for result in (await _last(team, next(iter(each))),)]


async def _last(team: Team, name: str) -> Any:
    return (await team.results(name))[-1]


@pytest.fixture
async def kit(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> Kit:
    return await open_kit(trail, clock, me, tmp_path)


@pytest.mark.req("SYL-29")
async def test_the_nineteen_cross_agent_tools_have_their_schemas(kit: Kit) -> None:
    schemas = {each.name: each.schema for each in kit.tools if each.name in CROSS_AGENT}
    assert sorted(schemas) == sorted(CROSS_AGENT)
    assert len(CROSS_AGENT) == 19
    assert json.loads(SNAPSHOT.read_text()) == json.loads(msgspec.json.encode(schemas))


@pytest.mark.req("SYL-29")
async def test_required_fields_are_those_of_the_specification(kit: Kit) -> None:
    required = {each.name: set(each.schema.get("required", ())) for each in kit.tools if each.name in CROSS_AGENT}
    assert required == {
        "guide_route_message": {"input"},
        "guide_classify_intent": {"input"},
        "guide_get_status": set(),
        "archivalist_store_entry": {"content", "category"},
        "archivalist_query_chronicle": set(),
        "archivalist_get_briefing": set(),
        "archivalist_record_file": {"path", "operation"},
        "archivalist_record_pattern": {"category", "name", "pattern"},
        "archivalist_record_failure": {"approach", "reason"},
        "librarian_search_code": {"query"},
        "librarian_get_file": {"path"},
        "librarian_get_structure": set(),
        "librarian_get_dependencies": {"path"},
        "engineer_read_file": {"path"},
        "engineer_write_file": {"path", "content"},
        "engineer_edit_file": {"path", "old_content", "new_content"},
        "engineer_run_command": {"command"},
        "engineer_signal_complete": {"result"},
        "engineer_request_help": {"question"},
    }


async def test_every_tool_that_a_member_names_exists(kit: Kit) -> None:
    manifest, names = shipped_manifest(), {each.name for each in kit.tools}
    assert not any(each.searchable for each in kit.tools)
    for agent in AGENTS:
        assert set(tools_of_member(manifest.agents[agent], manifest)) - {"load_skill"} <= names, agent


@pytest.mark.req("SYL-24")
async def test_an_engineer_works_in_its_tree_and_claims_its_task(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    before = (kit.project.root / "calc/core.py").read_text()
    brief, read, edit, run, signal = await play(
        trail,
        clock,
        me,
        kit,
        "engineer",
        {"execute_task": {}},
        {"engineer_read_file": {"path": "calc/core.py"}},
        {"engineer_edit_file": {"path": "calc/core.py", "old_content": "a + b", "new_content": "b + a"}},
        {"engineer_run_command": {"command": "cat calc/core.py; echo x > ../outside"}},
        {"engineer_signal_complete": {"result": "Swapped.", "files_modified": ["calc/core.py"]}},
    )
    assert brief["files"] == ["calc/*.py"]
    assert brief["checks"] == ["python -m pytest -q"]
    assert "return a + b" in read
    assert '"lines_added": 1' in edit
    assert "return b + a" in run["stdout"]
    assert not (kit.tree.parent / "outside").exists()
    assert "Noted" in signal
    assert (kit.tree / "calc/core.py").read_text() != before
    assert (kit.project.root / "calc/core.py").read_text() == before
    [claim] = kit.of_type("TASK_COMPLETE")
    assert (claim.source, claim.target) == ("engineer", "orchestrator")
    assert claim.payload == {"pipeline": PIPELINE, "summary": "Swapped.", "files": ["calc/core.py"]}


@pytest.mark.req("SYL-107")
async def test_a_second_read_hits_the_cache_and_an_edit_misses_it(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    import os

    os.utime(kit.tree / "calc/core.py", (1_700_000_000, 1_700_000_000))
    read = {"engineer_read_file": {"path": "calc/core.py"}}
    edit = {"engineer_edit_file": {"path": "calc/core.py", "old_content": "a + b", "new_content": "b + a"}}
    script = [{"call": each} for each in (read, read, edit, read)]
    async with working(trail, clock, me, [*script, {"say": "Done."}], tools=kit.tools) as team:
        await team.tell("engineer", "Begin.", PIPELINE, SESSION)
        first, second, third = await team.results("engineer_read_file")
    assert "cache_hit: false" in first
    assert "cache_hit: true" in second
    assert "cache_hit: false" in third


@pytest.mark.req("SYL-105")
async def test_a_preview_shows_a_diff_and_leaves_the_bytes(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    before = (kit.tree / "calc/core.py").read_bytes()
    given = {"file_path": "calc/core.py", "old_string": "a", "new_string": "x"}
    missing = {**given, "old_string": "nowhere"}
    several, absent = await play(trail, clock, me, kit, "engineer", {"preview_edit": given}, {"preview_edit": missing})
    del several  # the last call of a name counts below
    assert "nowhere" in absent or "not" in absent
    [shown, _] = await _all(trail, me, "preview_edit")
    assert "--- " in shown
    assert '"lines_removed"' in shown
    assert '"warnings"' in shown
    assert '"files_affected"' in shown
    assert (kit.tree / "calc/core.py").read_bytes() == before


async def _all(trail: Trail, me: Principal, name: str) -> list[Any]:
    from clew.trail.model.flow import read_flow
    from clew.trail.model.selector import Selector

    flow = await read_flow(trail, by=me)
    page = await trail.records.list(Selector(schema_name=flow.response), by=me, limit=100, oldest_first=True)
    return [
        each.context.get("output") or each.context.get("error") for each in page.items if each.context["tool"] == name
    ]


@pytest.mark.req("SYL-24")
async def test_consultations_travel_as_messages_and_are_answered(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    [answer] = await play(
        trail,
        clock,
        me,
        kit,
        "engineer",
        {"consult_librarian": {"question": "where is add defined?"}},
        text="Where is add?",
    )
    assert "calc/core.py" in answer
    [asked], [replied] = kit.of_type("CONTEXT_REQUEST"), kit.of_type("CONTEXT_RESPONSE")
    assert (asked.source, asked.target) == ("engineer", "librarian")
    assert (replied.source, replied.target) == ("librarian", "engineer")
    assert replied.payload["request"] == asked.id
    assert replied.payload["pipeline"] == PIPELINE


@pytest.mark.req("SYL-18", "SYL-24")
async def test_a_question_of_an_engineer_goes_to_the_orchestrator(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    await play(trail, clock, me, kit, "engineer", {"engineer_request_help": {"question": "Floats too?"}})
    [asked] = kit.sent
    assert (asked.type, asked.source, asked.target) == ("TASK_HELP", "engineer", "orchestrator")


@pytest.mark.req("SYL-23")
async def test_a_plan_is_checked_and_goes_to_the_user(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    nodes = [{"id": "a", "prompt": "Do a.", "files": ["x.py"]}, {"id": "b", "prompt": "Do b.", "files": ["x.py"]}]
    good = [nodes[0], {**nodes[1], "depends_on": ["a"]}]
    script = [
        {"call": {"plan": {"plan": {"summary": "Both", "nodes": nodes}}}},
        {"call": {"plan": {"plan": {"summary": "Both", "nodes": good}, "constraints": ["Keep the API."]}}},
        {"say": "Done."},
    ]
    async with working(trail, clock, me, script, tools=kit.tools) as team:
        await team.tell("architect", "Plan this.", session=SESSION)
        refused, shown = await team.results("plan")
    assert "a and b run in parallel and share x.py" in refused
    assert "Do a." in shown
    [proposal] = kit.sent
    assert (proposal.type, proposal.source, proposal.target) == ("PLAN_RESPONSE", "architect", "user")
    plan = proposal.payload["plan"]
    assert [each["id"] for each in plan["nodes"]] == ["a", "b"]
    assert plan["nodes"][0]["context"]["constraints"] == ["Keep the API."]


@pytest.mark.req("SYL-23")
async def test_an_architect_asks_changes_and_reports(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    plan = {"summary": "One", "nodes": [{"id": "a", "prompt": "Do a."}]}
    asked, shown, changed, fixed, halted = await play(
        trail,
        clock,
        me,
        kit,
        "architect",
        {"clarify": {"question": "Which?", "choices": ["A", "B"]}},
        {"approve_plan": {}},
        {"modify_plan": {"plan": plan, "reason": "B it is"}},
        {"create_fix_dag": {"plan": plan}},
        {"interrupt_handler": {"wish": "pause"}},
        text="Stop: change it instead, and fix the issues",
    )
    assert "End your turn" in asked
    assert "It waits for the user." in shown
    assert "Do a." in changed
    assert "Do a." in fixed
    assert PIPELINE in halted
    assert [each.type for each in kit.sent] == ["CLARIFICATION_REQUEST", "PLAN_RESPONSE", "PLAN_RESPONSE"]


@pytest.mark.req("SYL-28")
async def test_an_inspector_reports_lines(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    issue = {"file": "calc/core.py", "line": 2, "message": "sub is missing"}
    [result] = await play(trail, clock, me, kit, "inspector", {"report_issues": {"issues": [issue]}})
    assert "not passed" in result
    [findings] = kit.of_type("VALIDATION_RESULT")
    assert (findings.source, findings.target) == ("inspector", "orchestrator")
    assert findings.payload["passed"] is False
    assert findings.payload["issues"][0] == {**issue, "category": "compliance"}


@pytest.mark.req("SYL-28")
async def test_an_inspector_cannot_pass_an_error(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    issue = {"file": "calc/core.py", "line": 2, "message": "sub is missing"}
    given = {"issues": [issue], "passed": True}
    [error] = await play(trail, clock, me, kit, "inspector", {"report_issues": given})
    assert "an issue is an error" in error
    assert not kit.sent


@pytest.mark.req("SYL-28")
async def test_a_closer_look_shows_source_and_uses(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    kit.state = _with(
        kit, inspector_result=Findings(passed=False, issues=(CheckIssue(file="calc/core.py", line=2, message="slow"),))
    )
    analysis, explained = await play(
        trail,
        clock,
        me,
        kit,
        "inspector",
        {"deep_analysis": {"symbol": "calc/core.py#add", "concern": "deadlock"}},
        {"explain_issue": {"number": 1}},
        text="Explain why this could deadlock",
    )
    assert "return a + b" in analysis
    assert "tests/test_core.py" in analysis
    assert "2     return a + b" in explained


@pytest.mark.req("SYL-28")
async def test_a_tester_plans_reports_and_writes(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    failure = TestFailure(test_name="test_add", file="tests/test_core.py:5", message="3 != 4")
    kit.state = _with(kit, tester_result=TestReport(passed=False, tests_run=1, failures=(failure,)))
    planned, failures, written, refused, covered, wrong, reported = await play(
        trail,
        clock,
        me,
        kit,
        "tester",
        {"plan_tests": {"cases": [{"name": "sub", "shows": "2 - 1 is 1"}]}},
        {"analyze_failures": {}},
        {"generate_test_code": {"path": "tests/test_sub.py", "content": "def test_sub() -> None: ...\n"}},
        {"run_command": {}},
        {"coverage_analysis": {"paths": ["calc/core.py"]}},
        {"save_checkpoint": {"summary": " "}},
        {"report_results": {"passed": False, "tests_run": 1, "tests_passed": 0, "failures": []}},
        text="Generate what the coverage misses",
    )
    assert "1 tests" in planned
    assert "assert add(1, 2) == 3" in failures[0]["code"]
    assert (kit.tree / "tests/test_sub.py").exists()
    assert "does not exist" in refused
    assert covered == {"calc/core.py": []}
    assert "is empty" in wrong
    assert "0 of 1" in reported
    assert [each.type for each in kit.sent] == ["TEST_PLAN_RESPONSE", "TEST_RESULTS"]
    assert written


@pytest.mark.req("SYL-28")
async def test_a_tester_writes_only_test_files(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    given = {"path": "calc/core.py", "content": "x = 1\n"}
    [error] = await play(trail, clock, me, kit, "tester", {"generate_test_code": given}, text="Generate a test")
    assert "is not a test file" in error


@pytest.mark.req("SYL-21")
async def test_a_guide_routes_lists_and_steers(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    routed, classified, status, helped, steered, listed, switched, told = await play(
        trail,
        clock,
        me,
        kit,
        "guide",
        {"guide_route_message": {"input": "Where is add?", "target": "librarian", "intent": "recall"}},
        {"guide_classify_intent": {"input": "Plan a new login page"}},
        {"guide_get_status": {}},
        {"help": {"topic": "tasks"}},
        {"task_interact": {"task": "add", "action": "query", "text": "How far?"}},
        {"session_list": {}},
        {"session_switch": {"name": "billing"}},
        {"broadcast": {"text": "Freeze", "agents": ["engineer", "tester"]}},
        text="Switch the session and announce it",
    )
    assert (routed["target"], routed["intent"]) == ("librarian", "recall")
    assert classified["target"] in AGENTS
    assert status["agents"]["engineer"] == "none"
    assert "/task" in helped
    assert steered == f"/task {PIPELINE} query How far?"
    assert listed[0] == {"session": "billing", "state": "active"}
    assert switched == "/session switch billing"
    assert told == {"engineer": "Freeze", "tester": "Freeze"}


@pytest.mark.req("SYL-21")
async def test_an_unknown_intent_is_refused_with_the_choices(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    given = {"input": "x", "intent": "wonder"}
    [error] = await play(trail, clock, me, kit, "guide", {"guide_route_message": given})
    assert "recall" in error


@pytest.mark.req("SYL-32")
async def test_entries_belong_to_the_session_of_the_team(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    stored, listed, recorded, brief = await play(
        trail,
        clock,
        me,
        kit,
        "archivalist",
        {"archivalist_store_entry": {"content": "We use SQLite.", "category": "decision"}},
        {"archivalist_query_chronicle": {"search_text": "SQLite"}},
        {"archivalist_record_file": {"path": "calc/core.py", "operation": "modified", "summary": "sub"}},
        {"archivalist_get_briefing": {"tier": "micro"}},
    )
    assert stored.startswith("Stored as ")
    assert "We use SQLite." in listed
    assert recorded.startswith("Stored as ")
    assert brief
    assert kit.knowledge is not None
    entries = await kit.knowledge.chronicle(me, SESSION).query()
    assert {each.session_id for each in entries} == {SESSION}


@pytest.mark.req("SYL-29")
async def test_a_librarian_answers_from_the_code(trail: Trail, clock: ManualClock, me: Principal, kit: Kit) -> None:
    found, file, structure, dependencies = await play(
        trail,
        clock,
        me,
        kit,
        "librarian",
        {"librarian_search_code": {"query": "add", "symbol_type": "function"}},
        {"librarian_get_file": {"path": "calc/core.py"}},
        {"librarian_get_structure": {}},
        {"librarian_get_dependencies": {"path": "tests/test_core.py", "direction": "imports"}},
        text="What depends on it?",
    )
    assert "calc/core.py" in found
    assert "return a + b" in file
    assert "calc" in structure
    assert "calc/core.py" in dependencies
    assert "Imported by" not in dependencies


@pytest.mark.req("SYL-24")
async def test_rules_of_the_user_hold_in_a_work_tree(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    rules = [parse_rule("exec(git push*)", "deny"), parse_rule("write-file(secrets/**)", "deny")]
    policy = extend(Policy(otherwise="allow"), rules)
    kit = await open_kit(trail, clock, me, tmp_path, policy)
    pushed, wrote = await play(
        trail,
        clock,
        me,
        kit,
        "engineer",
        {"engineer_run_command": {"command": "git push origin main"}},
        {"engineer_write_file": {"path": "secrets/a.txt", "content": "x"}},
        policy=policy,
    )
    assert "git push" in pushed
    assert "secrets" in wrote
    assert not (kit.tree / "secrets").exists()


def _with(kit: Kit, **changes: Any) -> Any:
    pipeline: TaskPipeline = msgspec.structs.replace(kit.state.pipelines[PIPELINE], **changes)
    return msgspec.structs.replace(kit.state, pipelines={PIPELINE: pipeline})
