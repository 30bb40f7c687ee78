"""A scripted team that does real work in a real repository, for test_team_crash.py, and a process that runs it and can
be killed around one event."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.clock import SystemClock
from clew.team.guide import build_message
from clew.team.machines.team_state import TeamState
from clew.team.messages.conversation import find_conversation
from clew.team.runtime.completion_gate import completion_gate
from clew.team.runtime.team_handlers import team_additions
from clew.team.team import Team, TeamOptions
from clew.team.worktrees.team_tools import TeamFolder, team_tools
from clew.tools.sandbox import open_sandbox
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.agents.runtimes import running
from tests.faults.processes import open_at
from tests.faults.tool_conversation import NOWHERE, Doom, Outside, arm, die
from tests.team.runtime.scripted_crew import define
from tests.team.worktrees.projects import git, make_repository

ME = Principal(owner_id="acme", agent_id="ann")
KEYED = Effects(keyed=True, reaches_out=False)
SESSION, BEGINNING = "session", "beginning"
"""Files with the id of the session, and the number of the event before the work."""
UNTIDY = "import os\n\n\ndef add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
PLAN = {"nodes": [{"id": "add", "prompt": "Write the function add.", "files": ["calc.py"]}]}
SCRIPT: list[dict[str, Any]] = [
    {"user": "Plan this request", "call": {"plan": {"plan": PLAN}}},
    {"say": "Here is the plan."},
    {"user": "Write the function add.", "call": {"write": {"text": UNTIDY}}},
    {"call": {"signal": {"summary": "wrote add"}}},
    {"say": "Written."},
    {"user": "/Inspector/", "call": {"write": {"text": WRONG}}},
    {"call": {"signal": {"summary": "removed the import"}}},
    {"say": "Tidied."},
    {"user": "/[Tt]est/", "call": {"write": {"text": RIGHT}}},
    {"call": {"signal": {"summary": "corrected add"}}},
    {"say": "Corrected."},
    {"user": "All tasks of this request", "call": {"report": {"issues": []}}},
    {"say": "It is fine."},
]
"""The first version fails the linter, the second one a test, the third one passes."""
FILES = {
    "calc.py": "",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n[tool.ruff]\nline-length = 100\n'
    '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "tests/test_calc.py": "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n",
}


def open_folder(folder: Path) -> TeamFolder:
    clock = SystemClock()
    return TeamFolder(
        root=folder / "project", state=folder / "state", sandbox=open_sandbox(production=False), clock=clock
    )


def member_tools(team: Team, folder: TeamFolder, outside: Outside) -> list[Tool]:
    """The tools of the scripted members. `write` notes each effect outside."""

    async def send(type: str, payload: Mapping[str, Any], context: ToolContext) -> str:
        message = build_message(type, payload, source=context.by.agent_id, clock=SystemClock())
        await team.guide.send(message, by=context.by, key=context.key)
        return "sent"

    @tool(effects=KEYED)
    async def plan(plan: dict[str, Any], ctx: ToolContext) -> str:
        """Propose a plan."""
        return await send("PLAN_RESPONSE", {"plan": plan}, ctx)

    @tool(effects=KEYED)
    async def write(text: str, ctx: ToolContext) -> str:
        """Write the file of the task."""
        own = find_conversation(ctx.by.session)
        assert own is not None
        if ctx.key not in outside.effects():
            (folder.find(own.session).tree(own.pipeline).project / "calc.py").write_text(text)
            outside.add(ctx.key)
        return "written"

    @tool(effects=KEYED)
    async def signal(summary: str, ctx: ToolContext) -> str:
        """Claim that the task is done."""
        own = find_conversation(ctx.by.session)
        assert own is not None
        return await send("TASK_COMPLETE", {"pipeline": own.pipeline, "summary": summary}, ctx)

    @tool(effects=KEYED)
    async def report(issues: list[dict[str, Any]], ctx: ToolContext) -> str:
        """Report the findings on the whole work."""
        return await send("INSPECTION_RESULTS", {"passed": not issues, "issues": issues}, ctx)

    return [plan, write, signal, report]


async def prepare(path: Path) -> int:
    """A project, and a trail with a request of the user for which nobody has worked yet; the number of its last
    event."""
    make_repository(path / "project", FILES)
    trail = await open_at(path, clock=SystemClock())
    try:
        await bootstrap(trail, ME)
        team = await open_team(trail, open_folder(path))
        await define(trail, ME, ("architect", "engineer", "inspector"))
        session = await team.start("Write add", by=ME, options=TeamOptions(approves_plan=True))
        (path / SESSION).write_text(session.id)
        head = await trail.log.head()
        (path / BEGINNING).write_text(str(head))
        return head
    finally:
        await trail.close()


async def head_of(path: Path) -> int:
    trail = await open_at(path, clock=SystemClock())
    try:
        return await trail.log.head()
    finally:
        await trail.close()


async def open_team(trail: Trail, folder: TeamFolder) -> Team:
    flow = await read_flow(trail, by=ME)
    conversations = Conversations(trail, flow, folder.clock)
    return Team(trail, conversations, folder.clock, completion_gate, me=ME, folder=lambda: folder)


async def work(channel: Connection, path: Path, doom: Doom = NOWHERE) -> None:
    """Work until the request is done, and report how it ended."""
    folder = open_folder(path)
    trail = await open_at(path, clock=folder.clock)
    arm(trail, doom)
    team = await open_team(trail, folder)
    session = (path / SESSION).read_text()
    tools = [*(fatal(each, doom) for each in team_tools(folder)), *member_tools(team, folder, Outside(path))]
    conversations = Conversations(trail, await read_flow(trail, by=ME), folder.clock)
    additions = team_additions(trail, conversations, folder.clock, completion_gate, by=ME)
    async with running(trail, folder.clock, ME, SCRIPT, tools=tools, additions=additions):
        async for _ in team.follow(session, by=ME):
            pass
    channel.send(str((await team.state(session, by=ME)).outcome))
    await trail.close()


def fatal(tool: Tool, doom: Doom) -> Tool:
    """A tool that kills the process if the process is to die inside it."""

    async def strike(arguments: dict[str, Any], context: ToolContext) -> Any:
        die()

    return msgspec.structs.replace(tool, call=strike) if doom.strikes("inside", tool.name) else tool


async def responses_of(path: Path, tool: str) -> list[dict[str, Any]]:
    """The contents of the responses of one tool."""
    trail = await open_at(path, clock=SystemClock())
    try:
        named = ContextMatch(path="tool", value=tool)
        flow = await read_flow(trail, by=ME)
        page = await trail.records.list(Selector(schema_name=flow.response, context_match=(named,)), by=ME)
        return [each.context for each in page.items]
    finally:
        await trail.close()


async def outcome_of(path: Path) -> str:
    """The reason with which the work ended; `clew team status` shows it."""
    folder = open_folder(path)
    trail = await open_at(path, clock=folder.clock)
    try:
        assert not await trail.dead_letters.list(by=ME)
        return (await (await open_team(trail, folder)).state((path / SESSION).read_text(), by=ME)).reason
    finally:
        await trail.close()


async def final_state(path: Path) -> dict[str, Any]:
    """The comparable part of the work, without ids, times and hashes of commits."""
    folder = open_folder(path)
    trail = await open_at(path, clock=folder.clock)
    try:
        team = await open_team(trail, folder)
        session = (path / SESSION).read_text()
        state = await team.state(session, by=ME)
        messages = [str(each.type) for each in await team.log(session, by=ME)]
        return {
            "events": await trail.log.head() - int((path / BEGINNING).read_text()),
            "outcome": (str(state.outcome), state.reason),
            "messages": sorted(each for each in messages if each != "TASK_ANSWER"),  # a run may end before or after
            "tree": git(folder.root, "rev-parse", f"{state.branch}^{{tree}}").strip(),
            "file": git(folder.root, "show", f"{state.branch}:calc.py"),
            "commits": git(folder.root, "log", "--format=%s", state.branch).splitlines(),
            "checkout": git(folder.root, "status", "--porcelain"),
            "verdicts": _verdicts(state),
            "effects": len(Outside(path).effects()),
            "dead letters": [each.reason for each in await trail.dead_letters.list(by=ME)],
            "damage": await trail.upkeep.check(),
        }
    finally:
        await trail.close()


def _verdicts(state: TeamState) -> list[Any]:
    return [
        (
            each.id,
            str(each.state),
            each.tree,
            each.inspector_loops,
            each.tester_loops,
            [(receipt["kind"], receipt["exit_code"], receipt["tree"]) for receipt in each.receipts],
        )
        for each in state.pipelines.values()
    ]
