"""Skills of a folder for agents that run. Each run gets the texts of the skills of the first tier, of those that its
message triggers, and of those that its session has loaded; only these count as loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from clew.access import Principal
from clew.agents.folder.folder_agents import in_prompt
from clew.agents.hooks.prompt_hooks import NeededSkill
from clew.catalog.operations.text import inline
from clew.catalog.skills.loaded_skills import first_skills
from clew.catalog.skills.routes import FIND
from clew.catalog.skills.skill_text import show_files, show_tools
from clew.catalog.workspace.workspace import Workspace
from clew.skills.exposure import Exposure
from clew.skills.rules.interception import MAX_INTENT
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.sessions.loads import TRIGGERED, loadable_skills
from clew.skills.sessions.session import SKILL, brought_by, is_skill
from clew.skills.triggers import Turn

HINTED = 3
BY = "the run of the agent"
REFUSED = "a hook refused it"


class RunSkills:
    """Implements `PromptSkills`. `open_workspace` opens the folder's workspace; `by` is the owner of the agents."""

    def __init__(self, open_workspace: Callable[[], Awaitable[Workspace]], by: Principal) -> None:
        self._open = open_workspace
        self._by = by

    async def called(self, message: str, *, agent: str, session: str) -> Sequence[NeededSkill]:
        workspace = await self._open()
        found = self._session(workspace, agent, session)
        if found is None:
            return ()
        exposure = await found.exposure()
        items, known = exposure.items, set(_in_prompt(found))
        reasons = dict.fromkeys(_starting(found, exposure), f"agent {agent} starts with it")
        reasons |= {each.skill: each.why for each in found.triggered(Turn(text=message))}
        loaded = (name for name, each in items.items() if is_skill(name) and each.via not in TRIGGERED)
        reasons |= {name: "it is loaded" for item in loaded if (name := item.removeprefix(SKILL)) not in reasons}
        names = [name for name in reasons if name not in known and self._is_free(found, name)]
        return [self._called(workspace, found, name, reasons[name], agent) for name in names]

    async def settle(self, message: str, refused: Sequence[str], *, agent: str, session: str) -> None:
        found = self._session(await self._open(), agent, session)
        if found is None:
            return
        exposure = await found.exposure()
        items = exposure.items
        first = [name for name in _starting(found, exposure) if name not in refused]
        told = [name for name in dict.fromkeys((*_in_prompt(found), *first)) if f"{SKILL}{name}" not in items]
        if told:
            await found.load_skills(told, by=BY, via="initial", why=f"agent {agent} starts with it")
        turn = Turn(text=message)
        if found.triggered(turn) or any(each.via in TRIGGERED for each in items.values()):
            await found.follow(turn, refused=refused)
        for name in refused:
            if f"{SKILL}{name}" in items:
                await found.unload_skill(name, by=BY, reason=REFUSED)

    async def hint(self, message: str, *, agent: str, session: str) -> str:
        workspace = await self._open()
        found, search = self._session(workspace, agent, session), workspace.skill_search
        if found is None or search is None or not message.strip():
            return ""
        state = await found.find_state()
        here = state.discovered_skills if state is not None else ()
        free = [name for name in loadable_skills(found.terms) if name not in here and self._is_free(found, name)]
        close = await search.find_skills(message[:MAX_INTENT], free, HINTED, by=self._by)
        if not close:
            return ""
        shown = ", ".join(inline(each.skill, 100) for each in close)
        return f"Skills that may help with this: {shown}. `get` on `{FIND}` leads to them."

    def _session(self, workspace: Workspace, agent: str, session: str) -> AgentSession | None:
        loaded = workspace.catalog.skills
        if loaded is None or not session:
            return None
        by = Principal(
            owner_id=self._by.owner_id,
            agent_id=agent,
            session=session,
            roles=self._by.roles,
            scopes=self._by.scopes,
        )
        return loaded.session(by, f"session:{session}")

    def _is_free(self, found: AgentSession, name: str) -> bool:
        skill = found.terms.manifest.skills.get(name)
        return skill is not None and not found.terms.withhold(skill)

    def _called(self, workspace: Workspace, found: AgentSession, name: str, why: str, agent: str) -> NeededSkill:
        manifest = found.terms.manifest
        skills = [manifest.skills[each] for each in brought_by(manifest, name, found.terms.withhold)]
        toolsets = dict.fromkeys(each for skill in skills for each in skill.toolsets if each in manifest.toolsets)
        tools = dict.fromkeys(tool for each in toolsets for tool in manifest.toolsets[each].tools)
        parts = [f"The skill {name}, for this work:", found.skill_content(name)]
        parts += filter(None, map(show_files, skills))
        parts += show_tools(tools, workspace.catalog.registry, self._by)
        return NeededSkill(skill=name, why=why, text="\n\n".join(parts))


def _in_prompt(found: AgentSession) -> list[str]:
    return in_prompt(found.terms.agent, found.terms.manifest, found.terms.withhold)


def _starting(found: AgentSession, exposure: Exposure) -> list[str]:
    """The initial skills that the session has not loaded yet, up to its limit of loaded skills."""
    room = found.terms.max_skills - sum(map(is_skill, exposure.items))
    return first_skills(found.terms, exposure)[: max(room, 0)]
