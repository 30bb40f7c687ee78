"""Fairness of the worker pool: many sessions with many tasks of no-op work on one trail, through the real handlers.

Usage: team_fairness.py [--sessions N] [--tasks N] [--json FILE]

A scripted model plays the members, and the tools of the team answer at once. A person sends a chat message after a
third of the tasks. Prints the share of the slowest session when half of all tasks are done, the longest queue, how many
calls came before the answer to the person, and the resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations
from clew.agents.runs.call_limits import CallLimits, read_loads
from clew.clock import SystemClock
from clew.config import Config
from clew.llm.model import Models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.team.guide import build_message
from clew.team.messages.conversation import find_conversation
from clew.team.runtime.team_handlers import team_additions
from clew.team.team import Team, TeamOptions
from clew.tools.content import as_content
from clew.tools.permissions.policy import read_policy
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail

ME = Principal(owner_id="local", agent_id="me")
LIMITS = CallLimits(models=4, tools=4, session=2)
"""A small pool, so that sessions compete for it."""
AGENTS = 4
KEYED = Effects(keyed=True, reaches_out=False)
ANSWERS: dict[str, dict[str, Any]] = {
    "team-open": {"branch": "clew/s", "folder": "/nowhere", "base_commit": "b0", "head": "b0", "notes": []},
    "team-worktree": {"folder": "/nowhere", "base_commit": "b0"},
    "team-commit": {"commit": "c1", "tree": "t1", "changed": ["calc.py"], "created": [], "is_empty": False},
    "team-check": {"passed": True, "receipts": [], "issues": [], "failures": []},
    "team-diff": {"diff": "+x", "files": ["calc.py"]},
    "team-merge": {"merged": True, "head": "m1", "tree": "t1"},
}


def run_fairness(sessions: int = 30, tasks: int = 50) -> dict[str, Any]:
    """Run so many sessions with so many tasks each, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder), sessions, tasks))


class _Course:
    """The course of a run: the sessions of merged tasks in order, and the longest queue."""

    def __init__(self, trail: Trail, total: int) -> None:
        self._trail = trail
        self._total = total
        self.merged: list[str] = []
        self.calls = 0
        self.longest = 0
        self.third = asyncio.Event()

    async def note(self, name: str, session: str) -> None:
        self.calls += 1
        if name != "team-merge":
            return
        self.merged.append(session)
        loads = await read_loads(self._trail, by=ME)
        self.longest = max(self.longest, sum(load.waiting for _, load in loads))
        if len(self.merged) * 3 >= self._total:
            self.third.set()

    def slowest_share(self, sessions: int) -> float:
        """The tasks of the slowest session as part of the mean, when half of all are done."""
        half = Counter(self.merged[: self._total // 2])
        mean = (self._total // 2) / sessions
        return min(half.values()) / mean if len(half) == sessions else 0.0


async def _measure(folder: Path, sessions: int, tasks: int) -> dict[str, Any]:
    clock = SystemClock()
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", clock)
    await bootstrap(trail, ME)
    flow = await read_flow(trail, by=ME)
    conversations = Conversations(trail, flow, clock)
    team = Team(trail, conversations, clock, _no_gate, me=ME, limits=LIMITS)
    await _define(trail)
    course = _Course(trail, sessions * tasks)
    runtime = await build_runtime(
        trail,
        clock,
        Models(Config(), {}).with_model("*", ScriptedModel(_script(tasks))),
        by=ME,
        from_record=_no_code,
        tools=[*(_team_tool(name, course) for name in ANSWERS), *_member_tools(team, clock)],
        policy=read_policy({"rules": [{"tool": "*", "verdict": "allow"}]}),
        limits=LIMITS,
        additions=team_additions(trail, conversations, clock, _no_gate, by=ME),
    )
    began, cpu = time.monotonic(), time.process_time()
    async with runtime.running():
        options = TeamOptions(approves_plan=True, max_agents=AGENTS)
        ids = [(await team.start("Do all tasks", by=ME, options=options)).id for _ in range(sessions)]
        await course.third.wait()
        before = course.calls
        sent = await conversations.send("hello", by=ME, agent="clerk")
        _ = [step async for step in conversations.follow(sent, by=ME)]
        overtaken = course.calls - before
        for id in ids:
            await _until_over(team, trail, id)
        outcomes = Counter([str((await team.state(id, by=ME)).outcome) for id in ids])
    figures = {
        "sessions": sessions,
        "tasks": sessions * tasks,
        "outcomes": dict(outcomes),
        "merged": len(course.merged),
        "slowest_share_at_half": round(course.slowest_share(sessions), 3),
        "longest_queue": course.longest,
        "queue_bound": sessions * AGENTS * 2,
        "team_calls_before_the_answer_to_a_chat_message": overtaken,
        "resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    await trail.close()
    return figures


async def _until_over(team: Team, trail: Trail, session: str) -> None:
    while not await team.is_over(session, by=ME):
        await trail.log.wait(await trail.log.head(), 0.5)


def _script(tasks: int) -> list[ScriptedTurn]:
    nodes = [{"id": f"t{at}", "prompt": "Write nothing.", "files": [f"f{at}.py"]} for at in range(tasks)]
    turns = [
        {"user": "Plan this request", "call": {"plan": {"plan": {"nodes": nodes}}}},
        {"say": "Here is the plan."},
        {"user": "Write nothing.", "call": {"signal": {"summary": "done"}}},
        {"say": "Done."},
        {"user": "All tasks of this request", "call": {"report": {"issues": []}}},
        {"say": "It is fine."},
        {"user": "hello", "say": "Hello."},
    ]
    return msgspec.convert(turns, list[ScriptedTurn])


def _team_tool(name: str, course: _Course) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        await course.note(name, str(arguments.get("session")))
        return as_content(ANSWERS[name])

    schema = {"type": "object", "properties": {}}
    return Tool(name=name, description=name, call=call, check=dict, schema=schema, searchable=False, effects=KEYED)


def _member_tools(team: Team, clock: SystemClock) -> list[Tool]:
    async def send(type: str, payload: Mapping[str, Any], context: ToolContext) -> None:
        message = build_message(type, payload, source=context.by.agent_id, clock=clock)
        await team.guide.send(message, by=context.by, key=context.key)

    @tool(effects=KEYED)
    async def plan(plan: dict[str, Any], ctx: ToolContext) -> str:
        """Propose a plan."""
        await send("PLAN_RESPONSE", {"plan": plan}, ctx)
        return "The plan was proposed."

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

    return [plan, signal, report]


async def _define(trail: Trail) -> None:
    off = {"enabled": False}
    for role in ("architect", "engineer", "inspector", "clerk"):
        definition = {
            "agent_id": role,
            "system_prompt": f"You are the {role}.",
            "context_trigger": {"schema_name": "user.message.v1", "all_tags": [f"consumer:{role}"]},
            "context_sources": {"semantic": off, "session": off, "graph": off},
        }
        await trail.records.create(Draft(title=role, schema_name="agent.def.v1", context=definition), by=ME)


async def _no_code(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
    raise AssertionError("no tool of code is used")


def _no_gate(pipeline: Any, node: Any) -> tuple[str, ...]:
    return ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--json", type=Path, help="where the results go")
    arguments = parser.parse_args()
    figures = run_fairness(arguments.sessions, arguments.tasks)
    for name, value in figures.items():
        print(f"{name.replace('_', ' ')}: {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
