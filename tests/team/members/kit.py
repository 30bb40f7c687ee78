"""The tools of members on a real repository with work trees, knowledge and a trail, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.knowledge.base import Knowledge, open_knowledge
from clew.team.guide import checked_message_draft
from clew.team.machines.dag import begin
from clew.team.machines.pipeline_state import PipelineContext, TaskPipeline
from clew.team.machines.team_state import TeamState
from clew.team.members.toolkit.member_deps import MemberDeps
from clew.team.members.toolkit.member_tools import member_tools
from clew.team.members.tree_access import TreeAccess
from clew.team.messages.message import TeamMessage
from clew.team.planning.plan import read_plan
from clew.team.router import Router
from clew.team.worktrees.team_tools import TeamFolder
from clew.tools.permissions.policy import DEFAULT, Policy
from clew.tools.sandbox import open_sandbox
from clew.tools.tool import Tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail
from tests.team.worktrees.projects import TeamProject, make_repository, open_project

SESSION = "s1"
PIPELINE = "add.1"
PLAN = read_plan(
    {
        "id": "p1",
        "summary": "Add subtraction",
        "nodes": [
            {
                "id": "add",
                "prompt": "Add sub(a, b) to calc/core.py.",
                "files": ["calc/*.py"],
                "checks": ["python -m pytest -q"],
                "criteria": ["sub is typed"],
            }
        ],
    }
)


@dataclass
class Kit:
    """Tools of members, and what they sent."""

    tools: tuple[Tool, ...]
    project: TeamProject
    tree: Path
    state: TeamState
    sent: list[TeamMessage] = field(default_factory=list)
    knowledge: Knowledge | None = None

    def of_type(self, type: str) -> list[TeamMessage]:
        return [each for each in self.sent if each.type == type]


async def open_kit(trail: Trail, clock: Clock, me: Principal, folder: Path, policy: Policy = DEFAULT) -> Kit:
    """A repository with one pipeline of the session s1, and the tools of members for it."""
    await bootstrap(trail, me)
    root = make_repository(folder / "project")
    project = open_project(root, folder / "state", clock)  # type: ignore[arg-type]  # any clock does
    own = folder / "own"
    own.mkdir()
    knowledge = open_knowledge(trail, clock, own, root, me, None)
    pipeline = TaskPipeline(
        id=PIPELINE,
        session_id=SESSION,
        dag_id="p1",
        task_id="add",
        created_at=clock.now(),
        context=PipelineContext(task_prompt=PLAN.nodes[0].prompt, compliance_criteria=PLAN.nodes[0].criteria),
    )
    kit = Kit(
        tools=(),
        project=project,
        tree=project.pipeline(PIPELINE),
        state=TeamState(session=SESSION, plan=PLAN, dag=begin(PLAN), pipelines={PIPELINE: pipeline}),
        knowledge=knowledge,
    )

    async def send(message: TeamMessage, *, by: Principal, key: str | None = None) -> TeamMessage:
        assert message.source == by.agent_id
        stamped = msgspec.structs.replace(message, id=clock.new_id())
        record = await trail.records.create(checked_message_draft(stamped, key=key), by=me)
        kept = msgspec.convert(record.context, TeamMessage)
        if kept not in kit.sent:
            kit.sent.append(kept)
        return kept

    async def known() -> Knowledge:
        return knowledge

    async def state_of(session: str) -> TeamState:
        return kit.state

    async def sessions(*, by: Principal) -> Sequence[tuple[str, str]]:
        return [("billing", "active"), ("docs", "suspended")]

    trees = TreeAccess(
        TeamFolder(root=root, state=folder / "state", sandbox=open_sandbox(production=False), clock=clock)
    )
    deps = MemberDeps(
        trail=trail,
        clock=clock,
        own=own,
        knowledge=known,
        send=send,
        folder_of=trees.folder_of,
        run=trees.run,
        check=trees.check,
        state_of=state_of,
        router=Router(clock=clock),
        sessions=sessions,
        policy=policy,
    )
    kit.tools = member_tools(deps, await read_flow(trail, by=me))
    return kit
