"""The configuration that a tool is called with: settings, and the names of secrets that are for this tool alone."""

from __future__ import annotations

from typing import Any

from clew.access import Principal
from clew.agents.runs.requests import ToolRequest
from clew.errors import InvalidInput, NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail


async def find_config(trail: Trail, flow: Flow, request: ToolRequest, *, by: Principal) -> dict[str, Any]:
    """The configuration that a request names, or the newest one for its tool; empty where there is none. Raises
    InvalidInput for one that there is not, or that is for another tool."""
    if request.config_id is not None:
        try:
            return check_config(await trail.records.get(request.config_id, by=by), request.tool, flow)
        except NotFound:
            hint = "Write one, or leave config_id out"
            raise InvalidInput("config_id", f"there is no {request.config_id[:100]}", hint=hint) from None
    selector = Selector(schema_name=flow.tool_config, all_tags=(f"tool:{request.tool}",))
    page = await trail.records.list(selector, by=by, limit=1)
    return check_config(page.items[0], request.tool, flow) if page.items else {}


def check_config(record: Breadcrumb, tool: str, flow: Flow) -> dict[str, Any]:
    """What a configuration says. Raises InvalidInput for one that is none, or that is for another tool: secrets are
    for the one tool that they were meant for."""
    context = record.context
    if record.schema_name != flow.tool_config:
        raise InvalidInput("config_id", f"{record.id} is no configuration", hint=f"Name one of {flow.tool_config}")
    named = context.get("tool")
    is_meant = named == tool if named is not None else f"tool:{tool}" in record.tags
    if not is_meant and named is None and not context.get("secrets"):
        is_meant = context.get("name") == tool
    if not is_meant:
        hint = f"Put the tag tool:{tool} on it, or tool: {tool} into it"
        raise InvalidInput("config_id", f"{record.id} is not for {tool}", hint=hint)
    return dict(context)
