"""Agents of a folder's markdown as agents that run: those that the user agreed to, mirrored to the trail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.skills.definitions import FolderDefinitions
from clew.skills.agent_tools import permissions_of, tools_of
from clew.skills.discovery.mirror import Mirrored, mirror
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.skills.sessions.session import Withhold
from clew.trail.model.breadcrumb import NEVER, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG

FROM_FOLDER = "from:folder"
"""On definitions that follow files."""
_SKILLS = """## Further skills

These can be loaded when they are needed: `get` on `skills://tools/find` leads to them."""
_NAMESPACE = UUID("6c1b0a1e-4c4f-5f0e-8f29-6c6d1c7f0b21")


async def mirror_agents(trail: Trail, flow: Flow, definitions: FolderDefinitions, *, by: Principal) -> Mirrored:
    """Make the trail's definitions those of the folder's agents, as its files and the user's consent are now."""
    drafts = _drafts(flow, definitions, by)
    return await mirror(trail, drafts, Selector(schema_name=flow.agent, all_tags=(FROM_FOLDER,)), by=by)


def _drafts(flow: Flow, definitions: FolderDefinitions, by: Principal) -> Iterator[Draft]:
    for name in definitions.manifest.agents:
        if definitions.is_waiting(name):
            continue
        yield Draft(
            id=str(uuid5(_NAMESPACE, f"{by.owner_id}\n{definitions.definers.root}\n{name}")),
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
        "system_prompt": prompt_of(agent, definitions.manifest, definitions.withheld.keys()),
        "capabilities": {"tools": list(tools_of(agent))},
        "permissions": msgspec.to_builtins(permissions_of(agent)) or None,
        "context_trigger": {"schema_name": flow.message, "all_tags": [CONSUMER_TAG + agent.name]},
        "metadata": {"path": agent.path, "digest": agent.digest},
    }


def prompt_of(agent: AgentSpec, manifest: Manifest, withheld: Any = ()) -> str:
    """The instructions of an agent: its own text, the skills that it starts with, and the names of those that it may
    load. Skills that nobody agreed to are not among them."""
    known = [manifest.skills[name] for name in agent.loadable if name in manifest.skills and name not in withheld]
    initial = [skill for skill in known if _is_initial(agent, skill)]
    texts = [f"## {skill.name}\n\n{skill.content.strip()}" for skill in initial]
    later = [f"- {skill.name}: {' '.join(skill.description.split())}" for skill in known if skill not in initial]
    parts = [agent.prompt.strip(), *texts, "\n".join([_SKILLS, "", *later]) if later else ""]
    return "\n\n".join(filter(None, parts))


def in_prompt(agent: AgentSpec, manifest: Manifest, withhold: Withhold) -> list[str]:
    """The skills whose texts the instructions of an agent have."""
    known = [manifest.skills[name] for name in agent.loadable if name in manifest.skills]
    return [skill.name for skill in known if _is_initial(agent, skill) and not withhold(skill)]


def _is_initial(agent: AgentSpec, skill: Skill) -> bool:
    return skill.name in agent.initial_skills or skill.tier == 1
