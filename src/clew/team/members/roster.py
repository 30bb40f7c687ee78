"""The ten agents as they come with Clew: their definitions, modes and skills, read once from markdown.

A skill names the agents that have it, so an agent's file holds only its prompt, its model and its own tools. A file of
the same name in a folder replaces these; the skills and the mode of the role stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import msgspec

from clew.errors import InvalidInput
from clew.skills.definitions.manifest_builder import build_or_raise
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.team.messages.message_types import AGENTS

ROOT = Path(__file__).parent
"""The folder with `agents/` and `skills/`."""
IN_TREE = {
    "read-file": "engineer_read_file",
    "write-file": "engineer_write_file",
    "edit-file": "engineer_edit_file",
    "preview-edit": "preview_edit",
    "exec": "engineer_run_command",
}
"""Maps tools on the user's checkout to the work tree tools that members get instead."""


class MemberMode(StrEnum):
    """How an agent talks with the user: as the contact in its phase, when asked, or never."""

    PRIMARY = "primary"
    DIRECT = "direct"
    NONE = "none"


class TeamMember(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of the team, with the names of its skills by tier."""

    name: str
    mode: MemberMode
    model: str
    description: str
    core: tuple[str, ...]
    contextual: tuple[str, ...]
    specialised: tuple[str, ...]

    @property
    def may_address_user(self) -> bool:
        return self.mode is not MemberMode.NONE


@lru_cache(maxsize=1)
def shipped_manifest() -> Manifest:
    """The definitions that come with Clew."""
    built = build_or_raise(ROOT)
    agents = {name: _with_role(agent, agent, built.skills) for name, agent in built.agents.items()}
    return msgspec.structs.replace(built, agents=agents)


def team_manifest(agents: Iterable[AgentSpec] = (), skills: Iterable[Skill] = ()) -> Manifest:
    """The definitions that come with Clew, merged with those of a folder. The folder's agents replace agents with the
    same name; its skills are added unless Clew has a skill with the same name."""
    shipped = shipped_manifest()
    own = {each.name: each for each in agents if each.name in AGENTS}
    if not own:
        return shipped
    known = {**{each.name: each for each in skills}, **shipped.skills}
    replaced = {name: _with_role(each, shipped.agents[name], known) for name, each in own.items()}
    return msgspec.structs.replace(shipped, agents={**shipped.agents, **replaced}, skills=known)


@lru_cache(maxsize=1)
def roster() -> dict[str, TeamMember]:
    """The ten members by name."""
    known = shipped_manifest()
    return {name: _member(known.agents[name], known) for name in AGENTS}


def get_member(name: str) -> TeamMember:
    """One member. Raises InvalidInput for another name."""
    if name not in AGENTS:
        hint = f"Members are {', '.join(AGENTS)}"
        raise InvalidInput("agent", f"{name[:50]!r} is not a member of the team", hint=hint)
    return roster()[name]


def require_may_address_user(name: str) -> None:
    """Raises InvalidInput for an agent that never talks with the user."""
    if not get_member(name).may_address_user:
        hint = "Ask with engineer_request_help; the Architect puts the question to the user"
        raise InvalidInput("target", f"the {name} never addresses the user", hint=hint)


def tools_of_member(agent: AgentSpec, manifest: Manifest) -> tuple[str, ...]:
    """All tools that a member can have: its own, and those of each skill that it may load."""
    return tuple(dict.fromkeys((*(agent.tools or ()), *tools_of_skills(agent.loadable, manifest))))


def tools_of_skills(names: Iterable[str], manifest: Manifest) -> list[str]:
    """The tools of these skills."""
    return [tool for name in names if name in manifest.skills for tool in manifest.skills[name].allowed_tools]


def skills_of_role(name: str, skills: Iterable[Skill]) -> tuple[str, ...]:
    """The skills of a role: the core first, and in a tier by priority."""
    mine = [each for each in skills if name in each.metadata.get("agents", "").split()]
    return tuple(each.name for each in sorted(mine, key=lambda each: (each.tier, -each.priority, each.name)))


def _with_role(agent: AgentSpec, shipped: AgentSpec, skills: dict[str, Skill]) -> AgentSpec:
    """The agent with the skills of its role. An agent that names no tools has the tools of the role."""
    role = skills_of_role(agent.name, skills.values())
    tools: Sequence[str] = shipped.tools or () if agent.tools is None else agent.tools
    return msgspec.structs.replace(
        agent,
        skills=tuple(dict.fromkeys((*role, *agent.skills))),
        tools=tuple(dict.fromkeys(IN_TREE.get(each, each) for each in tools)),
        model=agent.model or shipped.model,
        description=agent.description or shipped.description,
        metadata={**agent.metadata, "mode": shipped.metadata["mode"]},
    )


def _member(agent: AgentSpec, manifest: Manifest) -> TeamMember:
    tiers: dict[int, list[str]] = {1: [], 2: [], 3: []}
    for name in agent.loadable:
        tiers[manifest.skills[name].tier].append(name)
    return TeamMember(
        name=agent.name,
        mode=MemberMode(agent.metadata["mode"]),
        model=agent.model,
        description=agent.description,
        core=tuple(tiers[1]),
        contextual=tuple(tiers[2]),
        specialised=tuple(tiers[3]),
    )
