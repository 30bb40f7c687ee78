"""The state of a session, derived from its exposure set: skills, toolsets and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import msgspec

from clew.llm.tokens import estimate_tokens
from clew.skills.exposure import Items, is_named
from clew.skills.manifest import Manifest, Skill

SKILL, TOOLSET, AGENT = "skill:", "toolset:", "agent:"
"""Prefixes of the items of an exposure set that are not routes."""

AUTO_LOAD = "autoLoadSkills"
"""The loader recorded for skills that a program loads before the first call."""

LOAD_SKILL = "loadSkill"
"""The loader recorded for skills that the agent loads; the tool's answer has the text."""

MAX_LOAD_DEPTH = 5
"""The limit for levels of dependencies between skills, the first included."""

Withhold = Callable[[Skill], str]
"""Returns the reason why a skill may not load, such as missing trust in its repository; empty if it may."""


class SessionState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An agent's skills, toolsets and tools in a conversation, in the order of loading."""

    agent_name: str
    discovered_skills: tuple[str, ...] = ()
    loaded_toolsets: tuple[str, ...] = ()
    exposed_domain_tools: tuple[str, ...] = ()


def is_skill(item: str) -> bool:
    return is_named(item, ("skill",))


def withhold_nothing(skill: Skill) -> str:
    return ""


def derive(manifest: Manifest, agent: str, items: Iterable[str], withhold: Withhold = withhold_nothing) -> SessionState:
    """Return the state that follows from these items. Unknown and withheld names are ignored.

    Never raises, and calls nothing but `withhold`: the same items always give the same state.
    """
    skills: dict[str, None] = {}
    toolsets: dict[str, None] = {}
    for item in items:
        if is_skill(item):
            for name in brought_by(manifest, item.removeprefix(SKILL), withhold):
                skills[name] = None
                toolsets.update(dict.fromkeys(manifest.skills[name].toolsets))
        elif item.startswith(TOOLSET):
            toolsets[item.removeprefix(TOOLSET)] = None
    loaded = tuple(name for name in toolsets if name in manifest.toolsets)
    return SessionState(
        agent_name=agent,
        discovered_skills=tuple(skills),
        loaded_toolsets=loaded,
        exposed_domain_tools=tuple(dict.fromkeys(tool for name in loaded for tool in manifest.toolsets[name].tools)),
    )


def skills_without_message(manifest: Manifest, items: Items, withhold: Withhold = withhold_nothing) -> tuple[str, ...]:
    """Return the skills whose texts are not in any message: triggered skills, skills that a program loaded, and their
    dependencies. For skills that the agent loaded, the answer of the meta-tool has the text."""
    told = {item for item, each in items.items() if each.via == "load" and each.by == LOAD_SKILL}
    known = set(derive(manifest, "", told, withhold).discovered_skills)
    came = derive(manifest, "", (item for item in items if item not in told), withhold).discovered_skills
    return tuple(name for name in came if name not in known)


def brought_by(manifest: Manifest, name: str, withhold: Withhold = withhold_nothing) -> Iterator[str]:
    """Yield a skill, then its dependencies without duplicates, up to the depth limit."""
    waiting, seen = [(name, 1)], set()
    while waiting:
        name, level = waiting.pop()
        skill = manifest.skills.get(name)
        if skill is None or name in seen or withhold(skill):
            continue
        seen.add(name)
        yield name
        if level < MAX_LOAD_DEPTH:
            waiting.extend((each, level + 1) for each in reversed(skill.skills))


def cost_of(manifest: Manifest, state: SessionState) -> int:
    """Estimate the tokens of a state: the texts of its skills and toolsets, and its tools with their schemas."""
    texts = [manifest.skills[name].content for name in state.discovered_skills]
    texts += [manifest.toolsets[name].content for name in state.loaded_toolsets]
    tools = [manifest.tools[name] for name in state.exposed_domain_tools if name in manifest.tools]
    schemas = [msgspec.json.encode(tool.schema).decode() for tool in tools if tool.schema]
    texts += [f"{tool.name}: {tool.description}" for tool in tools]
    return sum(_tokens(text) for text in (*texts, *schemas))


@lru_cache(maxsize=1_024)
def _tokens(text: str) -> int:
    return estimate_tokens(text)
