"""The loaded skills of callers, stored in their exposure sets, with the routes that they open and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.operations.why import RouteExplanation
from clew.catalog.skills.definitions import AGENT_NOT_AGREED, FolderDefinitions
from clew.catalog.skills.files import SkillFiles
from clew.catalog.skills.routes import LOAD, UNLOAD
from clew.catalog.workspace.skill_routes import SkillRoutes
from clew.clock import Clock
from clew.errors import HandleRefused, ValidationError
from clew.skills.exposure import Edit, Exposed, Exposure, Exposures, Items, is_named
from clew.skills.manifest import is_route
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.agent_session import UNLOADED, AgentSession
from clew.skills.sessions.explanations import explain
from clew.skills.sessions.loads import LoadTerms, check_chain, check_skill, check_withheld, starting_skills
from clew.skills.sessions.session import SKILL, TOOLSET, SessionState, cost_of, derive, is_skill
from clew.skills.variables import Variables, inject

SOMEBODY = "agent"
"""The agent name of an anonymous caller."""
MAX_TOLD = 20


class LoadedSkills:
    """The loaded skills of every caller, each in the exposure set of its handle."""

    def __init__(self, definitions: FolderDefinitions, exposures: Exposures, clock: Clock) -> None:
        self.definitions = definitions
        self.files = SkillFiles(definitions)
        self._exposures = exposures
        self._clock = clock
        self._registry = ToolRegistry()

    def session(self, by: Principal, handle: str) -> AgentSession:
        """Return the session of a caller. The catalog has accepted the handle, or has just created it. A new session is
        empty: a skill counts as loaded once the caller has its text."""
        terms = self.terms(by)
        return AgentSession(
            terms.manifest,
            self._registry,
            _Accepted(self._exposures, handle),
            by=by,
            agent=terms.agent.name,
            clock=self._clock,
            handle=handle,
            withhold=terms.withhold,
            render=_with_variables,
            toolset_notes=True,
            brings=False,
        )

    def terms(self, by: Principal) -> LoadTerms:
        """The terms under which a caller may load skills. A caller without a definition, such as a plain MCP client,
        may load any skill. A caller whose definition waits for consent may load none."""
        agent = self.definitions.agent(by.agent_id or SOMEBODY)
        manifest = self.definitions.usable
        manifest = msgspec.structs.replace(manifest, agents={**manifest.agents, agent.name: agent})
        if self.definitions.is_waiting(agent.name):
            manifest = msgspec.structs.replace(manifest, toolsets={})
            return LoadTerms(manifest=manifest, agent=agent, withhold=lambda _: AGENT_NOT_AGREED)
        return LoadTerms(manifest=manifest, agent=agent, withhold=self.definitions.withhold)

    def state(self, exposure: Exposure) -> SessionState:
        """Return the state of a set under the present definitions and consent."""
        return derive(self.definitions.usable, "", exposure.items, self.definitions.withhold)

    def brought(self, exposure: Exposure) -> SkillRoutes:
        """The routes that the skills and toolsets of a set open, and those that they would open with the user's
        consent."""
        routes: dict[str, list[str]] = {}
        for item in exposure.items:
            if not is_skill(item) and not item.startswith(TOOLSET):
                continue
            state = derive(self.definitions.usable, "", [item], self.definitions.withhold)
            for tool in filter(is_route, state.exposed_domain_tools):
                routes.setdefault(tool, []).append(item.replace(":", " ", 1))
        return SkillRoutes(routes=routes, waiting=self._waiting(exposure) if self.definitions.withheld else {})

    def _waiting(self, exposure: Exposure) -> Mapping[str, Sequence[str]]:
        """The routes of withheld skills in a set, each with the names of those skills."""
        manifest, routes = self.definitions.manifest, dict[str, list[str]]()
        came = set(derive(manifest, "", exposure.items).discovered_skills)
        for name in self.definitions.withheld:
            toolsets = manifest.skills[name].toolsets
            here = toolsets if name in came else [each for each in toolsets if f"{TOOLSET}{each}" in exposure.items]
            tools = (tool for each in here if each in manifest.toolsets for tool in manifest.toolsets[each].tools)
            for tool in dict.fromkeys(filter(is_route, tools)):
                routes.setdefault(tool, []).append(name)
        return routes

    async def reset(self, by: Principal, handle: str) -> int:
        """Unload everything; revealed routes stay. Returns the estimated tokens of the unloaded state."""
        exposure = await self.session(by, handle).exposure()
        if any(map(is_named, exposure.items)):
            await self._exposures.change(exposure, _without_named, by=by, ended_by=UNLOAD, reason="reset")
        return self.cost(self.state(exposure))

    def tell(self, exposure: Exposure) -> str:
        """Which skills are loaded, in a sentence; empty if none is."""
        state = self.state(exposure)
        names = state.discovered_skills
        if not names:
            return ""
        more = f" and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else ""
        return f"Loaded skills: {', '.join(names[:MAX_TOLD])}{more} (about {self.cost(state):,} tokens)."

    def cost(self, state: SessionState) -> int:
        """About how many tokens a state takes."""
        return cost_of(self.definitions.usable, state)

    def explain(self, kind: str, name: str, exposure: Exposure, *, by: Principal) -> RouteExplanation:
        """Explain why a caller has or does not have a skill, a toolset, or a tool of a toolset."""
        terms = self.terms(by)
        routes = [tool for each in terms.manifest.toolsets.values() for tool in each.tools if is_route(tool)]
        found = explain(name if kind == "tool" else f"{kind}:{name}", exposure, terms, self._registry, routes)
        return RouteExplanation(
            route=f"{kind}:{name}",
            is_visible=found.is_here,
            reasons=[_in_routes(each) for each in found.reasons],
            kind=kind,
            tokens=found.tokens,
            exposed=next(iter(found.causes), None),
        )


def first_skills(terms: LoadTerms, exposure: Exposure) -> list[str]:
    """The caller's initial skills that it may load, except those that are loaded or that it unloaded by name."""
    let_go = {each.item for each in exposure.ended if each.reason == UNLOADED}
    wanted = [name for name in starting_skills(terms) if f"{SKILL}{name}" not in {*exposure.items, *let_go}]
    return [name for name in wanted if _may_load(terms, name)]


def _may_load(terms: LoadTerms, name: str) -> bool:
    try:
        check_skill(terms, name)
        check_chain(terms, name)
        check_withheld(terms, name)
    except ValidationError:
        return False
    return True


class _Accepted:
    """Wraps exposure sets for a handle that the catalog has just accepted. If nothing is stored under the handle yet,
    its set is empty."""

    def __init__(self, sets: Exposures, handle: str) -> None:
        self._sets = sets
        self._handle = handle

    async def open(self, handle: str | None, *, by: Principal) -> Exposure:
        try:
            return await self._sets.open(handle, by=by)
        except HandleRefused:
            return Exposure(handle=self._handle)

    async def reload(self, handle: str, *, by: Principal) -> Exposure:
        return await self._sets.reload(handle, by=by)

    async def reveal(self, exposure: Exposure, found: Sequence[Exposed], *, by: Principal) -> Exposure:
        return await self._sets.reveal(exposure, found, by=by)

    async def change(
        self, exposure: Exposure, edit: Edit, *, by: Principal, ended_by: str = "", reason: str = ""
    ) -> Exposure:
        return await self._sets.change(exposure, edit, by=by, ended_by=ended_by, reason=reason)


def _with_variables(text: str) -> str:
    """Replace the variables in a text that allowed environment variables define."""
    return inject(text, Variables().resolve())


def _without_named(items: Items) -> Items:
    return {name: each for name, each in items.items() if not is_named(name)}


def _in_routes(reason: str) -> str:
    """A reason in the catalog's terms: the library's meta-tools are named by their routes."""
    for name in ("loadSkill", "loadToolset"):
        if reason.startswith(f"{name} "):
            return f"`{LOAD}`{reason.removeprefix(name)}"
    return reason.replace("; loadToolset loads", f"; `{LOAD}` loads")
