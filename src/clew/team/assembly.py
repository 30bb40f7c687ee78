"""Builds the runtime and the team of a folder from its open trail, its settings and its models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations, open_conversations
from clew.agents.conversations.no_model_fallback import find_missing_model
from clew.agents.hooks.place_rules import PlaceRules
from clew.agents.hooks.run_skills import RunSkills
from clew.agents.runtime import Runtime
from clew.agents.tools.builtin_tools import code_tools, folder_tools
from clew.catalog.catalog import Catalog
from clew.catalog.workspace.workspace import Workspace
from clew.clock import Clock
from clew.config import Config
from clew.context.definition import AgentDefinition
from clew.llm.model import Models
from clew.skills.exposure_store import TrailExposures
from clew.skills.rules.tree import Rules
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.messages.message_types import ARCHITECT
from clew.team.planning.plan import PlanNode
from clew.team.runtime.team_handlers import team_additions
from clew.team.sessions.session_prompt import session_hook
from clew.team.team import Team
from clew.tools.files.folder import WorkingFolder
from clew.tools.permissions.policy import Policy
from clew.tools.sandbox import Sandbox, open_sandbox
from clew.trail.store import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderParts:
    """The parts of a folder that agents work with."""

    trail: Trail
    clock: Clock
    me: Principal
    config: Config
    models: Models
    policy: Policy
    workspace: Callable[[], Awaitable[Workspace]]

    @property
    def root(self) -> Path:
        return self.config.folder.absolute().parent

    def sandbox(self) -> Sandbox:
        """Raises SandboxUnavailable in production where nothing can confine code."""
        config = self.config
        return open_sandbox(
            production=config.production, deny=[str(config.folder.absolute())], wall=config.adapters.sandbox
        )

    async def conversations(self) -> Conversations:
        return await open_conversations(self.trail, self.clock, by=self.me)


async def build_folder_runtime(parts: FolderParts) -> Runtime:
    """Everything that runs the agents and the team of a folder. Raises ConfigError, SandboxUnavailable."""
    trail, clock, me = parts.trail, parts.clock, parts.me
    sandbox, folder = parts.sandbox(), WorkingFolder(parts.root)
    own_rules = Rules(parts.root, trail, by=me, root_file=parts.config.rules.root)
    rules = PlaceRules(own_rules, TrailExposures(trail, clock), clock)

    async def open_catalog() -> Catalog:
        return (await parts.workspace()).catalog

    return await build_runtime(
        trail,
        clock,
        parts.models,
        by=me,
        from_record=code_tools(trail, parts.root, sandbox, by=me),
        tools=folder_tools(
            folder,
            parts.config.folder,
            clock,
            sandbox=sandbox,
            policy=parts.policy,
            open_catalog=open_catalog,
            hook=rules,
        ),
        policy=parts.policy,
        place=folder.locate,
        skills=RunSkills(parts.workspace, me),
        hooks=(rules.prompt_hook(trail, me), session_hook(trail, me)),
        is_isolated=sandbox.status().isolated,
        additions=team_additions(trail, await parts.conversations(), clock, _gate, by=me),
    )


async def build_team(parts: FolderParts, prepare: Callable[[], Awaitable[None]]) -> Team:
    """The team of a folder, as doors use it. `prepare` runs before each request."""
    conversations = await parts.conversations()

    async def make_ready() -> None:
        await prepare()
        architect = AgentDefinition(agent_id=ARCHITECT)
        missing = await find_missing_model(parts.trail, conversations.flow, parts.models, architect, by=parts.me)
        if missing is not None:
            raise missing

    return Team(parts.trail, conversations, parts.clock, _gate, me=parts.me, prepare=make_ready)


def _gate(pipeline: TaskPipeline, node: PlanNode) -> tuple[str, ...]:
    """The reasons why a task does not count as done."""
    return ()
