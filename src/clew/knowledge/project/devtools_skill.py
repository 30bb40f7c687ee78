"""Discovery as agents have it: the skill `discover_tools`, and what was found as tools of the one registry. Such a tool
tells how it is run; running is for the agent's own commands, and the policy on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from clew.catalog.text import inline
from clew.knowledge.project.devtools import ToolDiscovery
from clew.knowledge.project.devtools_records import (
    CATEGORIES,
    DiscoveredTool,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
)
from clew.skills.declaring import Declared, declare
from clew.skills.registry import ToolRegistry
from clew.tools.tool import Effects, Tool, tool

TOOLSET = "devtools"
_READS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)


def discovery_skill(
    discovery: ToolDiscovery, registry: ToolRegistry, *, session_id: str, requesting_agent: str
) -> Declared:
    """The skill for one agent in one session. What it finds is registered as tools of the toolset `devtools`."""

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        request = ToolDiscoveryRequest(
            session_id=session_id,
            requesting_agent=requesting_agent,
            tool_category=arguments["category"],
            target_path=arguments["path"],
        )
        response = await discovery.discover(request, arguments.get("force_refresh", False))
        register_tools(registry, response)
        told: dict[str, Any] = msgspec.to_builtins(response)
        return told

    return (
        declare("discover_tools")
        .describe("Discover the linter, formatter, type checker, test framework or language server for code")
        .in_domain("tooling", "discover", "tools", "linter", "formatter", "test")
        .enum("category", *CATEGORIES, about="Which kind of tool", required=True)
        .string("path", "The file or folder that it is for", required=True)
        .boolean("force_refresh", "Look again, though nothing changed")
        .handled_by(run)
        .build()
    )


def register_tools(registry: ToolRegistry, response: ToolDiscoveryResponse) -> None:
    """Put what was discovered into the registry, each as category and name; what was there before is replaced. What
    still waits for the user is left out."""
    if not response.requires_user:
        registry.register(TOOLSET, as_tools(response))


def as_tools(response: ToolDiscoveryResponse) -> Mapping[str, Tool]:
    """Discovered tools as tools that tell how they are run."""
    return {made.name: made for made in map(_as_tool, response.tools)}


def _as_tool(found: DiscoveredTool) -> Tool:
    async def tell() -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(found)
        return told

    kind = found.category.replace("_", " ")
    name = re.sub(r"[^a-z0-9.]+", "-", found.name.lower()).strip("-.") or "tool"
    return tool(
        name=f"{found.category.replace('_', '-')}-{name}"[:100],
        title=inline(f"{found.name} ({kind})", 100),
        description=inline(
            f"{found.name}, the {kind} for {found.language or 'this project'}: {found.run_command}", 300
        ),
        effects=_READS,
        category=found.category,
    )(tell)
