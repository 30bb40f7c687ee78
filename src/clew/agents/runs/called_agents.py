"""Agents that call other agents for a part of their work. A called agent may do no more than its caller, spends the
budget that the caller lends it, and its answer is the response to the call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from clew.agents.budgets.budget import BudgetLimits, read_limits
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.runs.callers import CallingAgent, FindAgent, caller_metadata, walk_callers
from clew.agents.runs.requests import CALLED_TAG
from clew.agents.tools.toolbox import SPAWN, Toolbox, may_call
from clew.clock import Clock
from clew.context.definition import AgentDefinition
from clew.errors import AccessDenied, InvalidInput
from clew.tools.content import GuidedContent
from clew.tools.signature import build_params
from clew.tools.tool import Effects, Tool, ToolContext
from clew.trail.model.breadcrumb import Draft, Ttl
from clew.trail.model.flow import Flow
from clew.trail.work.correlation import CONSUMER_TAG, RUN_TAG

LIFE = timedelta(days=1)
"""How long the definition of a called agent is kept."""
MAX_TASK = 100_000
PATTERNS = "*?["

_DESCRIPTION = """Let a new agent do one part of the work, and get its answer.

Use it for a task that stands by itself and would fill this conversation, such as reading many files. The new agent
knows nothing but its task and instructions: say in them all that it needs. It has the tools that are named, or all of
yours."""


class Deferred(GuidedContent, frozen=True, kw_only=True):
    """The content of a tool whose result arrives later. `drafts` are written now and start the work."""

    drafts: tuple[Draft, ...]


def spawn_tool(flow: Flow, clock: Clock, budgets: Budgets, find_agent: Any, budget_of: Any, toolbox: Toolbox) -> Tool:
    """The tool with which an agent calls another one."""
    fields = [
        ("task", str),
        ("instructions", str, ""),
        ("tools", list[str] | None, None),
        ("budget", dict[str, float] | None, None),
    ]
    params = build_params("spawn_agent", fields)

    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        parent: AgentDefinition | None = await find_agent(context.by.agent_id)
        if parent is None or not parent.capabilities.can_spawn_agents:
            raise AccessDenied("call another agent", ["an agent with capabilities.can_spawn_agents"])
        task = str(arguments["task"])
        if not task.strip() or len(task) > MAX_TASK:
            raise InvalidInput("task", f"must be 1 to {MAX_TASK:,} characters")
        await _check_lent(parent, arguments.get("tools") or (), context)
        name = f"{parent.agent_id}.{hashlib.blake2b(context.key.encode(), digest_size=5).hexdigest()}"
        lent = await _lend(name, read_limits(arguments.get("budget")), context)
        caller = CallingAgent(agent=parent.agent_id, request=context.route, budget=lent)
        child = _definition(flow, parent, name, arguments, caller)
        drafts = (_definition_draft(flow, clock, child, context), _task_draft(flow, name, task, context))
        return Deferred(content=f"{name} has begun", drafts=drafts)

    async def _check_lent(parent: AgentDefinition, wanted: Sequence[str], context: ToolContext) -> None:
        """Raises AccessDenied for a tool that the caller does not have, InvalidInput for an unknown tool."""
        for name in wanted:
            found = await toolbox.find_named(name, by=context.by)
            if found is None or any(each in name for each in PATTERNS):
                raise InvalidInput("tools", f"{name[:100]!r} does not exist", hint="Name each tool by itself")
            if not may_call(parent, name, named_only=not found):
                raise AccessDenied(f"give {name} to another agent", [f"a tool that {parent.agent_id} has"])

    async def _lend(name: str, limits: BudgetLimits, context: ToolContext) -> str | None:
        """Open the budget of the called agent and return its name; None if neither the caller nor the call has a limit.
        Raises BudgetExceeded if the caller has less left than `limits`."""
        lender = await budget_of(context.by.agent_id, context)
        if lender is None:
            if limits == BudgetLimits():
                return None
            await budgets.open(name, limits, by=context.by, session=context.by.session)
        else:
            await budgets.lend(lender, name, limits, by=context.by, session=context.by.session)
        return name

    return Tool(
        name=SPAWN,
        title="Call another agent",
        description=_DESCRIPTION,
        call=call,
        check=params.check,
        schema=params.schema,
        effects=Effects(reads_only=False, keyed=True, reaches_out=False),
        category="agents",
    )


async def may_caller_call(agent: AgentDefinition, tool: Tool, find_agent: FindAgent) -> bool:
    """Whether all callers of an agent may call a tool as well. An agent whose caller is gone may call nothing."""
    async for caller in walk_callers(agent, find_agent):
        if caller is None or not may_call(caller, tool.name, named_only=not tool.searchable):
            return False
    return True


def _definition(
    flow: Flow, parent: AgentDefinition, name: str, arguments: dict[str, Any], caller: CallingAgent
) -> dict[str, Any]:
    """The definition of the called agent."""
    wanted: Sequence[str] | None = arguments.get("tools")
    tools = list(wanted) if wanted is not None else parent.capabilities.tools
    return {
        "agent_id": name,
        "description": f"Does a part of the work of {parent.agent_id}",
        "model": parent.model,
        "llm_config_id": parent.llm_config_id,
        "system_prompt": str(arguments.get("instructions") or "") or parent.system_prompt,
        "capabilities": {"tools": tools, "max_turns": parent.capabilities.max_turns},
        "context_trigger": {"schema_name": flow.message, "all_tags": [CONSUMER_TAG + name]},
        "context_sources": {"semantic": {"enabled": False}, "session": {"enabled": False}},
        "permissions": parent.permissions,
        "metadata": caller_metadata(caller),
    }


def _definition_draft(flow: Flow, clock: Clock, definition: dict[str, Any], context: ToolContext) -> Draft:
    name = definition["agent_id"]
    return Draft(
        title=f"Agent {name}"[:200],
        schema_name=flow.agent,
        tags=("agent:def", "workspace:agents", f"agent:{name}", f"parent:{context.by.agent_id}"),
        context=msgspec.to_builtins(definition),
        ttl=Ttl(kind="datetime", expires_at=clock.now() + LIFE),
        embed="never",
    )


def _task_draft(flow: Flow, name: str, task: str, context: ToolContext) -> Draft:
    """The task as a message that starts a run of its own."""
    return Draft(
        title=task.strip().splitlines()[0][:200],
        schema_name=flow.message,
        tags=(CONSUMER_TAG + name, f"caller:{context.by.agent_id}", CALLED_TAG + context.run, RUN_TAG),
        context={"message": task, "content": task, "source": f"agent:{context.by.agent_id}"},
    )
