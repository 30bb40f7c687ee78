"""One call of a tool: its configuration, the marker that it has begun, and its output for the response."""

from __future__ import annotations

from typing import Any

from clew.access import Principal
from clew.agents.runs.requests import ToolRequest
from clew.errors import InvalidInput, NotFound
from clew.tools.content import GuidedContent, ValueContent
from clew.tools.tool import Effects
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, inherited_tags


async def find_config(trail: Trail, flow: Flow, request: ToolRequest, *, by: Principal) -> dict[str, Any]:
    """The configuration that a request names, or the newest one for its tool; empty if there is none. Raises
    InvalidInput for a configuration that does not exist or belongs to another tool."""
    if request.config_id is not None:
        try:
            return check_config(await trail.records.get(request.config_id, by=by), request.tool, flow)
        except NotFound:
            hint = "Write one, or leave config_id out"
            raise InvalidInput("config_id", f"{request.config_id[:100]} does not exist", hint=hint) from None
    selector = Selector(schema_name=flow.tool_config, all_tags=(f"tool:{request.tool}",))
    page = await trail.records.list(selector, by=by, limit=1)
    return check_config(page.items[0], request.tool, flow) if page.items else {}


def check_config(record: Breadcrumb, tool: str, flow: Flow) -> dict[str, Any]:
    """The settings of a configuration. Raises InvalidInput for a record that is not a configuration of this tool: no
    other tool may read its secrets."""
    context = record.context
    if record.schema_name != flow.tool_config:
        raise InvalidInput("config_id", f"{record.id} is not a configuration", hint=f"Name one of {flow.tool_config}")
    named = context.get("tool")
    is_meant = named == tool if named is not None else f"tool:{tool}" in record.tags
    if not is_meant and named is None and not context.get("secrets"):
        is_meant = context.get("name") == tool
    if not is_meant:
        hint = f"Put the tag tool:{tool} on it, or tool: {tool} into it"
        raise InvalidInput("config_id", f"{record.id} is not for {tool}", hint=hint)
    return dict(context)


class CallMarkers:
    """Markers on the trail of calls that have begun. A marker without a response means that the process died during the
    call."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._records = trail.records
        self._flow = flow
        self._by = by

    async def has_begun(self, request: ToolRequest) -> bool:
        """Whether the call of a request has begun."""
        selector = Selector(schema_name=self._flow.started, all_tags=(REQUEST_TAG + request.request_id,))
        return bool((await self._records.list(selector, by=self._by, limit=1)).items)

    async def was_interrupted(self, effects: Effects, request: ToolRequest, record: Breadcrumb) -> bool:
        """Whether a call that must not be repeated has begun before. Otherwise mark it as begun."""
        if effects.reads_only or effects.repeats_safely or effects.keyed:
            return False
        if await self.has_begun(request):
            return True
        await self._records.create(self._mark(request, record), by=self._by)
        return False

    def _mark(self, request: ToolRequest, record: Breadcrumb) -> Draft:
        return Draft(
            title=f"{request.tool} begins"[:200],
            schema_name=self._flow.started,
            tags=(REQUEST_TAG + request.request_id, *inherited_tags(record)),
            context={"request_id": request.request_id, "tool": request.tool},
            scopes=record.scopes,
            embed="never",
        )


def response_output(content: GuidedContent, most: int) -> Any:
    """The output of a response: the value itself unless it is too long, else its text."""
    if isinstance(content, ValueContent) and len(content.content) <= most:
        return content.value
    return _within(content, most)


def _within(content: GuidedContent, most: int) -> str:
    """The text of a result with its next steps, cut at the limit."""
    text = content.content
    steps = "\n".join(f"- {step.route}: {step.prose}" for step in content.guidance)
    text = f"{text}\n\nNext steps:\n{steps}" if steps else text
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were left out]"
