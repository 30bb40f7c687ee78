"""The system prompt of an agent: optional sections in a fixed order. Variables are inserted last. Each skill and tool
is named at the beginning of a line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from clew.skills.arguments import check_choice, check_count
from clew.skills.catalogue import BUDGET, build_catalogue, head, one_line
from clew.skills.manifest import ONLY_BY_NAME, AgentSpec, Manifest, Skill, Toolset
from clew.skills.sessions.session import SessionState
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


SECTIONS = ("agent", "initial_skills", "catalogue", "instructions", "loaded_skills", "tools", "hints")


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """Which sections a prompt has. `skill_content` puts the whole texts of all loaded skills into it, as is needed
    where the messages that brought them are gone; those of skills that came by themselves, or that the program loaded,
    are there anyway.

    Raises ValidationError for a section that is neither always, never nor auto.
    """

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

    def __post_init__(self) -> None:
        for name in SECTIONS:
            check_choice(name, getattr(self, name), get_args(Include))
        check_count("catalogue_tokens", self.catalogue_tokens)


DEFAULT = Sections()


class AgentPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, and its sections by name in their order."""

    content: str
    sections: dict[str, str]


def build_prompt(
    agent: AgentSpec,
    manifest: Manifest,
    state: SessionState,
    tools: Mapping[str, str],
    *,
    include: Sections = DEFAULT,
    loadable: Sequence[str] = (),
    hints: str = "",
    untold: Collection[str] = (),
    values: Mapping[str, str] | None = None,
    instructions: str = INSTRUCTIONS,
) -> AgentPrompt:
    """Return the prompt of an agent in a state. The same arguments always give the same text.

    `tools` has the descriptions of the tools that can run, by name. `loadable` are the skills that the agent may load;
    those of the third tier are not offered. `untold` are loaded skills whose texts no message has. `instructions` say
    how skills are loaded.
    """
    here = [manifest.skills[name] for name in state.discovered_skills if name in manifest.skills]
    first = [skill for skill in here if is_initial(skill, agent)]
    later = [skill for skill in here if not is_initial(skill, agent)]
    known = {skill.name for skill in here}
    alone = toolsets_alone(state, manifest)
    open_still = [manifest.skills[name] for name in loadable if name in manifest.skills and name not in known]
    offered = [skill for skill in open_still if skill.tier != ONLY_BY_NAME]
    parts: dict[str, tuple[Include, str]] = {
        "agent": (include.agent, agent.prompt.strip()),
        "initial_skills": (include.initial_skills, initial_section(first)),
        "catalogue": (include.catalogue, _below(CATALOGUE, build_catalogue(offered, include.catalogue_tokens))),
        "instructions": (include.instructions, instructions if open_still or include.instructions == "always" else ""),
        "hints": (include.hints, hints.strip()),
        "loaded_skills": (include.loaded_skills, loaded_section(later, manifest, include, untold, alone)),
        "tools": (include.tools, tools_section(state, tools)),
    }
    sections = {name: text for name, (when, part) in parts.items() if (text := _decide(name, when, part))}
    injected = {name: inject(text, values or {}) for name, text in sections.items()}
    return AgentPrompt(content="\n\n".join(injected.values()), sections=injected)


def is_initial(skill: Skill, agent: AgentSpec) -> bool:
    """Whether an agent starts with a skill."""
    return skill.tier == 1 or skill.name in agent.initial_skills


def initial_section(skills: Sequence[Skill]) -> str:
    """The skills that an agent begins with, with their whole texts; empty without any."""
    return _below(INITIAL, "\n\n".join(_with_content(skill) for skill in skills))


def toolsets_alone(state: SessionState, manifest: Manifest) -> list[Toolset]:
    """The toolsets that were loaded by themselves: no skill of the state brings them."""
    skills = [manifest.skills[name] for name in state.discovered_skills if name in manifest.skills]
    brought = {name for skill in skills for name in skill.toolsets}
    return [manifest.toolsets[name] for name in state.loaded_toolsets if name not in brought]


def loaded_section(
    skills: Sequence[Skill],
    manifest: Manifest,
    include: Sections = DEFAULT,
    untold: Collection[str] = (),
    alone: Sequence[Toolset] = (),
) -> str:
    """The skills that were loaded since, each with the toolsets that it brought, then the toolsets that were loaded
    alone; empty without any. The skills that are `untold` have their texts in any case."""
    lines = []
    for skill in skills:
        line = _with_content(skill) if include.skill_content or skill.name in untold else head(skill)
        toolsets = [manifest.toolsets[name] for name in skill.toolsets if name in manifest.toolsets]
        lines.append(_with_toolsets(line, "\n  Toolsets: ", toolsets, include))
    lines += [_with_toolsets("", "- Toolsets without a skill: ", alone, include)] if alone else []
    return _below(LOADED, "\n".join(lines))


def tools_section(state: SessionState, tools: Mapping[str, str]) -> str:
    """The exposed tools that can run and have a description; empty without any."""
    told = [(name, one_line(tools[name])) for name in state.exposed_domain_tools if name in tools]
    return _below(TOOLS, "\n".join(f"- **{name}**: {about}" for name, about in told if about))


def _with_content(skill: Skill) -> str:
    return f"{head(skill)}\n\n{skill.content.strip()}" if skill.content.strip() else head(skill)


def _with_toolsets(line: str, label: str, toolsets: Sequence[Toolset], include: Sections) -> str:
    if toolsets:
        line += f"{label}{', '.join(toolset.name for toolset in toolsets)}"
    notes = [toolset.content.strip() for toolset in toolsets if include.toolset_content]
    return "\n\n".join([line, *filter(None, notes)])


def _below(heading: str, text: str) -> str:
    return f"{heading}\n\n{text}" if text else ""


def _decide(name: str, when: Include, text: str) -> str:
    if when == "never":
        return ""
    if text or when == "auto":
        return text
    return _below(_HEADINGS[name], _NOTHING) if name in _HEADINGS else ""
