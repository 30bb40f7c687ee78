"""MCP resources of the catalog: a bounded listing, and the text of one route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from clew.adapters.mcp import skills
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.catalog.operations.answers import CatalogEntry, EntryFailure, Item
from clew.catalog.route import parse_route
from clew.catalog.skills.files import SCHEME
from clew.errors import InvalidInput, NotFound

MAX_LISTED = 100
MARKDOWN = "text/markdown"
HANDLE = "clew/handle"
"""The key in `_meta` for the handle of a request without arguments."""
_NOT_FOUND_BEFORE_2026 = -32002


async def list_resources(catalog: CatalogInterface, by: Principal, cursor: str | None) -> ListResourcesResult:
    """Return the newest resources of the catalog, at most MAX_LISTED, then pages of the files of skills.

    The listing does not grow with the catalog: `ask` finds all other resources. Raises InvalidInput for an unknown
    cursor.
    """
    if cursor is not None:
        files, further = await skills.list_files(catalog, by, cursor if cursor != SCHEME else None)
        return ListResourcesResult(resources=files, next_cursor=further)
    entries = await catalog.list_resources(by=by, limit=MAX_LISTED)
    more = SCHEME if await catalog.skill_files(by=by) is not None else None
    return ListResourcesResult(resources=[_shown(each) for each in entries], next_cursor=more)


async def read_resource(
    catalog: CatalogInterface, by: Principal, uri: str, protocol: str, meta: Mapping[str, Any] | None = None
) -> ReadResourceResult:
    """Return the text of a resource. Raises the same MCPError if it does not exist and if `by` may not see it.

    A strict catalog returns only resources that `ask` has shown in the caller's session, or under the handle in `meta`.
    Otherwise the error says which `ask` would show it. The listing does not count as shown.
    """
    if uri.startswith(SCHEME):
        return await _read_file(catalog, by, uri, protocol)
    if not _is_resource(uri):
        raise _absent(uri, protocol)
    results = await catalog.get([Item(route=uri)], by=by, handle=_handle_in(meta or {}))
    (found,) = results.results
    if found.data is None:
        raise _refusal(uri, found.error, protocol)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=found.data.content)])


async def _read_file(catalog: CatalogInterface, by: Principal, uri: str, protocol: str) -> ReadResourceResult:
    try:
        return await skills.read_file(catalog, by, uri)
    except NotFound:
        raise _absent(uri, protocol) from None


def _is_resource(uri: str) -> bool:
    try:
        return parse_route(uri).kind == "resources"
    except InvalidInput:
        return False


def _handle_in(meta: Mapping[str, Any]) -> str | None:
    """Return the handle in `_meta`, or None. Raises InvalidInput if it is not text."""
    handle = meta.get(HANDLE)
    if handle is not None and not isinstance(handle, str):
        raise InvalidInput(f"_meta.{HANDLE}", "must be text", hint="Send the handle of the latest answer")
    return handle


def _refusal(uri: str, error: EntryFailure | None, protocol: str) -> MCPError:
    if error is None or error.code in ("INVALID_ROUTE", "NOT_FOUND", "ACCESS_DENIED"):
        return _absent(uri, protocol)
    code = INTERNAL_ERROR if error.code == "EXECUTION_ERROR" else INVALID_PARAMS
    how = f" as `{HANDLE}` in `_meta`" if error.code == "NOT_REVEALED" else ""
    return MCPError(code=code, message=error.message + how, data={"uri": uri})


def _absent(uri: str, protocol: str) -> MCPError:
    code = INVALID_PARAMS if protocol in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_BEFORE_2026
    return MCPError(code=code, message="no such resource; `ask` shows which there are", data={"uri": uri})


def _shown(entry: CatalogEntry) -> Resource:
    name = parse_route(entry.route).path.rpartition("/")[2]
    return Resource(uri=entry.route, name=name, description=entry.description or None, mime_type=MARKDOWN)
