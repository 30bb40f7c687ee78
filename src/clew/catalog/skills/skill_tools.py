"""The tools of the domain `skills`: find, load and unload skills, read their references."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from clew.access import Principal
from clew.catalog.registry import DomainRegistry
from clew.catalog.skills.loaded_skills import LoadedSkills, first_skills
from clew.catalog.skills.references import OwnReferences, find_reference
from clew.catalog.skills.routes import FIND, LIST, LOAD, REFERENCE, UNLOAD
from clew.catalog.skills.skill_text import (
    MAX_STEPS,
    describe,
    show_change,
    show_files,
    show_first,
    show_list,
    show_tools,
)
from clew.fences import fenced
from clew.skills.discovery.skill_records import reference_path
from clew.skills.discovery.skill_search import SkillSearch
from clew.skills.manifest import Skill, SkillLink
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.sessions.loads import check_skill, check_withheld, loadable_skills
from clew.skills.sessions.session import brought_by
from clew.tools import Guidance, GuidedContent, guide

NOTHING = "No skill here is close to that. Say it in other words, or look at all of them."
NEAREST = "No skill here is close to that. The nearest, which may be meant:"
MAX_NEAREST = 2


class SkillTools:
    """The functions behind the tools of the domain."""

    def __init__(self, loaded: LoadedSkills, registry: DomainRegistry, search: SkillSearch) -> None:
        self.loaded = loaded
        self._references = OwnReferences(loaded.definitions.source.root)
        self._registry = registry
        self._search = search

    async def find(self, need: str, limit: int, by: Principal, handle: str) -> GuidedContent:
        """The skills that fit a need, the best first, and how each is loaded. If none is close, says so and names the
        nearest ones."""
        terms = self.loaded.terms(by)
        names = loadable_skills(terms)
        found = [each.skill for each in await self._search.find_skills(need, names, limit, by=by)]
        steps = [_step_to(*each) for each in await self._search.find_references(need, names, limit, by=by)]
        head: list[str] = []
        if not found and not steps:
            found = await self._search.find_nearest(need, names, min(limit, MAX_NEAREST), by=by)
            if not found:
                return GuidedContent(content=NOTHING, guidance=(guide(LIST, "all skills that there are"),))
            head = [NEAREST, ""]
        here = await self._here(by, handle)
        skills = [terms.manifest.skills[name] for name in found]
        shown = [describe(each, is_loaded=each.name in here, withheld=terms.withhold(each)) for each in skills]
        open_ones = [each for each in skills if each.name not in here and not terms.withhold(each)]
        loads = [guide(LOAD, f"load {each.name}: its instructions and tools", skill=each.name) for each in open_ones]
        return GuidedContent(content="\n".join((*head, *shown)), guidance=[*loads, *steps, guide(LIST, "all skills")])

    async def list_all(self, by: Principal, handle: str) -> GuidedContent:
        """Every skill that the caller may load, within a number of tokens, without their texts."""
        terms, here = self.loaded.terms(by), await self._here(by, handle)
        skills = [terms.manifest.skills[name] for name in loadable_skills(terms)]
        steps = [guide(UNLOAD, f"unload {name} when it is no longer needed", skill=name) for name in here[:MAX_STEPS]]
        steps += [guide(FIND, "the skills for one need"), guide(LOAD, "load one of these by its name")]
        return GuidedContent(content=show_list(skills, here, terms.withhold), guidance=steps)

    async def load_skill(self, name: str, by: Principal, handle: str) -> GuidedContent:
        """Load a skill, and with it those that the caller starts with and does not have yet. Raises ValidationError
        if there is none, or the caller may not load it."""
        session = self.loaded.session(by, handle)
        terms = session.terms
        first = [each for each in first_skills(terms, await session.exposure()) if each != name]
        done = await session.load_skills([name, *first], by=LOAD)
        brought = list(brought_by(terms.manifest, name, terms.withhold))
        chains = [brought, *(brought_by(terms.manifest, each, terms.withhold) for each in first)]
        skills = [terms.manifest.skills[each] for each in dict.fromkeys(each for chain in chains for each in chain)]
        parts = [
            show_change(f"skill {name}", done, "is loaded" if done.is_changed else "was loaded already"),
            f"It brings the skills {', '.join(brought[1:])}." if brought[1:] else "",
            session.skill_content(name),
            *(show_files(each) for each in skills),
            *(show_first(each, session.skill_content(each)) for each in first),
            *self._tools(dict.fromkeys(each for skill in skills for each in skill.toolsets), by, session),
        ]
        steps = [step for skill in skills for step in _reference_steps(skill)][:MAX_STEPS]
        steps.append(guide(UNLOAD, "unload it when it is no longer needed", skill=name))
        return GuidedContent(content="\n\n".join(filter(None, parts)), guidance=steps)

    async def load_toolset(self, name: str, by: Principal, handle: str) -> GuidedContent:
        """Load one toolset by itself. Raises as `load_skill`."""
        session = self.loaded.session(by, handle)
        done = await session.load_toolset(name, by=LOAD)
        parts = [
            show_change(f"toolset {name}", done, "is loaded" if done.is_changed else "was loaded already"),
            session.terms.manifest.toolsets[name].description,
            session.toolset_content(name),
            *self._tools([name], by, session),
        ]
        step = guide(UNLOAD, "unload it when it is no longer needed", toolset=name)
        return GuidedContent(content="\n\n".join(filter(None, parts)), guidance=(step,))

    async def unload(self, skill: str, toolset: str, by: Principal, handle: str) -> GuidedContent:
        """Unload a skill or a toolset. Tools of other loaded skills stay. Raises ValidationError."""
        session = self.loaded.session(by, handle)
        if skill:
            done = await session.unload_skill(skill, by=UNLOAD)
        else:
            done = await session.unload_toolset(toolset, by=UNLOAD)
        what = f"skill {skill}" if skill else f"toolset {toolset}"
        content = show_change(what, done, "is unloaded" if done.is_changed else "was not loaded by itself")
        return GuidedContent(content=content, guidance=(guide(FIND, "a skill for the next need"),))

    async def unload_all(self, by: Principal, handle: str) -> GuidedContent:
        """Unload everything. The skills that an agent starts with come back with the next load."""
        tokens = await self.loaded.reset(by, handle)
        content = f"All skills are unloaded, which took about {tokens:,} tokens."
        return GuidedContent(content=content, guidance=(guide(FIND, "a skill for the next need"),))

    async def reference(self, name: str, wanted: str, by: Principal) -> GuidedContent:
        """The text of a reference, a script or an asset as it is now. Raises ValidationError if it is unknown or the
        skill has changed since the user agreed to it, and FormatError if it cannot be read."""
        await self.loaded.definitions.refresh()
        terms = self.loaded.terms(by)
        check_skill(terms, name)
        check_withheld(terms, name)
        skill = terms.manifest.skills[name]
        if wanted in (*skill.scripts, *skill.assets):
            return GuidedContent(content=fenced(await asyncio.to_thread(self._references.read_file, skill, wanted), ""))
        found = find_reference(skill, wanted)
        text = await asyncio.to_thread(self._references.read, skill, found)
        this = _step_to(skill, found)
        others = [step for step in _reference_steps(skill) if step.params != this.params]
        return GuidedContent(content=text, guidance=others[:MAX_STEPS])

    def _tools(self, toolsets: Iterable[str], by: Principal, session: AgentSession) -> list[str]:
        manifest = session.terms.manifest
        known = [manifest.toolsets[name] for name in toolsets if name in manifest.toolsets]
        return show_tools(dict.fromkeys(tool for each in known for tool in each.tools), self._registry, by)

    async def _here(self, by: Principal, handle: str) -> Sequence[str]:
        return self.loaded.state(await self.loaded.session(by, handle).exposure()).discovered_skills


def _reference_steps(skill: Skill) -> list[Guidance]:
    files = (*skill.scripts, *skill.assets)
    steps = [guide(REFERENCE, f"read {each} ({skill.name})", skill=skill.name, path=each) for each in files]
    return [*(_step_to(skill, each) for each in skill.references), *steps]


def _step_to(skill: Skill, reference: SkillLink) -> Guidance:
    return guide(REFERENCE, f"{reference.text} ({skill.name})", skill=skill.name, path=reference_path(reference))
