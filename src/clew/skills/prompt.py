"""The system prompt of an agent: sections in a fixed order, each of which can be left out, with variables put in last.

Names of loaded skills and tools stand at the beginning of a line, so that what a prompt holds can be read back from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from clew.skills.catalogue import BUDGET, build_catalogue, one_line
from clew.skills.manifest import Agent, Manifest, Skill
from clew.skills.session import SessionState
from clew.skills.variables import inject

Include = Literal["always", "never", "auto"]
"""`auto` is when the section would have something to say; `always` says so where there is nothing."""

INITIAL, CATALOGUE, LOADED, TOOLS = (
    "## Initial Skills",
    "## Available Skills",
    "## Currently Loaded Skills",
    "## Available Domain Tools",
)
INSTRUCTIONS = """## Loading Skills

Call `loadSkill` with the name of a skill to get its instructions and its tools, and `unloadSkill` when you no longer
need it. `listAvailableSkills` tells what there is."""
_HEADINGS = {"initial_skills": INITIAL, "catalogue": CATALOGUE, "loaded_skills": LOADED, "tools": TOOLS}
_NOTHING = "None."
_LISTED = re.compile(r"^- \*\*(.+?)\*\*:", re.MULTILINE)


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """Which sections a prompt has. `skill_content` puts the whole text of loaded skills into it, as is needed where
    the messages that brought them are gone."""

    agent: Include = "auto"
    initial_skills: Include = "auto"
    catalogue: Include = "auto"
    instructions: Include = "auto"
    loaded_skills: Include = "auto"
    tools: Include = "auto"
    hints: Include = "auto"
    skill_content: bool = False
    toolset_content: bool = False
    catalogue_tokens: int = BUDGET


DEFAULT = Sections()


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, its sections by name in their order, and the names that it tells of."""

    content: str
    sections: dict[str, str]


def build_prompt(
    agent: Agent,
    manifest: Manifest,
    state: SessionState,
    tools: Mapping[str, str],
    *,
    include: Sections = DEFAULT,
    loadable: Sequence[str] = (),
    hints: str = "",
    values: Mapping[str, str] | None = None,
) -> Prompt:
    """The prompt of an agent in a state. `tools` are the descriptions of what the program can run, by name;
    `loadable` are the skills that the agent may have. The same arguments always give the same text."""
    initial = [manifest.skills[name] for name in agent.initial_skills if name in manifest.skills]
    here = [manifest.skills[name] for name in state.discovered_skills if name in manifest.skills]
    first = {skill.name for skill in initial}
    later = [skill for skill in here if skill.name not in first]
    open_still = [manifest.skills[name] for name in loadable if name in manifest.skills and name not in _names(here)]
    parts: dict[str, tuple[Include, str]] = {
        "agent": (include.agent, agent.prompt.strip()),
        "initial_skills": (include.initial_skills, initial_section([s for s in initial if s in here])),
        "catalogue": (include.catalogue, _below(CATALOGUE, build_catalogue(open_still, include.catalogue_tokens))),
        "instructions": (include.instructions, INSTRUCTIONS if open_still or include.instructions == "always" else ""),
        "hints": (include.hints, hints.strip()),
        "loaded_skills": (include.loaded_skills, loaded_section(later, manifest, include)),
        "tools": (include.tools, tools_section(state, tools)),
    }
    sections = {name: text for name, (when, part) in parts.items() if (text := _decide(name, when, part))}
    injected = {name: inject(text, values or {}) for name, text in sections.items()}
    return Prompt(content="\n\n".join(injected.values()), sections=injected)


def initial_section(skills: Sequence[Skill]) -> str:
    """The skills that an agent begins with, with their whole texts; empty without any."""
    return _below(INITIAL, "\n\n".join(_with_content(skill) for skill in skills))


def loaded_section(skills: Sequence[Skill], manifest: Manifest, include: Sections = DEFAULT) -> str:
    """The skills that were loaded since, each with the toolsets that it brought; empty without any."""
    lines = []
    for skill in skills:
        line = _with_content(skill) if include.skill_content else _head(skill)
        toolsets = [manifest.toolsets[name] for name in skill.toolsets if name in manifest.toolsets]
        if toolsets:
            line += f"\n  Toolsets: {', '.join(toolset.name for toolset in toolsets)}"
        if include.toolset_content:
            line = "\n\n".join([line, *(toolset.content.strip() for toolset in toolsets if toolset.content.strip())])
        lines.append(line)
    return _below(LOADED, "\n".join(lines))


def tools_section(state: SessionState, tools: Mapping[str, str]) -> str:
    """The exposed tools that can be run and say what they do; empty without any."""
    told = [(name, one_line(tools[name])) for name in state.exposed_domain_tools if name in tools]
    return _below(TOOLS, "\n".join(f"- **{name}**: {about}" for name, about in told if about))


def names_in(section: str) -> list[str]:
    """The names that a section tells of, in their order."""
    return _LISTED.findall(section)


def _head(skill: Skill) -> str:
    return f"- **{skill.name}**: {one_line(skill.description)}"


def _with_content(skill: Skill) -> str:
    return f"{_head(skill)}\n\n{skill.content.strip()}" if skill.content.strip() else _head(skill)


def _below(heading: str, text: str) -> str:
    return f"{heading}\n\n{text}" if text else ""


def _decide(name: str, when: Include, text: str) -> str:
    if when == "never":
        return ""
    if text or when == "auto":
        return text
    return _below(_HEADINGS[name], _NOTHING) if name in _HEADINGS else ""


def _names(skills: Sequence[Skill]) -> set[str]:
    return {skill.name for skill in skills}
