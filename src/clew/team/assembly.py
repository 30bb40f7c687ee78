"""Builds the runtime and the team of a folder from its open trail, its settings and its models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clew.access import Principal
from clew.agents.assembly import RuntimeAdditions, build_runtime
from clew.agents.conversations.conversation import Conversations, open_conversations
from clew.agents.conversations.no_model_fallback import find_missing_model
from clew.agents.hooks.place_rules import PlaceRules
from clew.agents.hooks.run_skills import RunSkills
from clew.agents.runs.call_limits import CallLimits
from clew.agents.runtime import Runtime
from clew.agents.tools.builtin_tools import code_tools, folder_tools
from clew.agents.workers.roles import EVERY_ROLE
from clew.catalog.catalog import Catalog
from clew.catalog.workspace.workspace import Workspace
from clew.clock import Clock
from clew.config import Config
from clew.context.definition import AgentDefinition
from clew.knowledge.domains.tool_builder import OpenKnowledge
from clew.llm.model import Models
from clew.skills.exposure_store import TrailExposures
from clew.skills.manifest import Manifest
from clew.skills.rules.tree import Rules
from clew.team.guide import Guide
from clew.team.members.context_handlers import ContextActions
from clew.team.members.member_definitions import manifest_for, mirror_members
from clew.team.members.member_hooks import MemberHooks
from clew.team.members.member_skills import MemberSkills
from clew.team.members.toolkit.member_deps import MemberDeps
from clew.team.members.toolkit.member_tools import member_tools
from clew.team.members.tree_access import TreeAccess
from clew.team.messages.message_types import ARCHITECT
from clew.team.router import Router
from clew.team.runtime.completion_gate import completion_gate
from clew.team.runtime.file_locks import FileLocks, with_checkout_lock, with_locks
from clew.team.runtime.team_handlers import team_additions
from clew.team.runtime.team_states import TeamStates
from clew.team.sessions.session_manager import SessionManager
from clew.team.sessions.session_prompt import session_hook
from clew.team.team import Team
from clew.team.worktrees.repository import state_folder
from clew.team.worktrees.team_tools import TeamFolder, team_tools
from clew.tools.files.folder import WorkingFolder
from clew.tools.hook_chain import Hook
from clew.tools.permissions.policy import Policy
from clew.tools.sandbox import Sandbox, open_sandbox
from clew.tools.tool import Tool
from clew.trail.store import Trail

WRITING_TOOLS = ("write-file", "edit-file")
"""The tools that change files of the checkout."""


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
    knowledge: OpenKnowledge
    router: Router

    @property
    def root(self) -> Path:
        return self.config.folder.absolute().parent

    @property
    def limits(self) -> CallLimits:
        """The limits of the worker pool."""
        team = self.config.team
        return CallLimits(models=team.model_calls, tools=team.tool_calls, session=team.session_calls, queue=team.queue)

    def sandbox(self) -> Sandbox:
        """The sandbox of the folder. Raises SandboxUnavailable in production if nothing can confine code."""
        config = self.config
        return open_sandbox(
            production=config.production, deny=[str(config.folder.absolute())], wall=config.adapters.sandbox
        )

    def team_folder(self, sandbox: Sandbox) -> TeamFolder:
        """The project folder and the location of its work trees. Raises InvalidInput."""
        return TeamFolder(root=self.root, state=state_folder(self.root), sandbox=sandbox, clock=self.clock)

    async def conversations(self) -> Conversations:
        return await open_conversations(self.trail, self.clock, by=self.me)


async def build_folder_runtime(
    parts: FolderParts, roles: frozenset[str] = EVERY_ROLE, tags: Sequence[str] = ()
) -> Runtime:
    """Build the runtime for the agents and the team of a folder, limited to `roles`. Raises ConfigError,
    SandboxUnavailable."""
    trail, clock, me = parts.trail, parts.clock, parts.me
    sandbox, folder = parts.sandbox(), WorkingFolder(parts.root)
    own_rules = Rules(parts.root, trail, by=me, root_file=parts.config.rules.root)
    rules = PlaceRules(own_rules, TrailExposures(trail, clock), clock)
    members, conversations = _member_skills(parts), await parts.conversations()

    async def open_catalog() -> Catalog:
        return (await parts.workspace()).catalog

    own_tools = folder_tools(
        folder,
        parts.config.folder,
        clock,
        sandbox=sandbox,
        policy=parts.policy,
        open_catalog=open_catalog,
        hook=rules,
    )
    return await build_runtime(
        trail,
        clock,
        parts.models,
        by=me,
        from_record=code_tools(trail, parts.root, sandbox, by=me),
        tools=(
            *with_locks(own_tools, FileLocks(trail, clock, by=me), folder, WRITING_TOOLS),
            *_tools_of_team(parts, conversations, sandbox),
            members.load_tool(),
        ),
        policy=parts.policy,
        place=folder.locate,
        skills=members,
        hooks=(rules.prompt_hook(trail, me), session_hook(trail, me), *members.hooks(), *_member_hooks(parts)),
        is_isolated=sandbox.status().isolated,
        limits=parts.limits,
        additions=_additions(parts, conversations),
        roles=roles,
        worker_tags=tags,
    )


def _additions(parts: FolderParts, conversations: Conversations) -> RuntimeAdditions:
    """The team's additions to the runtime, with the handlers that act on the context thresholds of its members."""
    trail, clock, me = parts.trail, parts.clock, parts.me
    team = team_additions(trail, conversations, clock, completion_gate, by=me)
    contexts = ContextActions(
        trail=trail,
        flow=conversations.flow,
        clock=clock,
        by=me,
        knowledge=parts.knowledge,
        state_of=TeamStates(trail, completion_gate, by=me).latest,
    )
    return replace(team, handlers=(*team.handlers, *contexts.handlers()), open_items=contexts.open_items)


def _member_hooks(parts: FolderParts) -> tuple[Hook, ...]:
    states = TeamStates(parts.trail, completion_gate, by=parts.me)
    return MemberHooks(parts.trail, states.latest, by=parts.me).hooks()


def _tools_of_team(parts: FolderParts, conversations: Conversations, sandbox: Sandbox) -> tuple[Tool, ...]:
    """The tools by which the team changes the disk, and those of its members."""
    trail, clock, folder = parts.trail, parts.clock, parts.team_folder(sandbox)
    trees, states = TreeAccess(folder), TeamStates(trail, completion_gate, by=parts.me)
    sessions = SessionManager(trail, conversations, clock)

    async def list_sessions(*, by: Principal) -> Sequence[tuple[str, str]]:
        return [(each.title, each.state) for each in await sessions.list(by=by)]

    deps = MemberDeps(
        trail=trail,
        clock=clock,
        own=parts.config.folder,
        knowledge=parts.knowledge,
        send=Guide(trail, conversations, clock, by=parts.me).send,
        folder_of=trees.folder_of,
        run=trees.run,
        check=trees.check,
        state_of=states.latest,
        router=parts.router,
        sessions=list_sessions,
        policy=parts.policy,
    )
    locks = FileLocks(trail, clock, by=parts.me)
    own = with_checkout_lock(team_tools(folder), locks, "team-open")
    return (*own, *member_tools(deps, conversations.flow))


def _member_skills(parts: FolderParts) -> MemberSkills:
    """The skills of members, by the phase of their session; other agents have those of the folder."""
    states = TeamStates(parts.trail, completion_gate, by=parts.me)

    async def phase_of(session: str) -> str:
        return (await states.latest(session)).phase

    async def manifest_of() -> Manifest:
        return manifest_for((await parts.workspace()).definitions)

    others = RunSkills(parts.workspace, parts.me)
    return MemberSkills(parts.trail, parts.clock, manifest_of, parts.me, others, phase_of)


async def build_team(parts: FolderParts, require_ownership: Callable[[], Awaitable[None]]) -> Team:
    """The team of a folder, for the CLI, REST and other interfaces. A request is refused if the user has not consented
    to the trail, if no model is configured, or if no sandbox would confine commands."""
    conversations = await parts.conversations()
    flow = conversations.flow

    async def prepare() -> None:
        await require_ownership()
        parts.team_folder(parts.sandbox()).require_wall()
        definitions = (await parts.workspace()).definitions
        architect = AgentDefinition(agent_id=ARCHITECT, model=manifest_for(definitions).agents[ARCHITECT].model)
        missing = await find_missing_model(parts.trail, flow, parts.clock, parts.models, architect, by=parts.me)
        if missing is not None:
            raise missing
        await mirror_members(parts.trail, flow, definitions, by=parts.me, start=True)

    return Team(
        parts.trail,
        conversations,
        parts.clock,
        completion_gate,
        me=parts.me,
        prepare=prepare,
        limits=parts.limits,
        folder=lambda: parts.team_folder(parts.sandbox()),
    )
