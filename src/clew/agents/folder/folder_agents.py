"""Mirrors the agents that a folder defines in markdown to the trail, so that they run, if the user has consented to
them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.skills.definitions import FolderDefinitions
from clew.skills.agent_tools import permissions_of, tools_of
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.prompt import Sections, build_prompt, is_initial
from clew.skills.sessions.session import SessionState, Withhold
from clew.skills.variables import Variables
from clew.trail.mirror import Mirrored, mirror_files
from clew.trail.model.breadcrumb import NEVER, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG

FROM_FOLDER = "from:folder"
"""Tag on definitions that are mirrored from files."""
_LOADING = """## Loading Skills

Load a skill when you need it: `get` on `skills://tools/find` leads to it."""
_SECTIONS = Sections(hints="never", loaded_skills="never", tools="never")
"""The parts of the instructions that a definition leaves out. A definition is shared by all conversations of an agent;
the hooks add these parts to each run."""
_NAMESPACE = UUID("6c1b0a1e-4c4f-5f0e-8f29-6c6d1c7f0b21")


async def mirror_agents(
    trail: Trail, flow: Flow, definitions: FolderDefinitions, *, by: Principal, reserved: Collection[str] = ()
) -> Mirrored:
    """Synchronize the definitions on the trail with the folder's agents, according to its current files and the user's
    consent. Agents with `reserved` names are skipped."""
    drafts = _drafts(flow, definitions, by, reserved)
    return await mirror_files(trail, drafts, Selector(schema_name=flow.agent, all_tags=(FROM_FOLDER,)), by=by)


def _drafts(flow: Flow, definitions: FolderDefinitions, by: Principal, reserved: Collection[str]) -> Iterator[Draft]:
    for name in definitions.manifest.agents:
        if name in reserved or definitions.is_waiting(name):
            continue
        yield Draft(
            id=str(uuid5(_NAMESPACE, f"{by.owner_id}\n{definitions.source.root}\n{name}")),
            title=f"Agent {name}"[:200],
            schema_name=flow.agent,
            tags=("agent:def", "workspace:agents", f"agent:{name}", FROM_FOLDER),
            context=_definition(flow, definitions.agent(name), definitions),
            ttl=NEVER,
            embed="never",
        )


def _definition(flow: Flow, agent: AgentSpec, definitions: FolderDefinitions) -> dict[str, Any]:
    return {
        "agent_id": agent.name,
        "description": agent.description,
        "model": agent.model or None,
        "system_prompt": prompt_of(agent, definitions.manifest, definitions.withhold),
        "capabilities": {"tools": list(tools_of(agent))},
        "permissions": msgspec.to_builtins(permissions_of(agent)) or None,
        "context_trigger": {"schema_name": flow.message, "all_tags": [CONSUMER_TAG + agent.name]},
        "metadata": {"path": agent.path, "digest": agent.digest},
    }


def prompt_of(agent: AgentSpec, manifest: Manifest, withhold: Withhold) -> str:
    """Return the instructions of an agent: its own text, the skills that it starts with, and the names of those that it
    may load. Withheld skills are left out."""
    known = [manifest.skills[name] for name in agent.loadable if name in manifest.skills]
    prompt = build_prompt(
        agent,
        manifest,
        SessionState(agent_name=agent.name, discovered_skills=tuple(in_prompt(agent, manifest, withhold))),
        {},
        include=_SECTIONS,
        loadable=[skill.name for skill in known if not withhold(skill)],
        values=Variables().resolve(),
        instructions=_LOADING,
    )
    return prompt.content


def in_prompt(agent: AgentSpec, manifest: Manifest, withhold: Withhold) -> list[str]:
    """Return the names of the skills whose texts the instructions of an agent have."""
    known = [manifest.skills[name] for name in agent.loadable if name in manifest.skills]
    return [skill.name for skill in known if is_initial(skill, agent) and not withhold(skill)]
