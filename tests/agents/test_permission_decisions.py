"""Decisions about calls, by the policies of the program, the agent and its callers, and by the effects of the tool."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.agents.folder.registry import AgentRegistry
from clew.agents.permissions.decisions import PermissionDecider
from clew.agents.tools.toolbox import Toolbox
from clew.context.definition import AgentDefinition, definition_of
from clew.tools.tool import Effects, Tool, tool
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import shipped_flow
from clew.trail.store import Trail
from tests.agents.runtimes import no_code

FLOW = shipped_flow(read_pieces())


@tool(effects=Effects(reads_only=True))
async def look() -> str:
    """Look."""
    return ""


@tool
async def act() -> str:
    """Act."""
    return ""


@tool(searchable=False)
async def tend() -> str:
    """Do what one agent is for."""
    return ""


@tool
async def get(routes: list[dict[str, Any]]) -> str:
    """Stands for the catalog's."""
    return ""


async def judge(trail: Trail, me: Principal, agent: AgentDefinition | None, name: str, **arguments: Any) -> str:
    await bootstrap(trail, me)
    tools: list[Tool] = [look, act, tend, get]
    found = PermissionDecider(AgentRegistry(trail, FLOW, by=me), Toolbox(trail, FLOW, no_code, tools), by=me)
    return (await found(agent, name, arguments)).verdict


@pytest.mark.parametrize(
    ("name", "verdict"), [("look", "allow"), ("act", "ask"), ("tend", "allow"), ("read-file", "allow")]
)
async def test_without_a_rule_the_effects_of_a_tool_decide(
    trail: Trail, me: Principal, name: str, verdict: str
) -> None:
    assert await judge(trail, me, None, name) == verdict


@pytest.mark.parametrize(
    ("routes", "verdict"),
    [
        (["repo://resources/a"], "allow"),
        (["repo://resources/a", "shop://tools/refund"], "ask"),
        ([], "allow"),
    ],
)
async def test_running_tools_needs_permission_and_reading_documents_does_not(
    trail: Trail, me: Principal, routes: list[str], verdict: str
) -> None:
    assert await judge(trail, me, None, "get", routes=[{"route": each} for each in routes]) == verdict


async def test_code_outside_the_sandbox_needs_permission(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    for name, permissions in (("inside", {}), ("outside", {"net": ["example.org"]})):
        context = {"name": name, "code": "", "permissions": permissions}
        await trail.records.create(Draft(title=name, schema_name=FLOW.tool, context=context), by=me)
    assert await judge(trail, me, None, "inside") == "allow"
    assert await judge(trail, me, None, "outside") == "ask"


@pytest.mark.req("RCR-42")
async def test_without_a_wall_python_needs_permission_and_javascript_does_not(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    for name in ("python", "javascript", "typescript"):
        context = {"name": name, "code": "", "language": name, "permissions": {}}
        await trail.records.create(Draft(title=name, schema_name=FLOW.tool, context=context), by=me)
    found = PermissionDecider(
        AgentRegistry(trail, FLOW, by=me), Toolbox(trail, FLOW, no_code, []), by=me, is_isolated=False
    )
    verdicts = [(await found(None, name, {})).verdict for name in ("python", "javascript", "typescript")]
    assert verdicts == ["ask", "allow", "allow"]


@pytest.mark.req("RCR-48")
async def test_an_agent_has_no_more_permissions_than_its_caller(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    parent = {"agent_id": "parent", "permissions": {"deny": ["look"]}}
    await trail.records.create(Draft(title="parent", schema_name=FLOW.agent, context=parent), by=me)
    child = definition_of(
        {"agent_id": "child", "permissions": {"allow": ["look", "act"]}, "metadata": {"called_by": {"agent": "parent"}}}
    )
    assert await judge(trail, me, child, "look") == "deny"
    assert await judge(trail, me, child, "act") == "ask"


async def test_consent_to_a_tool_record_covers_its_current_content_only(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    found = PermissionDecider(AgentRegistry(trail, FLOW, by=me), Toolbox(trail, FLOW, no_code, []), by=me)
    patterns = []
    for code, permissions in (("1", {"read": ["build"]}), ("2", {"read": ["build"]}), ("2", {"write": ["."]})):
        context = {"name": "weather", "code": code, "permissions": permissions}
        record = await trail.records.create(Draft(title="w", schema_name=FLOW.tool, context=context), by=me)
        patterns.append((await found(None, "weather", {})).pattern)
        assert record.id in patterns[-1]
    assert len(set(patterns)) == 3
    assert '"{\\"write\\":[\\".\\"]}"' in patterns[-1], "what it is let do is shown"
