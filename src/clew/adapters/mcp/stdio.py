"""Serves MCP on standard input and output, for one client and one principal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop

from clew.access import Principal
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.adapters.mcp.handshake import Handshake
from clew.adapters.mcp.late_catalog import NOBODY, ClientFolderCatalog, OpenCatalog
from clew.adapters.mcp.pipes import open_pipes
from clew.adapters.mcp.server import build_server

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve_stdio(catalog: CatalogInterface, principal: Principal) -> None:
    """Serve until standard input ends, or until SIGINT or SIGTERM. The first request determines the protocol era.

    Standard output carries only the protocol; prints and logs go to standard error.
    """
    await _serve(build_server(catalog, lambda context: principal))


async def serve_client_folder(open_catalog: OpenCatalog, handshake: Handshake) -> None:
    """Like `serve_stdio`, but for the folder that the client works in. `handshake` may have answered the client
    already."""
    catalog = ClientFolderCatalog(open_catalog)
    async with catalog.running():
        await _serve(build_server(catalog, lambda context: NOBODY), handshake)


async def _serve(server: Server[Any], handshake: Handshake | None = None) -> None:
    async with open_pipes(handshake) as (incoming, outgoing):
        with anyio.CancelScope() as scope, _on_signals(scope.cancel):
            await serve_dual_era_loop(server, incoming, outgoing, lifespan_state={})


@contextlib.contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at a signal. Works only in the main thread, and not on Windows."""
    loop = asyncio.get_running_loop()
    heard = []
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for each in _SIGNALS:
            loop.add_signal_handler(each, stop)
            heard.append(each)
    try:
        yield
    finally:
        for each in heard:
            loop.remove_signal_handler(each)
