"""Resources of the catalog as MCP resources: pages of a listing, and the text behind one route."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from clew.access import Principal
from clew.adapters.mcp.offering import Offering
from clew.catalog.answers import Entry, Failure, Item
from clew.catalog.route import parse_route
from clew.errors import InvalidInput

PAGE = 100
MARKDOWN = "text/markdown"
_NOT_FOUND_BEFORE_2026 = -32002


async def list_resources(catalog: Offering, by: Principal, cursor: str | None) -> ListResourcesResult:
    """One page. Raises InvalidInput for a cursor that this server did not give."""
    entries, more = await catalog.list_resources(by=by, cursor=cursor, limit=PAGE)
    return ListResourcesResult(resources=[_shown(each) for each in entries], next_cursor=more)


async def read_resource(catalog: Offering, by: Principal, uri: str, protocol: str) -> ReadResourceResult:
    """The text of a resource. Raises MCPError where there is none, or `by` may not see it: the same answer."""
    if not _is_resource(uri):
        raise _absent(uri, protocol)
    results = await catalog.get([Item(route=uri)], by=by)
    (found,) = results.results
    if found.data is None:
        raise _refusal(uri, found.error, protocol)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=found.data.content)])


def _is_resource(uri: str) -> bool:
    try:
        return parse_route(uri).kind == "resources"
    except InvalidInput:
        return False


def _refusal(uri: str, error: Failure | None, protocol: str) -> MCPError:
    if error is None or error.code in ("INVALID_ROUTE", "NOT_FOUND", "ACCESS_DENIED"):
        return _absent(uri, protocol)
    code = INTERNAL_ERROR if error.code == "EXECUTION_ERROR" else INVALID_PARAMS
    return MCPError(code=code, message=error.message, data={"uri": uri})


def _absent(uri: str, protocol: str) -> MCPError:
    code = INVALID_PARAMS if protocol in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_BEFORE_2026
    return MCPError(code=code, message="no such resource; `ask` shows which there are", data={"uri": uri})


def _shown(entry: Entry) -> Resource:
    name = parse_route(entry.route).path.rpartition("/")[2]
    return Resource(uri=entry.route, name=name, description=entry.description or None, mime_type=MARKDOWN)
