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
from clew.adapters.mcp.calls import Report
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.adapters.mcp.handshake import NOT_OPEN
from clew.background_tasks import cancel_all
from clew.catalog.operations.answers import CatalogAnswer, CatalogEntry, Item, MalformedItem, Question, Results
from clew.catalog.skills.files import SkillFiles

ROOTS_SECONDS = 5.0
"""How long requests wait for the client to name its folders."""
LATE_ROOTS_SECONDS = 600.0
"""How long the client may take to name them: it may have to ask its user."""

OpenCatalog = Callable[[Sequence[Path]], AbstractAsyncContextManager[tuple[CatalogInterface, Principal]]]
"""Opens the catalog of the first usable folder, else of the current one, with the principal of its user."""
_log = logging.getLogger("clew.mcp")


class LateCatalog:
    """A `CatalogInterface` whose folder is chosen by the client. Errors of opening it are raised by each request.

    A client that does not name its folders in time gets the current folder, until it names them.
    """

    def __init__(self, open_catalog: OpenCatalog) -> None:
        self._open = open_catalog
        self._chosen: asyncio.Queue[Sequence[Path]] = asyncio.Queue()
        self._is_chosen = False
        self._opened: asyncio.Future[tuple[CatalogInterface, Principal]] = asyncio.get_running_loop().create_future()
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
                    self._replace().set_result(opened)

    def _fail(self, error: Exception) -> None:
        """Raise the error in the requests that wait; the next request chooses the folder again."""
        failed = self._replace()
        self._is_chosen, self._opened = False, asyncio.get_running_loop().create_future()
        failed.set_exception(error)
        failed.exception()  # mark it as retrieved: there may be no request that waits for it

    def _replace(self) -> asyncio.Future[tuple[CatalogInterface, Principal]]:
        """The future for the next catalog: the one that requests wait for, or a new one."""
        if self._opened.done():
            self._opened = asyncio.get_running_loop().create_future()
        return self._opened

    async def meet(self, context: ServerRequestContext[Any, Any], *, is_connecting: bool) -> None:
        """Choose the folder of this client, once. During the handshake this works only for a client without roots."""
        has_roots = _has_roots(context)
        if self._is_chosen or (is_connecting and has_roots):
            return
        async with self._choosing:
            if not self._is_chosen:
                self._chosen.put_nowait(await self._ask_roots(context) if has_roots else [])
                self._is_chosen = True

    async def _ask_roots(self, context: ServerRequestContext[Any, Any]) -> Sequence[Path]:
        """The folders of the client; none where it takes too long, and then those that it names later are chosen."""
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
        """The same without waiting for it."""
        if not self._is_chosen:
            self._tasks.append(asyncio.create_task(self.meet(context, is_connecting=False)))

    async def _catalog(self) -> tuple[CatalogInterface, Principal]:
        return await asyncio.shield(self._opened)

    @property
    def principal(self) -> Principal:
        """Return the user of the folder; before it is open, a principal without records."""
        is_open = self._opened.done() and self._opened.exception() is None
        return self._opened.result()[1] if is_open else Principal(owner_id="nobody", agent_id="cli")

    async def ask(self, question: Question, *, by: Principal) -> CatalogAnswer:
        catalog, me = await self._catalog()
        return await catalog.ask(question, by=me)

    async def get(
        self,
        items: Sequence[Item | MalformedItem],
        *,
        by: Principal,
        handle: str | None = None,
        report: Report | None = None,
    ) -> Results:
        catalog, me = await self._catalog()
        return await catalog.get(items, by=me, handle=handle, report=report)

    async def rules(self, *, by: Principal, handle: str) -> str:
        catalog, me = await self._catalog()
        return await catalog.rules(by=me, handle=handle)

    async def instructions(self, *, by: Principal) -> str:
        return NOT_OPEN  # a handshake does not wait for the catalog

    async def list_resources(self, *, by: Principal, limit: int = 100) -> Sequence[CatalogEntry]:
        catalog, me = await self._catalog()
        return await catalog.list_resources(by=me, limit=limit)

    async def skill_files(self, *, by: Principal) -> SkillFiles | None:
        catalog, me = await self._catalog()
        return await catalog.skill_files(by=me)


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
