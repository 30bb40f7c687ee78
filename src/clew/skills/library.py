"""The library for programs: one object for agents, skills and tools.

skills = Skills.from_folder("team", tools=[search, plot])
tools = await skills.get_tools("researcher")
prompt = await skills.get_prompt("researcher", variables={"USER": "Ada"})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypedDict, Unpack, get_args

import msgspec

from clew.access import ROLES, Principal
from clew.clock import Clock, SystemClock
from clew.config import FOLDER
from clew.skills.arguments import check_choice, check_count, check_has, check_path, check_text, check_type
from clew.skills.definitions.manifest_builder import build_or_raise
from clew.skills.definitions.manifest_loader import load_manifest
from clew.skills.exposure import Exposures
from clew.skills.exposure_store import MemoryExposures
from clew.skills.formats.collection import collect
from clew.skills.lru_cache import LruCache
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.prompt import (
    DEFAULT,
    AgentPrompt,
    Sections,
    build_prompt,
    is_initial,
    loaded_section,
    standalone_toolsets,
)
from clew.skills.registry import Provider, ToolRegistry, check_tools
from clew.skills.sessions.agent_session import AgentSession, LoadOutcome, get_agent
from clew.skills.sessions.loads import MAX_SKILLS, LoadTerms, WhenFull, loadable_skills
from clew.skills.sessions.session import SessionState, Withhold, withhold_nothing
from clew.skills.sessions.tool_mapping import ExposedTools
from clew.skills.triggers import Turn
from clew.skills.variables import Value, Variables, inject
from clew.tools.tool import Tool

if TYPE_CHECKING:
    from clew.skills.discovery.memory_index import MemoryIndex  # circular at run time

MAIN = "main"
"""The default conversation."""
SUGGESTED = 3
UNLISTED = "(no toolset)"
"""The toolset for tools that no toolset lists. No agent has them, and diagnostics report them."""
DEFINED = ("agents", "skills", "toolsets", "tools")
"""A folder with at least one of these is a folder of definitions, not a project."""
_REMEMBERED = 1_000
_PROMPTS = 64
_TEXTS = 256


class SkillSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that may help. A `relevance` of 1 is just close enough."""

    skill: str
    description: str
    relevance: float


class SkillFinder(Protocol):
    """Interface of a search for skills."""

    async def suggest(self, query: str, *, among: Sequence[str], limit: int) -> list[SkillSuggestion]:
        """Return matching skills, best first; none if no match is close."""
        ...


class Options(TypedDict, total=False):
    """Keyword options of `Skills`."""

    exposures: Exposures | None
    clock: Clock | None
    owner: str
    variables: Variables | None
    finder: SkillFinder | None
    max_skills: int
    when_full: WhenFull
    withhold: Withhold
    toolset_notes: bool


class Skills:
    """A manifest with its tools, and the sessions of its agents.

    Sessions are in memory unless `exposures` stores them on a trail. An agent has one session per conversation, which
    begins with its first use. Withheld skills do not load, and no prompt names them. Raises ValidationError for invalid
    options.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        exposures: Exposures | None = None,
        clock: Clock | None = None,
        owner: str = "local",
        variables: Variables | None = None,
        finder: SkillFinder | None = None,
        max_skills: int = MAX_SKILLS,
        when_full: WhenFull = "refuse",
        withhold: Withhold = withhold_nothing,
        toolset_notes: bool = False,
    ) -> None:
        check_type("manifest", manifest, Manifest, "a Manifest: see Skills.from_folder")
        check_has("exposures", exposures, "open", "MemoryExposures or TrailExposures")
        check_has("clock", clock, "now", "a clock")
        check_text("owner", owner)
        check_type("variables", variables or Variables(), Variables, "Variables")
        check_has("finder", finder, "suggest", "a finder of skills")
        check_count("max_skills", max_skills)
        check_choice("when_full", when_full, get_args(WhenFull))
        check_type("withhold", withhold, Callable, "a function")  # type: ignore[arg-type]  # an abstract class
        self.manifest = manifest
        self.registry = ToolRegistry()
        self._clock = clock or SystemClock()
        self._exposures = exposures or MemoryExposures(self._clock)
        self._owner = owner
        self._variables = variables or Variables()
        self._finder = finder
        self._index: MemoryIndex | None = None
        self._indexing = asyncio.Lock()
        self._max_skills = max_skills
        self._when_full = when_full
        self._withhold = withhold
        self._toolset_notes = toolset_notes
        self._sessions: LruCache[tuple[str, str], AgentSession] = LruCache(_REMEMBERED)
        self._prompts: LruCache[object, AgentPrompt] = LruCache(_PROMPTS)
        self._texts: LruCache[object, str] = LruCache(_TEXTS)

    @classmethod
    def from_manifest(cls, path: str | Path, tools: Iterable[Tool] = (), **options: Unpack[Options]) -> Self:
        """Load a manifest from a file. Raises ConfigError, ParseError, ValidationError and BuildError."""
        check_path("path", path)
        return cls(load_manifest(Path(path)), **options)._with_tools(check_tools(tools, "tools").values())

    @classmethod
    def from_folder(cls, root: str | Path, tools: Iterable[Tool] = (), **options: Unpack[Options]) -> Self:
        """Build the manifest of a folder. Raises the first problem.

        A folder with `agents/`, `skills/`, `toolsets/` or `tools/` and without `.clew` is a folder of definitions. Any
        other folder is a project, in which definitions of other programs count too. This does not ask the user for
        consent: use `withhold` for skills that may not load.
        """
        check_path("root", root)
        tools, place = list(check_tools(tools, "tools").values()), Path(root)
        found = collect(place) if _is_project(place) else None
        return cls(build_or_raise(place, tools, found), **options)._with_tools(tools)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the search index. Needed only after `suggest_skills` without a finder."""
        index, self._index = self._index, None
        if index is not None:
            await index.close()

    def use(self, manifest: Manifest) -> None:
        """Replace the manifest. Sessions keep the skills and toolsets that it still has."""
        check_type("manifest", manifest, Manifest, "a Manifest")
        self.manifest = manifest
        self._sessions.clear()
        self._prompts.clear()

    @property
    def prompts_built(self) -> int:
        """The number of cache misses for prompts."""
        return self._prompts.made

    def register_tools(self, toolset: str, tools: Iterable[Tool] | Mapping[str, Tool]) -> None:
        """Register the tools of a toolset. Raises ValidationError for an object that is not a tool."""
        self.registry.register(toolset, tools)

    def register_tool_provider(self, toolset: str, provider: Provider) -> None:
        """Register a function that returns the tools of a toolset when an agent first needs them."""
        self.registry.register_tool_provider(toolset, provider)

    def session(self, agent: str, conversation: str = MAIN) -> AgentSession:
        """Return the session of an agent. Raises ValidationError for an unknown agent."""
        check_text("agent", agent)
        check_text("conversation", conversation)
        return self._sessions.find_or_make((agent, conversation), lambda: self._open(agent, conversation))

    async def get_session_state(self, agent: str, conversation: str = MAIN) -> SessionState | None:
        """Return a copy of an agent's session state, or None for an unknown agent or a session that has not begun."""
        check_text("agent", agent)
        return await self.session(agent, conversation).find_state() if agent in self.manifest.agents else None

    async def get_tools(
        self,
        agent: str,
        tools: Iterable[Tool] | Mapping[str, Tool] | None = None,
        *,
        conversation: str = MAIN,
        auto_load_skills: Sequence[str] = (),
    ) -> ExposedTools:
        """Return the meta-tools and the tools of the agent's skills, with diagnostics. Raises the errors of
        `AgentSession.get_tools`."""
        return await self.session(agent, conversation).get_tools(tools, auto_load_skills)

    async def load_skill(self, agent: str, skill: str, *, conversation: str = MAIN) -> LoadOutcome:
        """Load a skill, and include its text in later prompts. Raises ValidationError if the agent may not have it."""
        return await self.session(agent, conversation).load_skill(skill)

    async def unload_skill(self, agent: str, skill: str, *, conversation: str = MAIN) -> LoadOutcome:
        """Unload a skill, and everything that only it needs. Raises ValidationError for an unknown skill."""
        return await self.session(agent, conversation).unload_skill(skill)

    async def follow(self, agent: str, turn: Turn, *, conversation: str = MAIN) -> LoadOutcome:
        """Load the skills that a turn triggers, and unload those that only earlier turns triggered."""
        return await self.session(agent, conversation).follow(turn)

    async def suggest_skills(self, query: str, agent: str = "", *, limit: int = SUGGESTED) -> list[SkillSuggestion]:
        """Return the skills that match a query, best first; none if no match is close.

        Only skills that the agent may load count, without withheld ones. Raises ValidationError for an unknown agent.
        """
        check_text("query", query)
        check_count("limit", limit)
        names = self._loadable(get_agent(self.manifest, agent) if agent else AgentSpec(name=""))
        finder = self._finder or await self._open_index()
        return await finder.suggest(query, among=names, limit=limit)

    async def get_prompt(
        self,
        agent: str,
        *,
        conversation: str = MAIN,
        include: Sections = DEFAULT,
        variables: Mapping[str, Value] | None = None,
        query: str = "",
    ) -> AgentPrompt:
        """Return the current system prompt. With a query, it names skills that may help; the variables SUGGESTED_SKILLS
        and SKILL_HINTS have them too.

        Raises ValidationError for an unknown agent and for variables that are not text, BuildError if a provider of
        tools fails.
        """
        check_type("include", include, Sections, "Sections")
        check_text("query", query)
        definition, session = get_agent(self.manifest, agent), self.session(agent, conversation)
        standing = await session.standing()
        names, hints = await self._hints(query, agent, standing.state)
        values = self._variables.resolve({"SUGGESTED_SKILLS": names, "SKILL_HINTS": hints}, variables)
        about = (standing, include, hints, tuple(sorted(values.items())), self._withheld())
        if (known := self._prompts.find((about, self.registry.version))) is not None:
            return known
        prompt = build_prompt(
            definition,
            self.manifest,
            standing.state,
            {name: tool.description for name, tool in session.view(standing.state).items()},
            include=include,
            loadable=self._loadable(definition),
            hints=hints,
            untold=standing.untold,
            values=values,
        )
        return self._prompts.keep((about, self.registry.version), prompt)  # a provider that ran changed the version

    async def reinject(self, agent: str, *, conversation: str = MAIN) -> str:
        """Return the texts of all skills and toolsets that the agent loaded, for a context that lost them by
        compaction.

        Empty if the agent loaded nothing. The prompt always has the skills that loaded automatically, or that the
        program loaded.
        """
        definition = get_agent(self.manifest, agent)
        state, untold = await self.session(agent, conversation).standing()
        here = [self.manifest.skills[name] for name in state.discovered_skills if name not in untold]
        later = [skill for skill in here if not is_initial(skill, definition)]
        whole = Sections(skill_content=True, toolset_content=True)
        alone = standalone_toolsets(state, self.manifest)
        return self.render(loaded_section(later, self.manifest, whole, alone=alone))

    def render(self, text: str) -> str:
        """Return a text of a skill or toolset with its variables put in."""
        check_text("text", text)
        if "{{" not in text:
            return text
        values = self._variables.resolve()
        key = (text, tuple(sorted(values.items())))
        return self._texts.find_or_make(key, lambda: inject(text, values))

    def _with_tools(self, tools: Iterable[Tool]) -> Self:
        """Register each tool in the toolsets that list it."""
        for tool in tools:
            homes = [toolset for toolset, about in self.manifest.toolsets.items() if tool.name in about.tools]
            for toolset in homes or [UNLISTED]:
                self.registry.register(toolset, [tool])
        return self

    def _open(self, agent: str, conversation: str) -> AgentSession:
        return AgentSession(
            self.manifest,
            self.registry,
            self._exposures,
            by=Principal(owner_id=self._owner, agent_id=agent, session=conversation, roles=ROLES),
            agent=agent,
            clock=self._clock,
            max_skills=self._max_skills,
            when_full=self._when_full,
            withhold=self._withhold,
            render=self.render,
            toolset_notes=self._toolset_notes,
        )

    async def _open_index(self) -> SkillFinder:
        """Return an index of the current manifest, in memory."""
        async with self._indexing:
            if self._index is None:
                from clew.skills.discovery.memory_index import open_index  # the embedder takes 0.3 s to load

                self._index = await open_index(self.manifest)
            elif self._index.manifest is not self.manifest:
                await self._index.use(self.manifest)
            return self._index

    def _loadable(self, agent: AgentSpec) -> tuple[str, ...]:
        """Return the names of the skills that an agent may load now."""
        withheld = self._withheld()
        names = loadable_skills(LoadTerms(manifest=self.manifest, agent=agent))
        return tuple(name for name in names if name not in withheld)

    def _withheld(self) -> frozenset[str]:
        if self._withhold is withhold_nothing:
            return frozenset()
        return frozenset(name for name, skill in self.manifest.skills.items() if self._withhold(skill))

    async def _hints(self, query: str, agent: str, state: SessionState) -> tuple[list[str], str]:
        found = await self.suggest_skills(query, agent) if query.strip() else []
        names = [each.skill for each in found if each.skill not in state.discovered_skills]
        return names, f"Skills that may help with this: {', '.join(names)}." if names else ""


def _is_project(place: Path) -> bool:
    return (place / FOLDER).is_dir() or not any((place / name).is_dir() for name in DEFINED)
