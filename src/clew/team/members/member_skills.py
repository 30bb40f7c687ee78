"""The skills of a member in one conversation, by tier: core skills are in its prompt. Other skills are loaded by a
trigger word, a phase or a call, and unloaded when the work moves on. Only the tools of loaded skills are in the prompt
and can be called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import PromptData, ToolData
from clew.agents.hooks.prompt_hooks import NeededSkill, PromptSkills
from clew.clock import Clock
from clew.errors import Abort, InvalidInput, ManifestError
from clew.skills.exposure import Exposure
from clew.skills.exposure_store import TrailExposures
from clew.skills.manifest import Manifest
from clew.skills.prompt import is_initial
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.sessions.loads import TRIGGERED
from clew.skills.sessions.session import LOAD_SKILL, SKILL, is_skill
from clew.skills.triggers import Turn
from clew.team.members.roster import tools_of_skills
from clew.team.messages.conversation import team_session
from clew.team.messages.message_types import AGENTS
from clew.tools.hook_chain import Hook, HookPriority
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.store import Trail

PhaseOf = Callable[[str], Awaitable[str]]
"""The phase of a session, by its id."""
ManifestOf = Callable[[], Awaitable[Manifest]]
"""The definitions of the team as they are now."""
REFUSED = "a hook refused it"


async def no_phase(session: str) -> str:
    return ""


class MemberSkills:
    """Finds the skills of members, and passes other agents on to `others`."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        manifest_of: ManifestOf,
        by: Principal,
        others: PromptSkills | None = None,
        phase_of: PhaseOf = no_phase,
    ) -> None:
        self._exposures = TrailExposures(trail, clock)
        self._clock = clock
        self._manifest_of = manifest_of
        self._by = by
        self._others = others
        self._phase_of = phase_of
        self._registry = ToolRegistry()

    async def called(self, message: str, *, agent: str, session: str) -> Sequence[NeededSkill]:
        if agent not in AGENTS:
            return await self._others.called(message, agent=agent, session=session) if self._others else ()
        found = await self._session(agent, session)
        exposure = await found.exposure()
        reasons = {each.skill: each.why for each in found.triggered(await self._turn(message, session))}
        reasons |= {name: "it is loaded" for name in _loaded_by_name(exposure) if name not in reasons}
        return [_needed(found, name, why) for name, why in reasons.items() if not _is_core(found, name)]

    async def settle(self, message: str, refused: Sequence[str], *, agent: str, session: str) -> None:
        if agent not in AGENTS:
            if self._others is not None:
                await self._others.settle(message, refused, agent=agent, session=session)
            return
        found = await self._session(agent, session)
        turn, items = await self._turn(message, session), (await found.exposure()).items
        if found.triggered(turn) or any(each.via in TRIGGERED for each in items.values()):
            await found.follow(turn, refused=refused)
        for name in refused:
            if f"{SKILL}{name}" in items:
                await found.unload_skill(name, by=agent, reason=REFUSED)

    async def hint(self, message: str, *, agent: str, session: str) -> str:
        """Empty for members, because their prompt already lists their skills."""
        if agent in AGENTS or self._others is None:
            return ""
        return await self._others.hint(message, agent=agent, session=session)

    async def load(self, name: str, *, agent: str, session: str) -> str:
        """Load a skill for the rest of the conversation, and return its text. Raises InvalidInput."""
        found = await self._session(agent, session)
        try:
            await found.load_skill(name, by=LOAD_SKILL)
        except ManifestError as error:
            raise InvalidInput("name", str(error), hint=error.hint) from None
        return found.skill_content(name)

    async def tools(self, *, agent: str, session: str) -> set[str]:
        """The tools that a member has now: its own, and those of its core and loaded skills."""
        found = await self._session(agent, session)
        spec, manifest = found.terms.agent, found.terms.manifest
        exposure = await found.exposure()
        loaded = [item.removeprefix(SKILL) for item in exposure.items if is_skill(item)]
        core = [name for name in spec.loadable if _is_core(found, name)]
        return {*(spec.tools or ()), *tools_of_skills([*core, *loaded], manifest)}

    def hooks(self) -> tuple[Hook, ...]:
        """Hooks that leave only the tools of a member's loaded skills in its prompts, and refuse calls of others."""
        return (
            Hook(name="member_tools", point="pre_prompt", priority=HookPriority.NORMAL, function=self._show_tools),
            Hook(
                name="member_tier",
                point="pre_tool",
                priority=HookPriority.FIRST,
                function=self._check_tool,
                required=True,
            ),
        )

    def load_tool(self) -> Tool:
        """The tool with which a member loads a skill."""

        @tool(name="load_skill", searchable=False, effects=Effects(repeats_safely=True, reaches_out=False))
        async def load_skill(name: str, ctx: ToolContext) -> str:
            """Load a skill: returns its instructions, and makes its tools available from the next step on.

            Args:
                name: a skill of your list
            """
            return await self.load(name, agent=ctx.by.agent_id, session=ctx.by.session or "")

        return load_skill

    async def _show_tools(self, data: PromptData) -> PromptData:
        if data.agent_id not in AGENTS or not data.session:
            return data
        mine = await self.tools(agent=data.agent_id, session=data.session)
        return msgspec.structs.replace(data, tools=tuple(each for each in data.tools if each.name in mine))

    async def _check_tool(self, data: ToolData) -> ToolData:
        agent, session = data.by.agent_id, data.request.session or ""
        if agent not in AGENTS or not session or data.agent is None:
            return data
        if data.tool.name not in await self.tools(agent=agent, session=session):
            found = await self._session(agent, session)
            skills = found.terms.manifest.skills
            home = next(
                (name for name in found.terms.agent.loadable if data.tool.name in skills[name].allowed_tools), ""
            )
            hint = f"Call load_skill with {home} first" if home else "Use a tool of your list"
            raise Abort(f"{data.tool.name} is not loaded", hint=hint)
        return data

    async def _turn(self, message: str, session: str) -> Turn:
        return Turn(text=message, phase=await self._phase_of(team_session(session)))

    async def _session(self, agent: str, session: str) -> AgentSession:
        by = msgspec.structs.replace(self._by, agent_id=agent, session=session)
        return AgentSession(
            await self._manifest_of(),
            self._registry,
            self._exposures,
            by=by,
            agent=agent,
            clock=self._clock,
            handle=f"session:{session}",
            brings=False,
        )


def _loaded_by_name(exposure: Exposure) -> list[str]:
    return [
        item.removeprefix(SKILL)
        for item, each in exposure.items.items()
        if is_skill(item) and each.via not in TRIGGERED
    ]


def _is_core(found: AgentSession, name: str) -> bool:
    skill = found.terms.manifest.skills.get(name)
    return skill is not None and is_initial(skill, found.terms.agent)


def _needed(found: AgentSession, name: str, why: str) -> NeededSkill:
    return NeededSkill(skill=name, why=why, text=f"The skill {name}, for this work:\n\n{found.skill_content(name)}")
