"""The last failure of each foreign server, for commands that do not start servers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID, uuid5

from clew.access import Principal
from clew.catalog.indexing.source_ledger import KEEPER, keeper
from clew.catalog.operations.text import one_line
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.launch_values import resolve_token, resolve_values
from clew.catalog.servers.login.login_store import LoginStore
from clew.catalog.servers.login.vault import Vault
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Draft
from clew.trail.store import Trail

SCHEMA = "mcp.look.v1"
MAX_PROBLEM = 500
_NAMESPACE = UUID("0d1c2a54-3f0e-5d0b-9a7e-6f1b7c9d2e48")


class ServerFailures:
    """The last error of each server, by its id."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail = trail
        self._by = keeper(by)

    async def problem(self, server: str) -> str:
        """Return the last error, or an empty text if there is none."""
        found = await self._find(server)
        return str(found.context.get("problem", "")) if found is not None else ""

    async def could_not_start(self, server: str) -> bool:
        """Whether the last error prevented the server from starting, so that a new start shows whether it is fixed. For
        a server that failed later, a successful start proves nothing."""
        found = await self._find(server)
        return found is not None and found.context.get("started") is False

    async def note(self, server: str, problem: str, *, started: bool) -> None:
        """Store the reason for a failure, and whether the server had started."""
        told = {"server": server, "problem": one_line(problem, MAX_PROBLEM), "started": started}
        found = await self._find(server)
        if found is None:
            with suppress(AlreadyExists):  # another process was quicker
                await self._trail.records.create(self._draft(server, told), by=self._by)
        elif found.context != told:
            with suppress(Conflict, NotFound):  # the same
                await self._trail.records.update(found.id, Change(context=told), expect=found.version, by=self._by)

    async def clear(self, server: str) -> None:
        """Delete the error: the server answered, or is no longer configured."""
        if await self._find(server) is not None:
            with suppress(NotFound):
                await self._trail.records.delete(self._id(server), by=self._by)

    async def _find(self, server: str) -> Breadcrumb | None:
        try:
            return await self._trail.records.get(self._id(server), by=self._by)
        except NotFound:
            return None

    def _draft(self, server: str, told: dict[str, object]) -> Draft:
        return Draft(
            id=self._id(server),
            schema_name=SCHEMA,
            title=f"Last look at {server}",
            context=told,
            tags=(f"server:{server}",),
            scopes=(KEEPER,),
            ttl=NEVER,
            embed="never",
        )

    def _id(self, server: str) -> str:
        return str(uuid5(_NAMESPACE, f"{self._by.owner_id}\n{server}"))


async def is_logged_in(config: McpServerConfig, vault: Vault, environ: Mapping[str, str]) -> bool | None:
    """Whether the user is logged in to a server that requires a personal login; None for any other server. Does not
    contact the server.

    Raises ConfigError for a variable or secret that is not set.
    """
    if not config.auth.asks_user:
        return None
    if await resolve_token(config, environ, vault.reveal) is not None:
        return True
    values = await resolve_values(config, environ, vault.reveal)
    login = await LoginStore(config.id, values.url, vault, lambda: 0.0).read()
    return login.tokens is not None
