"""The system prompt of an agent: optional sections in a fixed order. Variables are inserted last. The name of each
skill and tool begins a line."""

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
"""`auto` includes a section if it has content; `always` includes an empty section too."""

INITIAL, CATALOGUE, LOADED, TOOLS = (
    "## Initial Skills",
    "## Available Skills",
    "## Currently Loaded Skills",
    "## Available Domain Tools",
)
INSTRUCTIONS = """## Loading Skills

Call `loadSkill` with the name of a skill to get its instructions and its tools, and `unloadSkill` when you no longer
need it. `listAvailableSkills` lists the skills."""
_HEADINGS = {"initial_skills": INITIAL, "catalogue": CATALOGUE, "loaded_skills": LOADED, "tools": TOOLS}
_NOTHING = "None."


SECTIONS = ("agent", "initial_skills", "catalogue", "instructions", "loaded_skills", "tools", "hints")


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of a prompt. Raises ValidationError for a value other than always, never or auto.

    `skill_content` includes the texts of all loaded skills, for a context without the messages that had them. The
    prompt always has the texts of skills that loaded automatically, or that the program loaded.
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
    """A prompt, and its sections by name, in order."""

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

    `tools` has the descriptions of executable tools by name. `loadable` are the skills that the agent may load; the
    prompt does not list those of the third tier. `untold` are loaded skills whose texts are not in any message.
    `instructions` explain how to load skills.
    """
    here = [manifest.skills[name] for name in state.discovered_skills if name in manifest.skills]
    first = [skill for skill in here if is_initial(skill, agent)]
    later = [skill for skill in here if not is_initial(skill, agent)]
    known = {skill.name for skill in here}
    alone = standalone_toolsets(state, manifest)
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
    """Return the initial skills with their complete texts; empty if there are none."""
    return _below(INITIAL, "\n\n".join(_with_content(skill) for skill in skills))


def standalone_toolsets(state: SessionState, manifest: Manifest) -> list[Toolset]:
    """Return the loaded toolsets that do not belong to a loaded skill."""
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
    """Return the other loaded skills with their toolsets, then the toolsets that were loaded alone; empty if there are
    none. Skills that are `untold` always have their texts."""
    lines = []
    for skill in skills:
        line = _with_content(skill) if include.skill_content or skill.name in untold else head(skill)
        toolsets = [manifest.toolsets[name] for name in skill.toolsets if name in manifest.toolsets]
        lines.append(_with_toolsets(line, "\n  Toolsets: ", toolsets, include))
    lines += [_with_toolsets("", "- Toolsets without a skill: ", alone, include)] if alone else []
    return _below(LOADED, "\n".join(lines))


def tools_section(state: SessionState, tools: Mapping[str, str]) -> str:
    """Return the exposed tools that are executable and have a description; empty if there are none."""
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
