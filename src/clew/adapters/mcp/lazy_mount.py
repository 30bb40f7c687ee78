"""The MCP endpoint of the REST server, built at the first request, because the SDK takes most of a second to import and
much memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from clew.adapters.rest.auth import Keys
from clew.catalog.workspace.workspace import Workspace
from clew.config import Config

if TYPE_CHECKING:
    from clew.adapters.mcp.http import McpApp


class LazyMcpApp:
    """An ASGI application for /mcp. The first request waits until it is built."""

    def __init__(self, workspace: Callable[[], Awaitable[Workspace]], keys: Keys, config: Config) -> None:
        self._workspace = workspace
        self._keys = keys
        self._server = config.server
        self._built: asyncio.Future[McpApp] | None = None
        self._wanted = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self, closing: asyncio.Event) -> AsyncIterator[None]:
        """Serve while the context is open. When `closing` is set, sessions and their streams end at once."""
        self._built = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(self._built, closing))
        try:
            yield
        finally:
            closing.set()
            await serving
            self._built.cancel()  # no request can wait for it now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._built is not None, "requests come while it runs"
        self._wanted.set()
        app = await asyncio.shield(self._built)
        await app(scope, receive, send)

    async def _serve(self, built: asyncio.Future[McpApp], closing: asyncio.Event) -> None:
        waits = {asyncio.create_task(self._wanted.wait()), asyncio.create_task(closing.wait())}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if not self._wanted.is_set():
            return
        try:
            app = await self._build()
        except Exception as error:  # the boundary of a task: requests get the error
            built.set_exception(error)
            built.exception()  # mark it as retrieved, because there may be no request
            return
        async with app.running(closing):
            built.set_result(app)
            await closing.wait()

    async def _build(self) -> McpApp:
        http: Any = await asyncio.to_thread(import_module, "clew.adapters.mcp.http")
        workspace = await self._workspace()
        named = (self._server.host, *self._server.hosts)
        hosts = tuple(f"{name}{port}" for name in named for port in ("", ":*"))
        origins = tuple(f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts)
        app: McpApp = http.build_mcp_app(
            workspace.catalog,
            self._keys,
            hosts=(*http.LOCAL_HOSTS, *hosts),
            origins=(*http.LOCAL_ORIGINS, *origins),
            max_body=self._server.max_body,
        )
        return app
