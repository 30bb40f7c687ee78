"""One agent in one conversation: its loaded skills, the tools that follow, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.decode_errors import suggest
from clew.errors import HandleRefused, ValidationError
from clew.skills.arguments import check_text, check_texts, check_time, check_type
from clew.skills.exposure import Edit, Exposure, Exposures, Items, Via, check_handle, mint_handle, remove_all
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.registry import ToolRegistry, check_tools
from clew.skills.sessions.audit import SkillLoadEvent, load_events
from clew.skills.sessions.explanations import ExposureReasons, explain
from clew.skills.sessions.loads import (
    MAX_SKILLS,
    LoadRecord,
    LoadTerms,
    WhenFull,
    begin,
    check_toolset,
    follow,
    load_skills,
    load_toolset,
    loadable_skills,
    skills_bringing,
    unload_skill,
    unload_toolset,
)
from clew.skills.sessions.meta_tools import meta_tools
from clew.skills.sessions.session import (
    AGENT,
    AUTO_LOAD,
    SessionState,
    Withhold,
    brought_by,
    cost_of,
    derive,
    skills_without_message,
    withhold_nothing,
)
from clew.skills.sessions.tool_mapping import ExposedTools
from clew.skills.triggers import TriggeredSkill, Turn, match
from clew.tools.tool import Tool

UNLOADED = "unloaded"
"""The reason recorded for an unload by name."""


class LoadOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome of a load or unload: the new state, and the estimated tokens after and before.

    `ended` are the removed items: unloaded, or evicted from a full session. `kept_by` are the loaded skills that still
    need an unloaded item.
    """

    state: SessionState
    is_changed: bool
    tokens_before: int
    tokens_after: int
    ended: tuple[str, ...] = ()
    kept_by: tuple[str, ...] = ()


class SessionStanding(NamedTuple):
    """An agent's state, and its skills whose texts are in no message yet."""

    state: SessionState
    untold: tuple[str, ...]


def _identity(text: str) -> str:
    return text


class AgentSession:
    """The session of an agent. It begins with the agent's initial skills at its first use. The principal's session or
    `handle` identifies it. Its exposure set belongs to the agent: without a handle, `by` acts as that agent.

    `render` prepares the text of a skill or toolset for the agent; with `toolset_notes`, the text of a skill includes
    those of its toolsets. Without `brings`, the initial skills load only by name, for interfaces that show a text only
    then. Raises ValidationError for an agent that the manifest does not define.
    """

    def __init__(
        self,
        manifest: Manifest,
        registry: ToolRegistry,
        sets: Exposures,
        *,
        by: Principal,
        agent: str,
        clock: Clock,
        handle: str | None = None,
        max_skills: int = MAX_SKILLS,
        when_full: WhenFull = "refuse",
        withhold: Withhold = withhold_nothing,
        render: Callable[[str], str] = _identity,
        toolset_notes: bool = False,
        brings: bool = True,
    ) -> None:
        self.terms = LoadTerms(
            manifest=manifest,
            agent=get_agent(manifest, agent),
            max_skills=max_skills,
            when_full=when_full,
            withhold=withhold,
        )
        self._registry = registry
        self._sets = sets
        self._by = by if handle is not None else msgspec.structs.replace(by, agent_id=agent)
        self._clock = clock
        named = check_handle(handle, by)
        self.handle = named or mint_handle()
        self._is_new = named is None
        self._render = render
        self._toolset_notes = toolset_notes
        self._brings = brings
        self._meta = meta_tools(self)
        self._derived: tuple[Items, SessionStanding] = ({}, SessionStanding(SessionState(agent_name=agent), ()))
        self._viewed: tuple[tuple[SessionState, int], ExposedTools] | None = None

    async def load_skill(
        self, name: str, *, by: str = "", via: Via = "load", why: str = "", until: datetime | None = None
    ) -> LoadOutcome:
        """Load a skill and its dependencies. Loading it again changes nothing. Raises the errors of
        `loads.load_skills`."""
        return await self.load_skills([name], by=by, via=via, why=why, until=until)

    async def load_skills(
        self, names: Sequence[str], *, by: str = "", via: Via = "load", why: str = "", until: datetime | None = None
    ) -> LoadOutcome:
        """Load all of these skills, or none. Raises the errors of `loads.load_skills`."""
        check_texts("names", names)
        check_time("until", until)
        stamp = LoadRecord(since=self._clock.now(), via=via, why=why, by=by, until=until)
        full = f"over the limit of {self.terms.max_skills} skills"
        done, _ = await self._change(lambda items: load_skills(items, names, self.terms, stamp), by=by, reason=full)
        return done

    async def load_toolset(
        self, name: str, *, by: str = "", via: Via = "load", why: str = "", until: datetime | None = None
    ) -> LoadOutcome:
        """Load a toolset without a skill. Raises the errors of `loads.load_toolset`."""
        check_text("name", name)
        check_time("until", until)
        stamp = LoadRecord(since=self._clock.now(), via=via, why=why, by=by, until=until)
        done, _ = await self._change(lambda items: load_toolset(items, name, self.terms, stamp), by=by)
        return done

    async def unload_skill(self, name: str, *, by: str = "", reason: str = UNLOADED) -> LoadOutcome:
        """Unload a skill. Dependencies of other loaded skills stay. Raises ValidationError for an unknown skill."""
        check_text("name", name)
        done, items = await self._change(lambda items: unload_skill(items, name, self.terms), by=by, reason=reason)
        return msgspec.structs.replace(done, kept_by=skills_bringing(items, self.terms, skill=name))

    async def unload_toolset(self, name: str, *, by: str = "", reason: str = UNLOADED) -> LoadOutcome:
        """Unload a toolset that was loaded without a skill. Raises ValidationError for an unknown toolset."""
        check_text("name", name)
        done, items = await self._change(lambda items: unload_toolset(items, name, self.terms), by=by, reason=reason)
        return msgspec.structs.replace(done, kept_by=skills_bringing(items, self.terms, toolset=name))

    def triggered(self, turn: Turn) -> list[TriggeredSkill]:
        """Return the skills that a turn of the conversation triggers, by priority."""
        check_type("turn", turn, Turn, "a Turn")
        manifest = self.terms.manifest
        return match([manifest.skills[name] for name in loadable_skills(self.terms)], turn)

    async def follow(self, turn: Turn, *, refused: Collection[str] = ()) -> LoadOutcome:
        """Load the skills that a turn triggers, except the `refused` ones, and unload those that only earlier turns
        triggered."""
        now, matched = self._clock.now(), [each for each in self.triggered(turn) if each.skill not in refused]
        edit = partial(follow, matched=matched, terms=self.terms, since=now)
        done, _ = await self._change(edit, by="turn", reason="the conversation moved on")
        return done

    async def reset(self, *, by: str = "") -> None:
        """End the session. The next use begins a new one. The audit stays."""
        exposure = await self.exposure()
        if exposure.items:
            await self._sets.change(exposure, remove_all, by=self._by, ended_by=by or self._by.agent_id, reason="reset")

    async def state(self) -> SessionState:
        """Return the state. Begins the session."""
        return (await self.standing()).state

    async def standing(self) -> SessionStanding:
        """Return the state, and the skills whose texts are in no message yet. Begins the session."""
        return self._derive((await self._begun()).items)

    async def find_state(self) -> SessionState | None:
        """Return the state, or None if the session has not begun."""
        items = (await self.exposure()).items
        return self._derive(items).state if self._mark in items else None

    async def get_tools(
        self, tools: Iterable[Tool] | Mapping[str, Tool] | None = None, auto_load_skills: Sequence[str] = ()
    ) -> ExposedTools:
        """Return the meta-tools and the exposed tools; `tools` are added for this call only. Raises ValidationError for
        an object that is not a tool and for a reserved name, and the errors of `load_skills`."""
        provided = check_tools(tools, "tools") if tools is not None else {}
        check_texts("auto_load_skills", auto_load_skills)
        if auto_load_skills:
            await self.load_skills(auto_load_skills, by=AUTO_LOAD, why="loaded before the first call")
        state = await self.state()
        return self.view(state) if not provided else self._merge(state, provided)

    def view(self, state: SessionState) -> ExposedTools:
        """Return the tools of a state. The result is cached until the state or the registry changes."""
        key = (state, self._registry.version)
        if self._viewed is None or self._viewed[0] != key:
            self._viewed = (key, self._merge(state, {}))
        return self._viewed[1]

    async def why(self, name: str, *, provided: Collection[str] = ()) -> ExposureReasons:
        """Explain why a tool, skill or toolset is or is not available, with every cause. Begins the session."""
        check_text("name", name)
        return explain(name, await self._begun(), self.terms, self._registry, provided)

    async def audit(self) -> list[SkillLoadEvent]:
        """Return the loads and unloads of skills with time and cause, in order, including those before a reset."""
        return load_events(await self.exposure(), self.terms.manifest)

    async def exposure(self) -> Exposure:
        """Return the exposure set. Does not begin the session."""
        try:
            return await self._sets.open(self.handle, by=self._by)
        except HandleRefused:
            if self._is_new:
                return Exposure(handle=self.handle)
            raise

    def skill_content(self, name: str) -> str:
        """Return the texts of a skill and its dependencies, with those of their toolsets if `toolset_notes` is set."""
        check_text("name", name)
        manifest = self.terms.manifest
        skills = [manifest.skills[each] for each in brought_by(manifest, name, self.terms.withhold)]
        texts = [skill.content for skill in skills]
        if self._toolset_notes:
            names = dict.fromkeys(each for skill in skills for each in skill.toolsets if each in manifest.toolsets)
            texts += [manifest.toolsets[each].content for each in names]
        return self._render("\n\n".join(text.strip() for text in texts if text.strip()))

    def toolset_content(self, name: str) -> str:
        """Return the notes of a toolset. Raises ValidationError for one that the agent may not load."""
        check_text("name", name)
        check_toolset(self.terms, name)
        return self._render(self.terms.manifest.toolsets[name].content)

    @property
    def _mark(self) -> str:
        return f"{AGENT}{self.terms.agent.name}"

    def _derive(self, items: Items) -> SessionStanding:
        """Derive the state from items. Cached for the same items unless skills can be withheld."""
        withhold = self.terms.withhold
        if items is not self._derived[0] or withhold is not withhold_nothing:
            state = derive(self.terms.manifest, self.terms.agent.name, items, withhold)
            self._derived = (
                items,
                SessionStanding(state, skills_without_message(self.terms.manifest, items, withhold)),
            )
        return self._derived[1]

    def _merge(self, state: SessionState, provided: Mapping[str, Tool]) -> ExposedTools:
        return ExposedTools(self._meta, state.loaded_toolsets, self.terms.manifest.toolsets, self._registry, provided)

    async def _begun(self) -> Exposure:
        exposure = await self.exposure()
        if self._mark in exposure.items:
            return exposure
        return await self._write(exposure, lambda items: items, "", "")

    async def _change(self, edit: Edit, *, by: str, reason: str = "") -> tuple[LoadOutcome, Items]:
        """Apply an edit; return the change and the new items. Begins the session."""
        before: Items = {}

        def noting(items: Items) -> Items:
            nonlocal before  # the edit may run several times; the last attempt counts
            before = items
            return edit(items)

        after = (await self._write(await self.exposure(), noting, by, reason)).items
        was, state = self._derive(before).state, self._derive(after).state
        done = LoadOutcome(
            state=state,
            is_changed=after != before,
            tokens_before=cost_of(self.terms.manifest, was),
            tokens_after=cost_of(self.terms.manifest, state),
            ended=tuple(item for item in before if item not in after),
        )
        return done, after

    async def _write(self, exposure: Exposure, edit: Edit, by: str, reason: str) -> Exposure:
        now = self._clock.now()
        ended_by = by or self._by.agent_id

        def begun(items: Items) -> Items:
            return edit(begin(items, self.terms, now, brings=self._brings))

        changed = await self._sets.change(exposure, begun, by=self._by, ended_by=ended_by, reason=reason)
        self._is_new = False
        return changed


def get_agent(manifest: Manifest, name: str) -> AgentSpec:
    """Return an agent by name. Raises ValidationError for an unknown one."""
    check_text("agent", name)
    found = manifest.agents.get(name)
    if found is None:
        names = tuple(manifest.agents)
        hint = suggest(name, names, "Agents are")
        raise ValidationError(
            f"unknown agent {name!r}", allowed=names, hint=hint, agentName=name, availableAgents=names
        )
    return found
