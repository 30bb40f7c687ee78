"""Repairs of tools, step by step, with a runner that a test plays."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.repairs.failures import CallFailure, FailedTool
from clew.agents.repairs.policy import GAVE_UP, WANTED, RepairPolicy
from clew.agents.repairs.repair_tools import ToolRepairs, fix_id, is_harmless, repair_tools
from clew.agents.runs.requests import read_request, request_draft
from clew.clock import ManualClock
from clew.context.definition import read_definition
from clew.errors import AccessDenied, CircuitOpen, InvalidInput, ToolFailure
from clew.tools.tool import ToolContext
from clew.trail.bootstrap import piece_id
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector, matches
from clew.trail.store import Trail
from tests.agents.records import shipped_reliability

REPAIRS = shipped_reliability().repairs
BUG = ToolFailure("runtime", "x is not defined", stack="at add (tool.js:1:9)")


class Workshop:
    """A tool with a bug, and the part of the runner that calls it."""

    def __init__(self, trail: Trail, flow: Flow, by: Principal, clock: ManualClock) -> None:
        self.trail, self.flow, self.by, self.clock = trail, flow, by, clock
        self.desk = RepairPolicy(trail, flow, REPAIRS, by=by)
        self.healing = ToolRepairs(trail, flow, REPAIRS)

    async def write_tool(self, **fields: Any) -> Breadcrumb:
        context = {"name": "adder", "code": "return x", "permissions": {"read": ["/data"]}, **fields}
        return await self.trail.records.create(
            Draft(title="adder", schema_name=self.flow.tool, context=context), by=self.by
        )

    async def tool(self, id: str) -> Breadcrumb:
        return await self.trail.records.get(id, by=self.by)

    async def fail(self, tool: Breadcrumb, error: Exception = BUG) -> Breadcrumb:
        """A call that fails; the record of its error."""
        id = self.clock.new_id()
        asked = request_draft(
            self.flow, "adder", {"a": 1}, request_id=id, requested_by="assistant", tags=("session:s1",)
        )
        request = await self.trail.records.create(asked, by=self.by)
        failure = CallFailure(error=error, failed_at=self.clock.now())
        failed = FailedTool(name="adder", id=tool.id, version=tool.version)
        drafts = await self.desk.drafts(request, failure, failed, tool)
        _, record = await self.trail.records.create_many(drafts, by=self.by)
        return record

    async def end_run(self, error: Breadcrumb) -> None:
        """The debugger has done what it could."""
        await self.trail.records.create(
            Draft(
                title="Done", schema_name=self.flow.answer, tags=(f"run:{error.id}",), context={"message": "I tried"}
            ),
            by=self.by,
        )

    async def fix(self, error: Breadcrumb, code: str) -> None:
        await self.healing.apply_fix(error.id, code, "x was not defined", by=self.by)
        await self.end_run(error)

    async def records(self, schema: str, *tags: str) -> list[Breadcrumb]:
        selector = Selector(schema_name=schema, all_tags=tags)
        return list((await self.trail.records.list(selector, by=self.by, oldest_first=True)).items)


@pytest.fixture
def shop(trail: Trail, flow: Flow, me: Principal, clock: ManualClock) -> Workshop:
    return Workshop(trail, flow, me, clock)


@pytest.mark.req("RCR-45")
async def test_a_repair_is_a_new_version_with_other_code_and_the_failing_input_runs_again(shop: Workshop) -> None:
    tool = await shop.write_tool()
    error = await shop.fail(tool)
    assert WANTED in error.tags

    await shop.fix(error, "return 1")

    mended = await shop.tool(tool.id)
    assert (mended.version, mended.context) == (2, tool.context | {"code": "return 1"})
    [again] = await shop.records(shop.flow.request, "repair:try")
    assert read_request(again).input == {"a": 1}
    assert read_request(again).requested_by == "assistant"
    assert {"session:s1", f"run:{read_request(again).request_id}", "workspace:tools"} <= set(again.tags)
    [record] = await shop.records(REPAIRS.fix)
    assert (record.context["from_version"], record.context["to_version"]) == (1, 2)
    assert "error:runtime" in record.tags


@pytest.mark.req("RCR-45")
@pytest.mark.req("O16")
async def test_an_unfixable_tool_is_given_up_at_the_limit_and_its_owners_version_put_back(shop: Workshop) -> None:
    tool = await shop.write_tool()
    wanted = 0
    for attempt in range(10):
        error = await shop.fail(await shop.tool(tool.id))
        if WANTED in error.tags:
            wanted += 1
            await shop.fix(error, f"return y{attempt}")

    assert wanted == REPAIRS.attempts == 3
    restored = await shop.tool(tool.id)
    assert (restored.version, restored.context) == (5, tool.context)
    [gave_up] = await shop.records(REPAIRS.fix, f"repair:{GAVE_UP}")
    assert "3 attempts did not help" in gave_up.context["explanation"]
    assert "Edit the tool" in gave_up.context["how_to_go_on"]


@pytest.mark.req("RCR-45")
async def test_an_edit_of_the_owner_begins_anew(shop: Workshop) -> None:
    tool = await shop.write_tool()
    for attempt in range(4):
        error = await shop.fail(await shop.tool(tool.id))
        if WANTED in error.tags:
            await shop.fix(error, f"return y{attempt}")
    given_up = await shop.tool(tool.id)
    assert WANTED not in (await shop.fail(given_up)).tags

    change = Change(context=given_up.context | {"code": "return z"})
    edited = await shop.trail.records.update(tool.id, change, expect=given_up.version, by=shop.by)

    assert WANTED in (await shop.fail(edited)).tags


async def test_a_debugger_that_never_writes_a_fix_is_bounded_too(shop: Workshop) -> None:
    tool = await shop.write_tool()
    wanted = []
    for _ in range(6):
        error = await shop.fail(tool)
        if WANTED in error.tags:
            wanted.append(error)
            await shop.end_run(error)

    assert len(wanted) == 3
    assert (await shop.tool(tool.id)).version == 1
    assert len(await shop.records(REPAIRS.fix, f"repair:{GAVE_UP}")) == 1


async def test_one_version_is_repaired_once_at_a_time_however_often_it_fails_meanwhile(shop: Workshop) -> None:
    tool = await shop.write_tool()

    errors = [await shop.fail(tool) for _ in range(5)]

    assert [WANTED in each.tags for each in errors] == [True, False, False, False, False]


async def test_only_tools_of_the_owners_own_are_repaired_and_only_where_their_code_failed(
    shop: Workshop, me: Principal
) -> None:
    tool = await shop.write_tool()
    for error in (
        InvalidInput("a", "is missing"),
        AccessDenied("call adder", ["x"]),
        CircuitOpen("adder", 3),
        ToolFailure("config", "no sandbox"),
    ):
        assert WANTED not in (await shop.fail(tool, error)).tags
    assert WANTED in (await shop.fail(tool, TimeoutError("5 s"))).tags

    shipped = await shop.tool(piece_id(me, "system/flow"))
    shipped = msgspec.structs.replace(shipped, schema_name=shop.flow.tool)
    assert not (await shop.desk.judge(shipped, BUG)).wanted
    assert not (await shop.desk.judge(None, BUG)).wanted
    off = RepairPolicy(shop.trail, shop.flow, msgspec.structs.replace(REPAIRS, attempts=0), by=me)
    assert not (await off.judge(tool, BUG)).wanted


async def test_the_same_repair_twice_is_one_also_after_a_crash_before_the_tool_was_written(shop: Workshop) -> None:
    tool = await shop.write_tool()
    error = await shop.fail(tool)
    first = await shop.healing.apply_fix(error.id, "return 1", "why", by=shop.by)
    second = await shop.healing.apply_fix(error.id, "return 2", "why", by=shop.by)

    assert first == second
    assert (await shop.tool(tool.id)).version == 2
    assert len(await shop.records(shop.flow.request, "repair:try")) == 1

    crashed = await shop.fail(await shop.tool(tool.id))
    await shop.end_run(error)
    crashed = await shop.fail(await shop.tool(tool.id)) if WANTED not in crashed.tags else crashed
    draft = shop.healing._fix_draft(crashed, await shop.tool(tool.id), "return 3", "why")
    await shop.trail.records.create(draft, by=shop.by)
    done = await shop.healing.apply_fix(crashed.id, "return 4", "why", by=shop.by)

    assert done.version == 3
    assert (await shop.tool(tool.id)).context["code"] == "return 3"


async def test_a_repair_that_comes_too_late_is_empty_or_changes_nothing_is_refused(shop: Workshop) -> None:
    tool = await shop.write_tool()
    error = await shop.fail(tool)
    for code in ("", " \n", "return x", "x" * 300_000):
        with pytest.raises(InvalidInput, match="code"):
            await shop.healing.apply_fix(error.id, code, "why", by=shop.by)
    unwanted = await shop.fail(tool)
    for id in (unwanted.id, tool.id):
        with pytest.raises(InvalidInput, match="not an error that waits"):
            await shop.healing.apply_fix(id, "return 1", "why", by=shop.by)
    with pytest.raises(InvalidInput, match="there is no"):
        await shop.healing.apply_fix(shop.clock.new_id(), "return 1", "why", by=shop.by)

    await shop.trail.records.update(tool.id, Change(title="mine"), expect=1, by=shop.by)
    with pytest.raises(InvalidInput, match="has changed since it failed"):
        await shop.healing.apply_fix(error.id, "return 1", "why", by=shop.by)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"permissions": {"read": ["/data"], "env": ["X"]}}, True),
        ({"permissions": {"net": ["example.org"]}}, False),
        ({"permissions": {"write": ["/data"]}}, False),
        ({"permissions": {"net": ["example.org"]}, "effects": {"reads_only": True}}, True),
        ({"permissions": {"write": ["/data"]}, "effects": {"repeats_safely": True}}, True),
        ({"permissions": {"write": ["/data"]}, "effects": {"repeats_safely": False}}, False),
    ],
)
def test_an_input_is_run_again_only_where_that_can_do_no_harm(fields: dict[str, Any], expected: bool) -> None:
    assert is_harmless(fields) is expected


async def test_a_tool_that_writes_is_mended_and_not_run_again(shop: Workshop) -> None:
    tool = await shop.write_tool(permissions={"write": ["/data"]})
    error = await shop.fail(tool)

    fixed = await shop.healing.apply_fix(error.id, "return 1", "why", by=shop.by)

    assert (fixed.version, fixed.request) == (2, None)
    assert await shop.records(shop.flow.request, "repair:try") == []


@pytest.mark.req("RCR-45")
async def test_the_tools_of_the_debugger_show_the_code_and_write_the_repair(shop: Workshop) -> None:
    tool = await shop.write_tool()
    error = await shop.fail(tool)
    read, fix = repair_tools(shop.healing)
    context = ToolContext(by=shop.by, run=error.id)

    shown = (await read.call(read.check({}), context)).content
    arguments = {"code": "return 1", "explanation": "x was not defined"}
    told = (await fix.call(fix.check(arguments), context)).content

    assert (read.name, fix.name) == ("read-failed-tool", "fix-tool")
    assert '"code": "return x"' in shown
    assert "x is not defined" in shown
    assert "version 2" in told
    assert (await shop.trail.records.get(fix_id(error), by=shop.by)).context["code"] == "return 1"


@pytest.mark.req("RCR-45")
async def test_the_shipped_debugger_is_started_by_errors_that_want_a_repair_and_there_is_a_guide_for_each_class(
    shop: Workshop, me: Principal
) -> None:
    tool = await shop.write_tool()
    wanted, unwanted = await shop.fail(tool), await shop.fail(tool)
    agent = read_definition(await shop.tool(piece_id(me, f"agent/{REPAIRS.agent}")))

    assert agent.agent_id == REPAIRS.agent
    assert agent.context_trigger is not None
    assert matches(agent.context_trigger, wanted)
    assert not matches(agent.context_trigger, unwanted)
    for kind in ("timeout", "permission", "runtime", "config", "validation"):
        assert len((await shop.trail.records.list(Selector(all_tags=("guide", f"error:{kind}")), by=me)).items) == 1
