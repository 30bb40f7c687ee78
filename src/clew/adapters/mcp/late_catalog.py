"""The catalog of the folder that an MCP client works in, for a server that was started without a folder.

A client names its folders with `roots/list`, which a server may request only after the handshake. The catalog opens
then, and requests wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from clew.access import Principal
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.adapters.mcp.handshake import NOT_OPEN
from clew.background_tasks import cancel_all
from clew.errors import ClewError

ROOTS_SECONDS = 5.0
"""The seconds that requests wait for the client to name its folders."""
LATE_ROOTS_SECONDS = 600.0
"""The seconds that the client may take to name them: it may have to ask its user."""

OpenedCatalog = tuple[CatalogInterface, Principal]
OpenCatalog = Callable[[Sequence[Path]], AbstractAsyncContextManager[OpenedCatalog]]
"""Opens the catalog of the first usable folder, else of the current one, with the principal of its user."""
NOBODY = Principal(owner_id="nobody", agent_id="cli")
"""The principal of requests that need no folder."""
_log = logging.getLogger("clew.mcp")


class ClientFolderCatalog:
    """The catalog of a folder that the client chooses. It is opened once, and all requests share it. If it cannot be
    opened, the waiting requests raise the error, and the next request tries again.

    A client that does not name its folders in time gets the current folder, until it names one that can be opened.
    """

    def __init__(self, open_catalog: OpenCatalog) -> None:
        self._open = open_catalog
        self._chosen: asyncio.Queue[Sequence[Path]] = asyncio.Queue()
        self._is_chosen = False
        self._opened: asyncio.Future[OpenedCatalog] = asyncio.get_running_loop().create_future()
        self._choosing = asyncio.Lock()
        self._tasks: list[asyncio.Task[Any]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the catalog open while the context is open."""
        self._tasks.append(asyncio.create_task(self._hold()))
        try:
            yield
        finally:
            await cancel_all(self._tasks)
            if self._opened.done() and not self._opened.cancelled():
                self._opened.exception()  # mark it as retrieved, because there may have been no request

    async def _hold(self) -> None:
        """Open the catalogs of the folders that are chosen. An earlier one stays open: requests may still use it."""
        async with contextlib.AsyncExitStack() as held:
            while True:
                roots = await self._chosen.get()
                try:
                    opened = await held.enter_async_context(self._open(roots))
                except Exception as error:  # the boundary of a task: requests get the error
                    self._fail(error)
                else:
                    self._succeed(opened)

    def _succeed(self, opened: OpenedCatalog) -> None:
        if self._opened.done():
            self._opened = asyncio.get_running_loop().create_future()
        self._opened.set_result(opened)
        self._is_chosen = True

    def _fail(self, error: Exception) -> None:
        """Raise the error in the requests that wait; the next request chooses the folder again. A catalog that is open
        already stays in use."""
        if self._opened.done():
            reason = error if isinstance(error, ClewError) else type(error).__name__
            _log.error("the folder that the client named cannot be opened: %s", reason)
            return
        self._is_chosen = False
        self._opened.set_exception(error)
        self._opened.exception()  # mark it as retrieved: there may be no request that waits for it

    async def meet(self, context: ServerRequestContext[Any, Any], *, is_connecting: bool) -> None:
        """Choose the folder of this client, once. During the handshake this works only for a client without roots."""
        has_roots = _has_roots(context)
        if self._is_chosen or (is_connecting and has_roots):
            return
        async with self._choosing:
            if not self._is_chosen:
                roots = await self._ask_roots(context) if has_roots else []
                if self._opened.done() and self._opened.exception() is not None:
                    self._opened = asyncio.get_running_loop().create_future()  # this request waits for the next attempt
                self._chosen.put_nowait(roots)
                self._is_chosen = True

    async def _ask_roots(self, context: ServerRequestContext[Any, Any]) -> Sequence[Path]:
        """The folders of the client. If it does not answer in time, returns none, and the folders are chosen when it
        names them later."""
        asked = asyncio.create_task(read_roots(context))
        self._tasks.append(asked)
        await asyncio.wait((asked,), timeout=ROOTS_SECONDS)
        if asked.done():
            return asked.result()
        _log.warning("the client has not named its folders within %g seconds", ROOTS_SECONDS)
        asked.add_done_callback(self._choose_late)
        return []

    def _choose_late(self, asked: asyncio.Task[list[Path]]) -> None:
        if not asked.cancelled() and asked.exception() is None and asked.result():
            self._chosen.put_nowait(asked.result())

    def meet_soon(self, context: ServerRequestContext[Any, Any]) -> None:
        """Like `meet`, but without waiting."""
        if not self._is_chosen:
            self._tasks.append(asyncio.create_task(self.meet(context, is_connecting=False)))

    async def opened(self) -> OpenedCatalog:
        """Return the catalog and the user of the folder, once it is open. Raises the error of opening it."""
        return await asyncio.shield(self._opened)

    async def instructions(self, *, by: Principal) -> str:
        return NOT_OPEN  # a handshake does not wait for the catalog


def _has_roots(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client supports `roots/list`. During a handshake, its parameters have this capability."""
    if context.method == "initialize":
        given = (context.params or {}).get("capabilities")
        return isinstance(given, Mapping) and given.get("roots") is not None
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None and context.session.can_send_request


async def read_roots(context: ServerRequestContext[Any, Any]) -> list[Path]:
    """Return the local folders that the client names; empty if it does not answer."""
    try:
        found = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=LATE_ROOTS_SECONDS
        )
    except (MCPError, ValidationError, TimeoutError) as error:
        _log.warning("the client did not name its folders: %s", error)
        return []
    return [path for root in found.roots if (path := _local_path(str(root.uri))) is not None]


def _local_path(uri: str) -> Path | None:
    """Return the local folder of a `file:` address, or None."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(url2pathname(parts.path))
    return path if path.is_absolute() and path.is_dir() else None
