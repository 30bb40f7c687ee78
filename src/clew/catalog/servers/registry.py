"""All foreign servers of a workspace: their tools, resources and prompts in one search, and their connections.

Opening the registry only reads the trail. A server is contacted when it is added, called or refreshed, or when it
announces a change.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from clew.access import Principal
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.hooks import Hooks, ServerHookChain
from clew.catalog.servers.entries.entries import KINDS, SCHEMAS, Kind, ServerAbout, ServerEntry
from clew.catalog.servers.entries.entry_kinds import Match, Prompts, Resources, ToolEntries
from clew.catalog.servers.entries.entry_store import EntryStore, Synced
from clew.catalog.servers.entries.listing import ListKind
from clew.catalog.servers.login.vault import TrailVault
from clew.catalog.servers.server_status import ServerFailures
from clew.clock import Clock, SystemClock
from clew.errors import AlreadyExists, ClewError, ConfigError, InvalidInput, NotFound, ServerError
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

if TYPE_CHECKING:
    from clew.catalog.servers.connections.connection import ServerConnection
    from clew.catalog.servers.connections.sampling import ModelFor

SETTLE_SECONDS = 5.0
"""Seconds between listings of a server that keeps announcing changes."""

_LISTS: dict[Kind, tuple[ListKind, ...]] = {
    "tool": ("tools",),
    "resource": ("resources", "resource_templates"),
    "prompt": ("prompts",),
}
_SHOWN = ("state:approved", "state:changed")

OnUpdate = Callable[[str], Awaitable[None]]


class Relevant(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that fit an intent, best first."""

    tools: Sequence[Match] = ()
    resources: Sequence[Match] = ()
    prompts: Sequence[Match] = ()


class ServerRegistry:
    """The foreign servers of a folder with their entries. Made by `open_registry`. The principal `by` writes the
    entries to the trail, and searches if a caller gives no principal. `on_update` is awaited with the id of a server
    after its entries changed. `allows` says whether the user has agreed to a server. Other servers are neither started
    nor contacted."""

    def __init__(
        self,
        trail: Trail,
        *,
        by: Principal,
        hooks: Iterable[Hooks] = (),
        clock: Clock | None = None,
        chance: random.Random | None = None,
        environ: Mapping[str, str] | None = None,
        model_for: ModelFor | None = None,
        on_update: OnUpdate | None = None,
        allows: Callable[[McpServerConfig], bool] = lambda config: True,
    ) -> None:
        self._trail = trail
        self._by = by
        self._hooks = ServerHookChain(*hooks)
        self._given: dict[str, Any] = {
            "hooks": self._hooks,
            "clock": clock or SystemClock(),
            "chance": chance,
            "environ": environ,
            "model_for": model_for,
        }
        self.on_update = on_update
        self.allows = allows
        self._configs: dict[str, McpServerConfig] = {}
        self._connections: dict[str, ServerConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._has_others = False
        self._store = EntryStore(trail, by)
        self.vault = TrailVault(trail, by)
        self.failures = ServerFailures(trail, by)
        self._sound: set[str] = set()
        self._begun: set[str] = set()
        """Servers that this process has started at least once."""
        self.problems: dict[str, str] = {}
        """The error of the last listing that a server's change notification caused."""
        self.tools = ToolEntries(self)
        self.resources = Resources(self)
        self.prompts = Prompts(self)
        self.servers = Servers(self)

    def use_hooks(self, hooks: Iterable[Hooks]) -> None:
        """Use these hooks around all servers from now on, and no others."""
        self._hooks.replace(hooks)

    def config(self, server: str) -> McpServerConfig:
        """Raises NotFound."""
        if server not in self._configs:
            raise NotFound("server", server)
        return self._configs[server]

    def connection(self, server: str) -> ServerConnection:
        """The one connection of a server, which need not be open. Raises NotFound, and ServerError if the server is
        disabled or the user has not agreed to its current entry."""
        if not self.config(server).enabled:
            raise ServerError(server, "is switched off", hint="Set enabled to true in .clew/mcp.json")
        if not self.allows(self.config(server)):
            raise ServerError(server, "is new or has changed, and waits for the user's consent")
        return self._connections[server]

    def about(self, server: str) -> ServerAbout | None:
        """The server's description of itself; None before its first listing."""
        return self._store.about(server)

    def find(self, server: str, kind: Kind, name: str) -> ServerEntry | None:
        return self._store.find(server, kind, name)

    def entries(self, server: str, kind: Kind | None = None) -> list[ServerEntry]:
        """The entries of a server that its configuration allows."""
        admits = self.config(server).tools.admits
        return [entry for entry in self._store.of(server, kind) if entry.kind != "tool" or admits(entry.name)]

    async def search(
        self, kind: Kind, query: str, *, server: str | None = None, limit: int = 10, by: Principal | None = None
    ) -> list[Match]:
        """Hybrid search through the trail: at most `limit`, best first."""
        others = [ContextMatch(path="server", op="in", value=list(self._configs))] if self._has_others else []
        selector = Selector(
            schema_name=SCHEMAS[kind],
            any_tags=_SHOWN,
            all_tags=(f"server:{server}",) if server is not None else (),
            context_match=others,
        )
        request = SearchRequest(text=query, selector=selector, limit=limit)
        found = await self._trail.index.search(request, by=by or self._by)
        entries = ((self._store.find_id(hit.breadcrumb.id), hit.score) for hit in found.hits)
        return [Match(entry=entry, score=score) for entry, score in entries if entry is not None]

    async def discover_relevant(
        self, intent: str, *, limit: int = 5, kinds: Sequence[Kind] = KINDS, by: Principal | None = None
    ) -> Relevant:
        """The entries that match an intent, at most `limit` of each kind, best first."""
        found = {kind: await self.search(kind, intent, limit=limit, by=by) for kind in kinds}
        return Relevant(
            tools=found.get("tool", []), resources=found.get("resource", []), prompts=found.get("prompt", [])
        )

    async def register(self, server: str, kind: Kind, given: dict[str, Any]) -> ServerEntry:
        scopes = self.config(server).scopes
        async with self._locks[server]:
            synced = await self._store.sync(server, kind, [given], scopes, is_whole=False)
        if synced.left_out:
            raise InvalidInput(kind, synced.left_out[0])
        entry = self.find(server, kind, str(given.get("uriTemplate") or given.get("uri") or given.get("name")))
        assert entry is not None
        await self._notify(server)
        return entry

    async def approve(self, server: str, tool: str) -> ServerEntry:
        """Take a tool as its server describes it now. Raises NotFound."""
        async with self._locks.setdefault(server, asyncio.Lock()):
            approved = await self._store.approve(self.tools.entry(server, tool), self.config(server).scopes)
        await self._notify(server)
        return approved

    async def refresh(self, server: str) -> Synced:
        """Read a server's lists and update the trail. Raises ServerError or ConfigError if the server cannot be read;
        the error is then recorded in `failures`, and nothing else changes."""
        connection = self.connection(server)
        try:
            total = await self._look(server, connection)
        except (ServerError, ConfigError) as error:
            await self.failures.note(server, str(error), started=server in self._begun)
            raise
        await self.failures.clear(server)
        return total

    async def _look(self, server: str, connection: ServerConnection) -> Synced:
        scopes = self.config(server).scopes
        async with self._locks[server]:
            about = await connection.about()
            listed = {kind: await self._list(connection, kind) for kind in KINDS}
            await self._store.load(server)
            total = Synced()
            for kind, found in listed.items():
                if isinstance(found, ServerError):
                    total = total.with_more(Synced(left_out=[f"its {kind}s: {found.reason}"]))
                else:
                    synced = await self._store.sync(server, kind, found[0], scopes)
                    total = total.with_more(synced).with_more(Synced(left_out=found[1]))
            is_new = await self._store.save_about(server, about, scopes)
        if is_new or total.added or total.changed or total.removed:
            await self._notify(server)
        return total

    async def close(self) -> None:
        """Close all connections. Calling it twice is harmless."""
        following = list(self._following.values())
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def _list(
        self, connection: ServerConnection, kind: Kind
    ) -> tuple[list[dict[str, Any]], list[str]] | ServerError:
        """List all entries of a kind. Returns the error if the listing fails but the connection stays open; raises
        ServerError otherwise."""
        entries: list[dict[str, Any]] = []
        left_out: list[str] = []
        for name in _LISTS[kind]:
            try:
                listing = await connection.list_all(name)
            except ServerError as error:
                if not connection.is_open:
                    raise
                return error
            entries += listing.entries
            left_out += listing.left_out
        admits = connection.config.tools.admits
        return [one for one in entries if kind != "tool" or admits(one["name"])], left_out

    async def _take(self, config: McpServerConfig) -> None:
        """Add a server and load its entries from the trail. Raises AlreadyExists."""
        if config.id in self._configs:
            raise AlreadyExists("server", config.id)
        self._store.widen(config.scopes)
        self._configs[config.id] = config
        self._locks[config.id] = asyncio.Lock()
        # the client of servers is for folders that have some
        from clew.catalog.servers.connections.connection import ServerConnection

        self._connections[config.id] = ServerConnection(
            config,
            vault=self.vault,
            on_start=lambda: self._started(config.id),
            on_change=lambda: self._changed(config.id),
            on_end=partial(self._note_end, config.id),
            **self._given,
        )
        await self._store.load(config.id)

    async def _note_end(self, server: str, error: ServerError | ConfigError | None) -> None:
        """Store the reason of a server's failure; delete it once the server answers."""
        if error is not None:
            self._sound.discard(server)
            await self.failures.note(server, str(error), started=server in self._begun)
        elif server not in self._sound:
            self._sound.add(server)
            await self.failures.clear(server)

    async def _forget(self, server: str) -> None:
        """Close a server's connection and remove the server from the registry. Raises NotFound."""
        self.config(server)
        if (following := self._following.pop(server, None)) is not None:
            following.cancel()
        await self._connections.pop(server).close()
        del self._configs[server]

    def _started(self, server: str) -> None:
        """Schedule a listing after a server's start, since its lists may have changed. If the start was for a listing,
        none is scheduled."""
        self._begun.add(server)
        if server in self._locks and not self._locks[server].locked():
            self._changed(server)

    def _changed(self, server: str) -> None:
        self._again.add(server)
        if server in self._configs and server not in self._following:
            self._following[server] = asyncio.create_task(self._follow(server))

    async def _follow(self, server: str) -> None:
        try:
            while server in self._again:
                self._again.discard(server)
                self.problems.pop(server, None)
                try:
                    await self.refresh(server)
                except ClewError as error:
                    self.problems[server] = error.message
                await asyncio.sleep(SETTLE_SECONDS)
        finally:
            self._following.pop(server, None)

    async def _notify(self, server: str) -> None:
        if self.on_update is not None:
            await self.on_update(server)


class Servers:
    """The servers themselves."""

    def __init__(self, registry: ServerRegistry) -> None:
        self._registry = registry

    async def add(self, config: McpServerConfig, *, look: bool = True) -> ServerConnection:
        """Add a server and, by default, read its lists. Its current entries count as approved. Raises AlreadyExists,
        and ServerError or ConfigError if the lists cannot be read. The server is then not added.
        """
        await self._registry._take(config)
        if look and config.enabled:
            try:
                await self._registry.refresh(config.id)
            except ClewError:
                await self._registry._forget(config.id)
                await self._registry.failures.clear(config.id)
                raise
        return self._registry._connections[config.id]

    async def remove(self, server: str) -> None:
        """Close its connection, delete its entries and forget its login. Raises NotFound."""
        auth = self._registry.config(server).auth
        await self._registry._forget(server)
        if auth.type == "oauth":
            from clew.catalog.servers.login.login import log_out  # for a server that is removed

            await log_out(server, self._registry.vault)
        await self._registry._store.remove(server)
        await self._registry.failures.clear(server)
        await self._registry._notify(server)

    def list(self) -> Sequence[McpServerConfig]:
        return list(self._registry._configs.values())

    def get(self, server: str) -> ServerConnection:
        """The connection of a server, open or not. Raises NotFound."""
        self._registry.config(server)
        return self._registry._connections[server]


async def open_registry(
    trail: Trail, configs: Iterable[McpServerConfig] = (), *, by: Principal, **given: Any
) -> ServerRegistry:
    """Open a registry of these servers, with their entries from the trail. No server is contacted. The caller must
    close the registry."""
    registry = ServerRegistry(trail, by=by, **given)
    for config in configs:
        await registry._take(config)
    registry._has_others = bool(await registry._store.known_servers() - registry._configs.keys())
    return registry
