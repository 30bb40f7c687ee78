"""A catalog over the folder that an MCP client works in, for a server that was started without a folder.

A client names its folders with `roots/list`, which a server may ask for only after the handshake. So the catalog opens
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
"""How long the client may take to name its folders."""

OpenCatalog = Callable[[Sequence[Path]], AbstractAsyncContextManager[tuple[CatalogInterface, Principal]]]
"""Opens the catalog of the first folder that can be used, or of the current one, and the principal of its user."""
_log = logging.getLogger("clew.mcp")


class LateCatalog:
    """A `CatalogInterface` whose folder is chosen by the client. Errors of opening it are raised by each request."""

    def __init__(self, open_catalog: OpenCatalog) -> None:
        self._open = open_catalog
        self._roots: asyncio.Future[Sequence[Path]] = asyncio.get_running_loop().create_future()
        self._opened: asyncio.Future[tuple[CatalogInterface, Principal]] = asyncio.get_running_loop().create_future()
        self._choosing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the catalog open while the context is."""
        self._tasks.append(asyncio.create_task(self._hold()))
        try:
            yield
        finally:
            await cancel_all(self._tasks)
            if self._opened.done() and not self._opened.cancelled():
                self._opened.exception()  # mark it as retrieved: there may have been no request

    async def _hold(self) -> None:
        """Open the catalog of the roots. After a failure the next request chooses the folder again."""
        while True:
            roots = await self._roots
            try:
                async with self._open(roots) as opened:
                    self._opened.set_result(opened)
                    await asyncio.Event().wait()
            except Exception as error:  # the boundary of a task: requests get the error
                if self._opened.done():
                    raise
                failed, loop = self._opened, asyncio.get_running_loop()
                self._roots, self._opened = loop.create_future(), loop.create_future()
                failed.set_exception(error)
                failed.exception()  # mark it as retrieved: there may be no request that waits for it

    async def meet(self, context: ServerRequestContext[Any, Any], *, is_connecting: bool) -> None:
        """Choose the folder of this client, once. During the handshake only a client without roots can be met."""
        has_roots = _has_roots(context)
        if self._roots.done() or (is_connecting and has_roots):
            return
        async with self._choosing:
            if not self._roots.done():
                self._roots.set_result(await read_roots(context) if has_roots else [])

    def meet_soon(self, context: ServerRequestContext[Any, Any]) -> None:
        """The same without waiting for it."""
        if not self._roots.done():
            self._tasks.append(asyncio.create_task(self.meet(context, is_connecting=False)))

    async def _catalog(self) -> tuple[CatalogInterface, Principal]:
        return await asyncio.shield(self._opened)

    @property
    def principal(self) -> Principal:
        """The user of the folder; before it is open, one that owns nothing."""
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
    """Whether the client can be asked for its folders; a handshake that is under way carries that in its parameters."""
    if context.method == "initialize":
        given = (context.params or {}).get("capabilities")
        return isinstance(given, Mapping) and given.get("roots") is not None
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None and context.session.can_send_request


async def read_roots(context: ServerRequestContext[Any, Any]) -> list[Path]:
    """The folders of this machine that the client names; empty where it does not answer."""
    try:
        found = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_SECONDS
        )
    except (MCPError, ValidationError, TimeoutError) as error:
        _log.warning("the client did not name its folders: %s", error)
        return []
    return [path for root in found.roots if (path := _local_path(str(root.uri))) is not None]


def _local_path(uri: str) -> Path | None:
    """The folder of a `file:` address on this machine, or None."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(url2pathname(parts.path))
    return path if path.is_absolute() and path.is_dir() else None
