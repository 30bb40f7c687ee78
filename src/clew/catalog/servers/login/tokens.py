"""The token that the client sends to one server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from clew.catalog.servers.connections.hooks import ServerHookChain, ServerToken


class Tokens:
    """The token of one server. It is fetched on first use, and renewed only once if several requests find it
    expired."""

    def __init__(
        self, server: str, hooks: ServerHookChain, configured: Callable[[], Awaitable[ServerToken | None]]
    ) -> None:
        self._server = server
        self._hooks = hooks
        self._configured = configured
        self._token: ServerToken | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> ServerToken | None:
        async with self._lock:
            if self._token is None:
                self._token = await self._hooks.token(self._server) or await self._configured()
            return self._token

    async def renew(self, expired: ServerToken) -> ServerToken | None:
        """Return a token other than the refused one; None if there is no other."""
        async with self._lock:
            if self._token == expired:
                renewed = await self._hooks.token(self._server, expired)
                self._token = renewed if renewed is not None else expired
            return self._token if self._token != expired else None
