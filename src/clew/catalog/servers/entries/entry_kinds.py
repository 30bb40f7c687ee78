"""The three kinds of entries of servers and their operations: search and register all of them, execute tools, read
resources, get prompts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import one_line
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.entries.entries import Kind, ServerAbout, ServerEntry
from clew.catalog.servers.entries.schemas import check_arguments
from clew.errors import InvalidInput, NotFound, ServerError

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult

    from clew.catalog.servers.connections.connection import ServerConnection


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a search found, and how well it fits."""

    entry: ServerEntry
    score: float


class EntrySource(Protocol):
    """The part of the registry that the entry lists need."""

    def config(self, server: str) -> McpServerConfig: ...

    def connection(self, server: str) -> ServerConnection: ...

    def about(self, server: str) -> ServerAbout | None: ...

    def find(self, server: str, kind: Kind, name: str) -> ServerEntry | None: ...

    async def search(
        self, kind: Kind, query: str, *, server: str | None, limit: int, by: Principal | None
    ) -> list[Match]: ...

    async def register(self, server: str, kind: Kind, given: dict[str, Any]) -> ServerEntry: ...


class EntryList:
    """All entries of one kind. Methods raise NotFound for a server or entry that is not there."""

    kind: ClassVar[Kind]

    def __init__(self, backing: EntrySource) -> None:
        self._backing = backing

    async def search(
        self, query: str, *, server: str | None = None, limit: int = 10, by: Principal | None = None
    ) -> list[Match]:
        """The best entries of one server or of all, best first, as far as `by` may see them."""
        return await self._backing.search(self.kind, query, server=server, limit=limit, by=by)

    async def register(self, server: str, given: dict[str, Any]) -> ServerEntry:
        """Add an entry given in the protocol's own form. Raises InvalidInput if it is malformed."""
        return await self._backing.register(server, self.kind, given)

    def entry(self, server: str, name: str) -> ServerEntry:
        """An entry that the server has at present."""
        self._backing.config(server)
        entry = self._backing.find(server, self.kind, name)
        if entry is None or entry.state == "gone":
            raise NotFound(f"{self.kind} of {server}", one_line(name, 200))
        return entry


class ToolEntries(EntryList):
    kind = "tool"

    async def execute(
        self, server: str, name: str, arguments: Mapping[str, Any], *, report: ProgressFnT | None = None
    ) -> CallToolResult:
        """Call a tool. Raises InvalidInput if the arguments do not match its schema, and ServerError if the tool has
        changed since it was approved or the server fails."""
        entry = self.entry(server, name)
        if not self._backing.config(server).tools.admits(name):
            raise NotFound(f"tool of {server}", one_line(name, 200))
        if entry.state == "changed":
            reason = f"its tool {one_line(name, 100)} has changed since it was approved"
            raise ServerError(
                server, reason, hint=f"Look at it and run `clew mcp approve {server} {one_line(name, 100)}`"
            )
        given = check_arguments(entry.schema, arguments)
        return await self._backing.connection(server).call_tool(name, given, report)


class Resources(EntryList):
    kind = "resource"

    async def read(self, server: str, uri: str) -> ReadResourceResult:
        """Read a resource by its address, which may also be one that a template or a result named."""
        if not 0 < len(uri) <= 4_000:
            raise InvalidInput("uri", "must be 1 to 4,000 characters")
        return await self._backing.connection(server).read_resource(uri)

    def subscribe(self, server: str, uri: str) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Follow a resource: an iterator over the addresses that changed. Raises ServerError if the server does not
        offer that."""
        about = self._backing.about(server)
        if about is not None and not about.offers_subscriptions:
            raise ServerError(server, "does not report changed resources")
        return self._backing.connection(server).subscribe(uri)


class Prompts(EntryList):
    kind = "prompt"

    async def get(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> GetPromptResult:
        """The messages of a prompt. Raises InvalidInput for an argument that it needs and did not get."""
        entry = self.entry(server, name)
        given = dict(arguments or {})
        for each in entry.arguments:
            if each.get("required") and each.get("name") not in given:
                raise InvalidInput(f"arguments.{one_line(str(each.get('name')), 60)}", "is missing")
        return await self._backing.connection(server).get_prompt(name, given)

    async def complete(self, server: str, name: str, argument: str, value: str) -> list[str]:
        """The server's completions for an argument."""
        found = await self._backing.connection(server).complete(name, argument, value)
        return [one_line(each, 200) for each in found.completion.values[:100]]
