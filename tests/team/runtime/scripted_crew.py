"""A team on a real trail with scripted models, for tests: the tools of members are small, and the tools of the team
answer from a table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.clock import Clock
from clew.team.guide import build_message
from clew.team.machines.team_state import TeamState
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import TeamMessage
from clew.team.runtime.team_handlers import team_additions
from clew.team.team import Team, TeamOptions
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE, Running, running

ROLES = ("architect", "engineer", "inspector", "academic")
KEYED = Effects(keyed=True, reaches_out=False)
Answer = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]

PLAN: dict[str, Any] = {"nodes": [{"id": "add", "prompt": "Write add.", "files": ["calc.py"]}]}
"""A plan with one task."""
SCRIPT: list[dict[str, Any]] = [
    {"user": "Plan this request", "call": {"plan": {"plan": PLAN}}},
    {"say": "Here is the plan."},
    {"user": "Write add.", "call": {"signal": {"summary": "added"}}},
    {"say": "Done."},
]
"""The team makes the plan and does its one task at once."""


@dataclass
class TeamTools:
    """The tools of the team, with an answer for each. `calls` are those that were made."""

    answers: dict[str, Answer] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def answer(self, name: str, input: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, input))
        found = self.answers.get(name, DEFAULTS[name])
        return found(input) if callable(found) else found

    def named(self, name: str) -> list[dict[str, Any]]:
        """The inputs of all calls of a tool."""
        return [input for called, input in self.calls if called == name]

    def tools(self) -> list[Tool]:
        return [self._tool(name) for name in DEFAULTS]

    def _tool(self, name: str) -> Tool:
        async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
            from clew.tools.content import as_content

            return as_content(self.answer(name, arguments))

        return Tool(
            name=name,
            description="A tool of the team.",
            call=call,
            check=dict,
            schema={"type": "object", "properties": {}},
            searchable=False,
            effects=KEYED,
        )


DEFAULTS: dict[str, dict[str, Any]] = {
    "team-open": {"branch": "clew/s", "folder": "/nowhere", "base_commit": "b0", "head": "b0", "notes": []},
    "team-worktree": {"folder": "/nowhere", "base_commit": "b0"},
    "team-commit": {"commit": "c1", "tree": "t1", "changed": ["calc.py"], "created": [], "is_empty": False},
    "team-check": {"passed": True, "receipts": [], "issues": [], "failures": []},
    "team-diff": {"diff": "+x", "files": ["calc.py"]},
    "team-merge": {"merged": True, "head": "m1", "tree": "t1"},
}


def member_tools(team: Callable[[], Team], clock: Clock) -> list[Tool]:
    """The tools by which scripted members speak."""

    async def send(type: str, payload: Mapping[str, Any], context: ToolContext) -> None:
        message = build_message(type, payload, source=context.by.agent_id, clock=clock)
        await team().guide.send(message, by=context.by, key=context.key)

    @tool(effects=KEYED)
    async def plan(plan: dict[str, Any], ctx: ToolContext) -> str:
        """Propose a plan."""
        await send("PLAN_RESPONSE", {"plan": plan}, ctx)
        return "The plan was proposed."

    @tool(effects=KEYED)
    async def clarify(question: str, ctx: ToolContext) -> str:
        """Ask the user."""
        await send("CLARIFICATION_REQUEST", {"question": question}, ctx)
        return "The question was asked."

    @tool(effects=KEYED)
    async def signal(summary: str, ctx: ToolContext) -> str:
        """Claim that the task is done."""
        own = find_conversation(ctx.by.session)
        assert own is not None
        await send("TASK_COMPLETE", {"pipeline": own.pipeline, "summary": summary}, ctx)
        return "Noted."

    @tool(effects=KEYED)
    async def report(issues: list[dict[str, Any]], ctx: ToolContext) -> str:
        """Report the findings on the whole work."""
        await send("INSPECTION_RESULTS", {"passed": not issues, "issues": issues}, ctx)
        return "Reported."

    return [plan, clarify, signal, report]


@dataclass
class Crew:
    """A team at work."""

    run: Running
    team: Team
    tools: TeamTools
    me: Principal

    async def start(self, request: str = "Add add", **options: Any) -> str:
        given = TeamOptions(**{"approves_plan": True, **options})
        return (await self.team.start(request, by=self.me, options=given)).id

    async def until(self, session: str, is_met: Callable[[TeamState], bool]) -> TeamState:
        """The state, as soon as it is as wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                head = await self.run.trail.log.head()
                state = await self.team.state(session, by=self.me)
                if is_met(state):
                    return state
                await self.run.trail.log.wait(head, PATIENCE)

    async def end(self, session: str) -> TeamState:
        """The state when the work is over and its summary is on the trail."""
        async with asyncio.timeout(PATIENCE):
            async for _ in self.team.follow(session, by=self.me):
                pass
        return await self.team.state(session, by=self.me)

    async def messages(self, session: str, *types: str) -> list[TeamMessage]:
        found = await self.team.log(session, by=self.me)
        return [each for each in found if not types or each.type in types]


@asynccontextmanager
async def crew(
    trail: Trail,
    clock: Clock,
    me: Principal,
    script: Sequence[Mapping[str, Any]] = SCRIPT,
    *,
    answers: dict[str, Answer] | None = None,
    roles: Sequence[str] = ROLES,
    **parts: Any,
) -> AsyncIterator[Crew]:
    """A runtime with the team and its scripted members."""
    await bootstrap(trail, me)
    flow = await read_flow(trail, by=me)
    conversations = Conversations(trail, flow, clock)
    team = Team(trail, conversations, clock, no_gate, me=me)
    await define(trail, me, roles)
    tools = TeamTools(answers or {})
    additions = team_additions(trail, conversations, clock, no_gate, by=me)
    own = [*tools.tools(), *member_tools(lambda: team, clock), *parts.pop("tools", ())]
    async with running(trail, clock, me, script, tools=own, additions=additions, **parts) as run:
        yield Crew(run, team, tools, me)


async def define(trail: Trail, me: Principal, roles: Sequence[str], **more: Any) -> None:
    """Write the definitions of members."""
    off = {"enabled": False}
    for role in roles:
        definition = {
            "agent_id": role,
            "system_prompt": f"You are the {role}.",
            "context_trigger": {"schema_name": "user.message.v1", "all_tags": [f"consumer:{role}"]},
            "context_sources": {"semantic": off, "session": off, "graph": off},
            **more,
        }
        await trail.records.create(
            Draft(title=role, schema_name="agent.def.v1", context=msgspec.to_builtins(definition)), by=me
        )


def no_gate(pipeline: Any, node: Any) -> tuple[str, ...]:
    return ()
