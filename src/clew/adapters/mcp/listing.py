"""The listing of the two tools: the same bytes for every caller and every catalog.

Only `ask` describes the content of a catalog, so a client may cache the listing without limit.
"""

from __future__ import annotations

from typing import Any, Final

from mcp_types import ListResourceTemplatesResult, ListToolsResult, ResourceTemplate, Tool, ToolAnnotations

from clew.catalog.operations.answers import DEFAULT_PER_DOMAIN, ITEM_SCHEMA, MAX_ITEMS, MAX_PER_DOMAIN

ASK: Final = "ask"
GET: Final = "get"

_HANDLE: dict[str, Any] = {"type": "string", "description": "From your last result"}

_ASK_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What you want to do or know, in plain words"},
        "domain": {"type": "string", "description": "Search this domain only"},
        "per_domain": {"type": "integer", "minimum": 1, "maximum": MAX_PER_DOMAIN, "default": DEFAULT_PER_DOMAIN},
        "handle": _HANDLE,
    },
    "required": ["query"],
    "additionalProperties": False,
}

_GET_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "routes": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_ITEMS,
            "items": ITEM_SCHEMA,
        },
        "handle": _HANDLE,
    },
    "required": ["routes"],
    "additionalProperties": False,
}

_ASK_OUTPUT: dict[str, Any] = {
    "type": "object",
    # one object per domain; a stricter schema would make clients check thousands of entries
    "properties": {"handle": {"type": "string"}, "sections": {"type": "array"}},
    "required": ["handle", "sections"],
}

_GET_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "results": {"type": "array", "items": {"type": "object"}},
        "summary": {"type": "object"},
        "handle": {"type": "string"},
    },
    "required": ["results", "summary", "handle"],
}

_ASK_TEXT = (
    "Find what you can do and what is known. Call this first, and again for every new goal. It answers with routes: "
    "tools (domain://tools/…) with their params, and documents (domain://resources/…). Pass the routes to `get`. "
    "If nothing fits, it says so: ask in other words."
)
_GET_TEXT = (
    f"Run tools and read documents by route, up to {MAX_ITEMS} in parallel; results keep the order, and one that fails "
    "does not stop the others. Use only routes that `ask` or guidance gave you, with params as shown there. Results "
    "end with guidance: further routes, why to take them, params filled in. Follow it. Always send the latest handle."
)

INPUT_SCHEMAS: Final[dict[str, dict[str, Any]]] = {ASK: _ASK_INPUT, GET: _GET_INPUT}

LISTING: Final = ListToolsResult(
    tools=[
        Tool(
            name=ASK,
            description=_ASK_TEXT,
            input_schema=_ASK_INPUT,
            output_schema=_ASK_OUTPUT,
            annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        ),
        Tool(
            name=GET,
            description=_GET_TEXT,
            input_schema=_GET_INPUT,
            output_schema=_GET_OUTPUT,
            annotations=ToolAnnotations(open_world_hint=True),
        ),
    ]
)

TOOLS: Final = LISTING.model_dump(by_alias=True, mode="json", exclude_none=True)["tools"]
"""The tools in wire format for both eras. The SDK would order their keys differently in each."""

TEMPLATES: Final = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="resource",
            uri_template="{domain}://resources/{+path}",
            description="A document of a domain, by the route that `ask` gave",
            mime_type="text/markdown",
        )
    ]
)
