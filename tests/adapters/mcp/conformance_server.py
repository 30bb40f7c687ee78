"""A process to be measured: `python -m tests.adapters.mcp.conformance_server real|fixture FOLDER`.

Prints its address, and serves until its input ends. The suite knows no tokens, so each request is given one here.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from clew.adapters.mcp.http import LOCAL_HOSTS, LOCAL_ORIGINS, PATH, McpApp, build_mcp_app
from clew.adapters.rest.auth import Keys, open_keys
from clew.clock import SystemClock
from tests.adapters.mcp.catalogs import ME, fraud_domain, open_catalog
from tests.adapters.mcp.fixture_server import build_fixture_server
from tests.servers import give_key


class WithToken:
    """The application as a holder of a token sees it."""

    def __init__(self, app: McpApp, keys: Keys) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {keys.issue(ME).token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "headers": [*scope["headers"], self._header]}, receive, send)


@contextlib.asynccontextmanager
async def open_door(kind: str, folder: Path, keys: Keys) -> AsyncIterator[McpApp]:
    if kind == "fixture":
        server = build_fixture_server()
        yield McpApp(server, keys, hosts=LOCAL_HOSTS, origins=LOCAL_ORIGINS, max_body=1_000_000)
        return
    async with open_catalog(folder, fraud_domain()) as catalog:
        yield build_mcp_app(catalog, keys)


async def main(kind: str, folder: Path) -> None:
    give_key(folder)
    keys = open_keys(folder, SystemClock())
    async with open_door(kind, folder, keys) as app, app.running():
        served = Starlette(routes=[Route(PATH, WithToken(app, keys))])
        config = uvicorn.Config(served, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(f"http://localhost:{port}{PATH}", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.should_exit = True
        await task


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
