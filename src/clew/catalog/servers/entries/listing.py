"""Reads a server's complete lists, page by page. Limits on pages, entries and bytes protect Clew from an endless
listing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from clew.catalog.servers.entries.listing_cleanup import MAX_ENTRIES

if TYPE_CHECKING:
    from mcp import Client

MAX_PAGES = 200
MAX_LISTING = 16_000_000

ListKind = Literal["tools", "resources", "resource_templates", "prompts"]


class ServerListing(msgspec.Struct, frozen=True, kw_only=True):
    """Entries in the server's order as plain JSON, and notes about omitted ones."""

    entries: list[dict[str, Any]]
    left_out: list[str]


def offers(client: Client, kind: ListKind) -> bool:
    """Whether the server says that it has such a list."""
    has = client.server_capabilities
    match kind:
        case "tools":
            return has.tools is not None
        case "prompts":
            return has.prompts is not None
        case _:
            return has.resources is not None


async def read_page(client: Client, kind: ListKind, cursor: str | None) -> tuple[list[Any], str | None]:
    """Read one page, always from the server and never from a cache."""
    match kind:
        case "tools":
            tools = await client.list_tools(cursor=cursor, cache_mode="refresh")
            return list(tools.tools), tools.next_cursor
        case "resources":
            resources = await client.list_resources(cursor=cursor, cache_mode="refresh")
            return list(resources.resources), resources.next_cursor
        case "resource_templates":
            templates = await client.list_resource_templates(cursor=cursor, cache_mode="refresh")
            return list(templates.resource_templates), templates.next_cursor
        case "prompts":
            prompts = await client.list_prompts(cursor=cursor, cache_mode="refresh")
            return list(prompts.prompts), prompts.next_cursor


async def read_listing(
    read: Callable[[str | None], Awaitable[tuple[list[Any], str | None]]],
    goes_on: Callable[[str], Awaitable[bool]],
    kind: ListKind,
) -> ServerListing:
    """Read pages until the last one, until a limit is reached, or until `goes_on` returns False."""
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    size = 0
    for _ in range(MAX_PAGES):
        seen.add(cursor)
        page, cursor = await read(cursor)
        for entry in page:
            plain = entry.model_dump(mode="json", by_alias=True, exclude_none=True)
            size += len(msgspec.json.encode(plain))
            if size > MAX_LISTING or len(entries) >= MAX_ENTRIES:
                return _cut(entries, kind)
            entries.append(plain)
        if not cursor:
            return ServerListing(entries=entries, left_out=[])
        if cursor in seen:
            return ServerListing(entries=entries, left_out=[f"the pages of its {kind} go in a circle"])
        if not await goes_on(cursor):
            return ServerListing(entries=entries, left_out=[f"its {kind} past page {len(seen)}, as a hook wished"])
    return _cut(entries, kind)


def _cut(entries: list[dict[str, Any]], kind: ListKind) -> ServerListing:
    return ServerListing(entries=entries, left_out=[f"its {kind} past the first {len(entries):,}: there are too many"])
