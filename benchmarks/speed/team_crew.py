"""A team on a real trail for benchmarks: the real handlers, a scripted model, and tools that do nothing or wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations
from clew.clock import SystemClock
from clew.config import Config
from clew.llm.model import Models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.team.guide import build_message
from clew.team.machines.team_state import TeamStage
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import SCHEMA, TYPE_TAG
from clew.team.messages.message_types import MessageType
from clew.team.runtime.team_handlers import team_additions
from clew.team.team import Team, TeamOptions
from clew.tools.content import GuidedContent, as_content
from clew.tools.permissions.policy import read_policy
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

ME = Principal(owner_id="bench", agent_id="bench")
ROLES = ("architect", "engineer", "inspector")
ALLOWED = {"rules": [{"tool": "*", "verdict": "allow"}]}
KEYED = Effects(keyed=True, reaches_out=False)
WRITE, REPAIR, JUDGE = "Write the part", "/(Inspector found|Tester ran)/", "The change:"
"""Parts of the prompts by which the scripted model knows where it is."""
Script = Sequence[Mapping[str, Any]]
TeamAnswer = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


def plan_of(nodes: Sequence[Mapping[str, Any]], at_once: int = 4) -> dict[str, Any]:
    return {"nodes": list(nodes), "policy": {"max_concurrency": at_once}}


def script(plan: Mapping[str, Any], *tasks: Script) -> list[dict[str, Any]]:
    """The Architect makes this plan. Each builder claims at once that its task is done, unless one of `tasks` says
    otherwise; nobody finds anything."""
    return [
        {"user": "Plan this request", "call": {"plan": {"plan": plan}}},
        {"say": "Here is the plan."},
        *(turn for task in tasks for turn in map(dict, task)),
        {"user": WRITE, "call": {"signal": {"summary": "written"}}},
        {"say": "Done."},
        {"user": REPAIR, "call": {"signal": {"summary": "repaired"}}},
        {"say": "Repaired."},
        {"user": JUDGE, "call": {"judge": {}}},
        {"say": "It is fine."},
        {"user": "All tasks of this request", "call": {"report": {}}},
        {"say": "It fits."},
    ]


@dataclass(frozen=True, slots=True)
class Crew:
    """A team at work."""

    trail: Trail
    team: Team

    async def start(self, request: str = "Add rate limits", **options: Any) -> str:
        given = TeamOptions(**{"approves_plan": True, **options})
        return (await self.team.start(request, by=ME, options=given)).id

    async def planned(self, session: str) -> None:
        """Return when the plan waits for its approval."""
        while (await self.team.state(session, by=ME)).stage is not TeamStage.APPROVAL:
            await self.trail.log.wait(await self.trail.log.head(), 1.0, selector=Selector(schema_name=SCHEMA))

    async def approve(self, session: str) -> None:
        await self.team.approve(session, by=ME)

    async def end(self, session: str) -> None:
        """Return when the work of a session is over. Raises RuntimeError where it was not completed."""
        ends = Selector(schema_name=SCHEMA, session=session, all_tags=(TYPE_TAG + MessageType.WORKFLOW_COMPLETE,))
        head = await self.trail.log.head()
        while not await self.team.is_over(session, by=ME):
            await self.trail.log.wait(head, 30.0, selector=ends)
            head = await self.trail.log.head()
        state = await self.team.state(session, by=ME)
        if state.outcome != "completed":
            raise RuntimeError(f"the work ended {state.outcome}: {state.reason}")


async def open_crew(
    folder: Path,
    turns: Script,
    stack: AsyncExitStack,
    *,
    answers: Mapping[str, TeamAnswer] | None = None,
    before_call: Callable[[str], None] | None = None,
) -> Crew:
    """A runtime with the team on the trail of a folder, until the stack is closed. `answers` replace those of the tools
    of the team. `before_call` gets the name of each tool."""
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", embedder=None)
    stack.push_async_callback(trail.close)
    clock = SystemClock()
    await bootstrap(trail, ME)
    flow = await read_flow(trail, by=ME)
    conversations = Conversations(trail, flow, clock)
    team = Team(trail, conversations, clock, no_gate, me=ME)
    await define_members(trail)
    tools = [*team_tools(answers or {}, before_call), *member_tools(team, clock, before_call)]
    runtime = await build_runtime(
        trail,
        clock,
        Models(Config(), {}).with_model("*", ScriptedModel(msgspec.convert(list(turns), list[ScriptedTurn]))),
        by=ME,
        from_record=no_code,
        tools=tools,
        policy=read_policy(ALLOWED),
        additions=team_additions(trail, conversations, clock, no_gate, by=ME),
    )
    await stack.enter_async_context(runtime.running())
    return Crew(trail, team)


async def define_members(trail: Trail) -> None:
    """Members that see nothing but their prompts, as the nodes of a graph do."""
    off = {"enabled": False}
    for role in ROLES:
        definition = {
            "agent_id": role,
            "system_prompt": f"You are the {role}.",
            "context_trigger": {"schema_name": "user.message.v1", "all_tags": [f"consumer:{role}"]},
            "context_sources": {"semantic": off, "session": off, "graph": off},
        }
        draft = Draft(title=role, schema_name="agent.def.v1", context=definition, idempotency_key=f"member/{role}")
        await trail.records.create(draft, by=ME)


ANSWERS: dict[str, dict[str, Any]] = {
    "team-open": {"branch": "clew/s", "folder": "/nowhere", "base_commit": "b0", "head": "b0", "notes": []},
    "team-worktree": {"folder": "/nowhere", "base_commit": "b0"},
    "team-commit": {"commit": "c1", "tree": "t1", "changed": ["part.py"], "created": [], "is_empty": False},
    "team-check": {"passed": True, "covers_all": True, "receipts": [], "issues": [], "failures": []},
    "team-diff": {"diff": "+part", "files": ["part.py"]},
    "team-merge": {"merged": True, "head": "m1", "tree": "t1"},
}


def team_tools(answers: Mapping[str, TeamAnswer], before_call: Callable[[str], None] | None) -> list[Tool]:
    """The tools of the team, which touch no disk."""

    def made(name: str) -> Tool:
        async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
            if before_call is not None:
                before_call(name)
            own = answers.get(name)
            return as_content(ANSWERS[name] if own is None else await own(arguments))

        return Tool(
            name=name,
            description="A tool of the team.",
            call=call,
            check=dict,
            schema={"type": "object", "properties": {}},
            searchable=False,
            effects=KEYED,
        )

    return [made(name) for name in ANSWERS]


def member_tools(team: Team, clock: SystemClock, before_call: Callable[[str], None] | None) -> list[Tool]:
    """The tools with which members send messages, and one that waits, as a stand-in for work."""

    async def send(type: str, payload: Mapping[str, Any], context: ToolContext) -> str:
        if before_call is not None:
            before_call(type)
        message = build_message(type, payload, source=context.by.agent_id, clock=clock)
        await team.guide.send(message, by=context.by, key=context.key)
        return "sent"

    @tool(effects=KEYED)
    async def plan(plan: dict[str, Any], ctx: ToolContext) -> str:
        """Propose a plan."""
        return await send("PLAN_RESPONSE", {"plan": plan}, ctx)

    @tool(effects=KEYED)
    async def work(seconds: float) -> str:
        """Work for some time."""
        await asyncio.sleep(seconds)
        return "worked"

    @tool(effects=KEYED)
    async def signal(summary: str, ctx: ToolContext) -> str:
        """Claim that the task is done."""
        own = find_conversation(ctx.by.session)
        assert own is not None
        return await send("TASK_COMPLETE", {"pipeline": own.pipeline, "summary": summary}, ctx)

    @tool(effects=KEYED)
    async def judge(ctx: ToolContext) -> str:
        """Report the findings on one task."""
        own = find_conversation(ctx.by.session)
        assert own is not None
        return await send("VALIDATION_RESULT", {"passed": True, "pipeline": own.pipeline}, ctx)

    @tool(effects=KEYED)
    async def report(ctx: ToolContext) -> str:
        """Report the findings on the whole work."""
        return await send("INSPECTION_RESULTS", {"passed": True}, ctx)

    return [plan, work, signal, judge, report]


def no_gate(pipeline: Any, node: Any) -> tuple[str, ...]:
    """Accept all work: empty work has no receipts."""
    return ()


async def no_code(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
    raise LookupError("there are no tools of code here")
