"""A catalog with observable tools for the tests of the MCP server, and the server itself on a free port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.routing import Route

from clew.access import Principal
from clew.adapters.mcp.http import PATH, McpApp, build_mcp_app
from clew.adapters.rest.auth import Keys, open_keys
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.indexing.code_resources import with_defined
from clew.catalog.indexing.pipeline import run_pipeline
from clew.catalog.resource import Resource
from clew.clock import SystemClock
from clew.errors import SourceError
from clew.tools import GuidedContent, guide, tool
from clew.trail import open_trail
from clew.trail.store import Trail
from tests.servers import PATIENCE, give_key

ERAS = ("legacy", "2026-07-28")
ME = Principal(owner_id="acme", agent_id="ann")
SECRET = "hunter2-must-stay-unseen"


class Gate:
    """Records when a waiting tool begins and when it is cancelled."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def wait(self) -> None:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def fraud_domain(gate: Gate | None = None) -> Domain:
    """A small domain: an entry point with guidance, a hidden tool, ones that fail, one that never ends."""

    @tool
    async def investigate(user_id: int) -> GuidedContent:
        """Look into a user who may be a fraud: transactions, devices and earlier cases."""
        step = guide("fraud://tools/hidden/freeze", "Freeze the account when the transactions look stolen", id=user_id)
        return GuidedContent(content=f"User {user_id} has 3 odd transactions.", guidance=(step,))

    @tool(name="freeze", searchable=False)
    async def freeze(id: int) -> str:
        """Freeze the account of a user."""
        return f"Account {id} is frozen."

    @tool(name="break")
    async def break_down() -> str:
        """A tool that always fails with an error of its own."""
        raise SourceError("warehouse", "is closed", hint="Come back tomorrow")

    @tool
    async def wait() -> str:
        """A tool that waits for ever."""
        await (gate or Gate()).wait()
        return "never"

    async def fetch(client: Any) -> str:
        return "# Handbook\n\nAsk for the receipt first. 日本語 \U0001f9f5"

    handbook = Resource(path="handbook", name="Handbook", description="How a fraud case is handled", fetch=fetch)
    return Domain(
        name="fraud",
        description="Find and stop fraud",
        tools=(investigate, freeze, break_down, wait),
        resources=(handbook,),
    )


@contextlib.asynccontextmanager
async def open_catalog(folder: Path, *domains: Domain, strict: bool = False) -> AsyncIterator[Catalog]:
    """A catalog on a trail of its own, with the domains' resources indexed."""
    clock = SystemClock()
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", clock)
    try:
        catalog = Catalog(trail, clock, owner=ME, strict=strict)
        for domain in domains:
            await catalog.add(domain)
            await index(trail, domain)
        yield catalog
    finally:
        await trail.close()


async def index(trail: Trail, domain: Domain) -> None:
    """Bring the resources of a domain onto the trail."""
    whole = with_defined(domain)
    for pipeline in whole.extractors:
        await run_pipeline(trail, whole, pipeline, by=ME, clock=SystemClock())


class Door:
    """A running server, and the keys that its tokens come from."""

    def __init__(self, url: str, keys: Keys) -> None:
        self.url = url
        self.keys = keys

    def headers(self, by: Principal = ME) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys.issue(by).token}"}

    @contextlib.asynccontextmanager
    async def client(self, mode: str, by: Principal = ME, **more: Any) -> AsyncIterator[Client]:
        """A client of the Python SDK with a token of its own."""
        async with (
            httpx2.AsyncClient(headers=self.headers(by), timeout=PATIENCE) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **more) as client,
        ):
            yield client


@contextlib.asynccontextmanager
async def serve_app(app: McpApp, keys: Keys) -> AsyncIterator[Door]:
    """Serve an application at /mcp of a real server."""
    starlette = Starlette(routes=[Route(PATH, app)])
    config = uvicorn.Config(starlette, port=0, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    async with app.running():
        task = asyncio.create_task(server.serve())
        try:
            async with asyncio.timeout(PATIENCE):
                while not server.started:
                    await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Door(f"http://127.0.0.1:{port}{PATH}", keys)
        finally:
            server.should_exit = True
            await asyncio.wait_for(task, PATIENCE)


@contextlib.asynccontextmanager
async def serve_catalog(folder: Path, catalog: Catalog, **more: Any) -> AsyncIterator[Door]:
    give_key(folder)
    keys = open_keys(folder, SystemClock())
    async with serve_app(build_mcp_app(catalog, keys, **more), keys) as door:
        yield door
