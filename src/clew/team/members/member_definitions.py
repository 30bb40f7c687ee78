"""The definitions of the members on the trail, mirrored from the package and from a folder's files.

If the user has consented to it, a folder's agent with the same name replaces the prompt, the model and the tools of a
member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.skills.definitions import FolderDefinitions
from clew.context.definition import AgentDefinition, definition_of
from clew.skills.agent_tools import permissions_of
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.prompt import Sections, build_prompt, is_initial
from clew.skills.sessions.session import SessionState
from clew.skills.variables import Variables
from clew.team.members.roster import shipped_manifest, team_manifest, tools_of_member
from clew.team.messages.message_types import AGENTS
from clew.trail.mirror import Mirrored, mirror_files
from clew.trail.model.breadcrumb import NEVER, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG

FROM_TEAM = "from:team"
"""Tag on the definitions of members."""
BUILT_IN = "built-in"
"""The origin of a definition that comes with Clew."""
LOADING = """## Loading skills

Call `load_skill` with a name of the list. It brings instructions and tools, and leaves when the work moves on."""
_SECTIONS = Sections(hints="never", loaded_skills="never", tools="never")
_NAMESPACE = UUID("0f4a2a3e-6f0d-5c56-9d38-3b1a2f7de8c4")


async def mirror_members(
    trail: Trail, flow: Flow, definitions: FolderDefinitions | None, *, by: Principal, start: bool = False
) -> Mirrored:
    """Synchronize the members' definitions on the trail with the package and with the folder's files that the user has
    consented to.

    Without `start`, and if the trail has no member yet, only members that a file of the folder defines are added.
    """
    manifest = manifest_for(definitions)
    selector = Selector(schema_name=flow.agent, all_tags=(FROM_TEAM,))
    wanted = set(AGENTS)
    if not start:
        present = await trail.records.list(selector, by=by, limit=1)
        wanted = wanted if present.items else {name for name in AGENTS if is_replaced(name, manifest)}
    return await mirror_files(trail, _drafts(flow, manifest, sorted(wanted), by), selector, by=by)


def manifest_for(definitions: FolderDefinitions | None) -> Manifest:
    """The definitions of the team in a folder."""
    if definitions is None:
        return shipped_manifest()
    agreed = [definitions.agent(name) for name in AGENTS if _is_agreed(definitions, name)]
    usable = definitions.usable.skills.values()
    return team_manifest(agreed, [each for each in usable if not definitions.withhold(each)])


def is_replaced(name: str, manifest: Manifest) -> bool:
    """Whether a file of the folder defines this member."""
    return manifest.agents[name].digest != shipped_manifest().agents[name].digest


def member_prompt(agent: AgentSpec, manifest: Manifest) -> str:
    """The instructions of a member: its own text, its core skills, and the names of those that it may load."""
    core = [name for name in agent.loadable if name in manifest.skills and is_initial(manifest.skills[name], agent)]
    prompt = build_prompt(
        agent,
        manifest,
        SessionState(agent_name=agent.name, discovered_skills=tuple(core)),
        {},
        include=_SECTIONS,
        loadable=agent.loadable,
        values=Variables().resolve(),
        instructions=LOADING,
    )
    return prompt.content


def member_definition(flow: Flow, agent: AgentSpec, manifest: Manifest) -> dict[str, Any]:
    """The definition of a member, as stored in a breadcrumb. The contexts of a member contain no records of other
    conversations."""
    off = {"enabled": False}
    is_own = agent.digest == shipped_manifest().agents[agent.name].digest
    return {
        "agent_id": agent.name,
        "description": agent.description,
        "model": agent.model or None,
        "system_prompt": member_prompt(agent, manifest),
        "capabilities": {"tools": list(tools_of_member(agent, manifest))},
        "permissions": msgspec.to_builtins(permissions_of(agent)) or None,
        "context_trigger": {"schema_name": flow.message, "all_tags": [CONSUMER_TAG + agent.name]},
        "context_sources": {"semantic": off, "session": off, "graph": off},
        "metadata": {
            "mode": agent.metadata["mode"],
            "origin": BUILT_IN if is_own else agent.path,
            "digest": agent.digest,
        },
    }


def built_in_members(flow: Flow) -> list[AgentDefinition]:
    """The definitions of the ten agents as they come with Clew."""
    manifest = shipped_manifest()
    return [definition_of(member_definition(flow, manifest.agents[name], manifest)) for name in AGENTS]


def _is_agreed(definitions: FolderDefinitions, name: str) -> bool:
    return name in definitions.manifest.agents and not definitions.is_waiting(name)


def _drafts(flow: Flow, manifest: Manifest, names: Iterable[str], by: Principal) -> Iterator[Draft]:
    for name in names:
        yield Draft(
            id=str(uuid5(_NAMESPACE, f"{by.owner_id}\n{name}")),
            title=f"Agent {name}",
            schema_name=flow.agent,
            tags=("agent:def", "workspace:agents", f"agent:{name}", FROM_TEAM),
            context=member_definition(flow, manifest.agents[name], manifest),
            ttl=NEVER,
            embed="never",
        )
