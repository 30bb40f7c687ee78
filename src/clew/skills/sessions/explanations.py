"""Explains why an agent has or does not have a tool, a toolset or a skill: every cause, in sentences."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import msgspec

from clew.skills.exposure import Exposed, Exposure
from clew.skills.manifest import Skill
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.skills.sessions.diagnosis import NOWHERE, list_homes
from clew.skills.sessions.loads import LoadTerms, loadable_skills, loadable_toolsets, skills_bringing
from clew.skills.sessions.session import SKILL, TOOLSET, SessionState, brought_by, cost_of, derive

_AUTOMATIC = "It is of tier 1: it loads automatically when a session begins, over MCP with the first load."


class ExposureReasons(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a name. `reasons` are sentences, the decisive one first. `tokens` is its cost. `causes` are
    the items of the exposure set that led to it."""

    name: str
    kind: str
    is_here: bool
    reasons: tuple[str, ...]
    tokens: int = 0
    causes: tuple[Exposed, ...] = ()


def explain(
    name: str, exposure: Exposure, terms: LoadTerms, registry: ToolRegistry, provided: Collection[str] = ()
) -> ExposureReasons:
    """Explain a name: of a tool, else of a skill, else of a toolset. `skill:NAME` and `toolset:NAME` select the kind.
    No provider of tools runs."""
    explaining = _Explainer(exposure, terms, registry, provided)
    if name.startswith(SKILL):
        return explaining.skill(name.removeprefix(SKILL))
    if name.startswith(TOOLSET):
        return explaining.toolset(name.removeprefix(TOOLSET))
    if name in META_TOOLS:
        reasons = ("It is a meta-tool: every agent has it at all times.",)
        return ExposureReasons(name=name, kind="tool", is_here=True, reasons=reasons)
    if explaining.is_tool(name):
        return explaining.tool(name)
    if name in terms.manifest.skills:
        return explaining.skill(name)
    return explaining.toolset(name) if name in terms.manifest.toolsets else explaining.tool(name)


class _Explainer:
    """Explains the names of one session."""

    def __init__(self, exposure: Exposure, terms: LoadTerms, registry: ToolRegistry, provided: Collection[str]) -> None:
        self._exposure = exposure
        self._terms = terms
        self._manifest = terms.manifest
        self._registry = registry
        self._provided = provided
        self._state = derive(terms.manifest, terms.agent.name, exposure.items, terms.withhold)
        self._homes = list_homes(terms.manifest.toolsets)

    def is_tool(self, name: str) -> bool:
        is_brought = name in self._provided or bool(self._registry.toolsets_of(name))
        return name in self._homes or name in self._manifest.tools or is_brought

    def skill(self, name: str) -> ExposureReasons:
        item, is_here = f"{SKILL}{name}", name in self._state.discovered_skills
        skill = self._manifest.skills.get(name)
        if skill is None:
            reasons = [f"No definition names a skill {name}.{_near(name, self._manifest.skills)}"]
            return ExposureReasons(name=name, kind="skill", is_here=False, reasons=(*reasons, *self._history(item)))
        if withheld := self._terms.withhold(skill):
            reasons = [f"Skill {name} is withheld: {withheld}."]
            return ExposureReasons(name=name, kind="skill", is_here=False, reasons=(*reasons, *self._history(item)))
        bringing = skills_bringing(self._exposure.items, self._terms, skill=name)
        reasons = [*self._history(item)] if item in self._exposure.items else []
        reasons += [line for each in bringing for line in self._brought(f"Skill {name}", each)]
        if not is_here:
            reasons = [f"Skill {name} is not loaded.", *self._history(item), *self._how_to_load(skill)]
        causes = self._causes(item, *(f"{SKILL}{each}" for each in bringing))
        return self._answer(name, "skill", is_here, reasons, self._cost(item), causes)

    def toolset(self, name: str) -> ExposureReasons:
        item, is_here = f"{TOOLSET}{name}", name in self._state.loaded_toolsets
        if name not in self._manifest.toolsets:
            reasons = [f"No definition names a toolset {name}.{_near(name, self._manifest.toolsets)}"]
            return ExposureReasons(name=name, kind="toolset", is_here=False, reasons=(*reasons, *self._history(item)))
        bringing = skills_bringing(self._exposure.items, self._terms, toolset=name)
        reasons = [*self._history(item)] if item in self._exposure.items else []
        reasons += [line for each in bringing for line in self._brought(f"Toolset {name}", each)]
        if not is_here:
            reasons = [f"Toolset {name} is not loaded.", *self._history(item), *self._how_to_bring(name)]
        causes = self._causes(item, *(f"{SKILL}{each}" for each in bringing))
        return self._answer(name, "toolset", is_here, reasons, self._cost(item), causes)

    def tool(self, name: str) -> ExposureReasons:
        home = self._homes.get(name, NOWHERE)
        if not home.toolsets:
            reasons = [f"No toolset lists a tool {name}.{_near(name, self._homes)}"]
            return ExposureReasons(name=name, kind="tool", is_here=False, reasons=tuple(reasons))
        told = {toolset: self.toolset(toolset) for toolset in home.toolsets}
        lacking = [self._missing_implementation(home.tool, each) for each in home.toolsets if told[each].is_here]
        reasons = [line for each in lacking for line in each]
        for toolset, why in told.items():
            reasons += [f"Toolset {toolset} lists it.", *why.reasons]
        if len(home.toolsets) > 1:
            names = ", ".join(f"{toolset}.{home.tool}" for toolset in home.toolsets)
            reasons.append(f"The qualified names are {names}; the short name is the tool of the toolset loaded last.")
        causes = [cause for why in told.values() for cause in why.causes]
        cost = cost_of(self._manifest, SessionState(agent_name="", exposed_domain_tools=(home.tool,)))
        return self._answer(name, "tool", any(not each for each in lacking), reasons, cost, causes)

    def _answer(
        self, name: str, kind: str, is_here: bool, reasons: Iterable[str], tokens: int, causes: Iterable[Exposed]
    ) -> ExposureReasons:
        once = {each.item: each for each in causes}
        return ExposureReasons(
            name=name,
            kind=kind,
            is_here=is_here,
            reasons=tuple(dict.fromkeys(reasons)),
            tokens=tokens,
            causes=tuple(once.values()),
        )

    def _history(self, item: str) -> list[str]:
        """Describe when and why an item was loaded, and how its last load ended."""
        kind, _, name = item.partition(":")
        told = []
        if (exposed := self._exposure.find(item)) is not None:
            until = f" It ends at {exposed.until:%Y-%m-%d %H:%M:%S} UTC." if exposed.until is not None else ""
            by = f" by {exposed.by}" if exposed.by else ""
            why = f": {exposed.why}" if exposed.why else ""
            came = f"came at {exposed.since:%Y-%m-%d %H:%M:%S} UTC via {exposed.via}{by}{why}"
            told.append(f"{kind.capitalize()} {name} {came}.{until}")
        ended = [each for each in self._exposure.ended if each.item == item]
        if ended:
            last = ended[-1]
            by = f" by {last.ended_by}" if last.ended_by else ""
            told.append(f"{kind.capitalize()} {name} left at {last.until:%Y-%m-%d %H:%M:%S} UTC{by}: {last.reason}.")
        return told

    def _brought(self, what: str, skill: str) -> list[str]:
        return [f"{what} comes with skill {skill}.", *self._history(f"{SKILL}{skill}")]

    def _how_to_load(self, skill: Skill) -> list[str]:
        if skill.name in loadable_skills(self._terms):
            return [f"loadSkill loads {skill.name}.", *([_AUTOMATIC] if skill.tier == 1 else [])]
        return [f"Agent {self._terms.agent.name} may not load {skill.name}: it is not one of its skills."]

    def _how_to_bring(self, toolset: str) -> list[str]:
        skills = [each for each in loadable_skills(self._terms) if self._has(each, toolset)]
        if skills:
            return [f"loadSkill brings it with {' or '.join(skills)}."]
        if toolset in loadable_toolsets(self._terms):
            return [f"No skill brings it; loadToolset loads {toolset}."]
        return [f"No skill of agent {self._terms.agent.name} brings it."]

    def _has(self, skill: str, toolset: str) -> bool:
        brought = brought_by(self._manifest, skill, self._terms.withhold)
        return any(toolset in self._manifest.skills[each].toolsets for each in brought)

    def _missing_implementation(self, tool: str, toolset: str) -> list[str]:
        """Report a tool of a loaded toolset without an implementation, as far as is known without running a
        provider."""
        owners = self._registry.toolsets_of(tool)
        is_provided = tool in self._provided or f"{toolset}.{tool}" in self._provided
        is_registered = toolset in owners or any(owner not in self._manifest.toolsets for owner in owners)
        if is_provided or is_registered or self._registry.is_waiting(toolset):
            return []
        return [f"It has no implementation: no {tool} is registered in toolset {toolset}."]

    def _causes(self, *items: str) -> list[Exposed]:
        return [found for item in items if (found := self._exposure.find(item)) is not None]

    def _cost(self, item: str) -> int:
        return cost_of(self._manifest, derive(self._manifest, "", [item], self._terms.withhold))


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:80], list(known), n=1)
    return f" {near[0]} is spelled alike." if near else ""
