"""The REST application: the route table of all nouns, behind one door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from clew.access import Principal
from clew.adapters.rest.auth import Keys
from clew.adapters.rest.door import Door
from clew.adapters.rest.errors import answer_clew_error, answer_protocol_error
from clew.adapters.rest.metrics import Metrics
from clew.adapters.rest.operation import Endpoint, Operation, Services, Sweeper
from clew.adapters.rest.routes import (
    admin,
    breadcrumbs,
    catalog,
    chat,
    edges,
    events,
    routing,
    runs,
    subscriptions,
    system,
    tokens,
)
from clew.catalog.workspace.workspace import Workspace, empty_workspace
from clew.clock import Clock, SystemClock
from clew.config import Config
from clew.errors import ClewError
from clew.llm.model import Models
from clew.team.router import Router
from clew.trail.store import Trail

OPERATIONS: tuple[Operation, ...] = (
    *breadcrumbs.OPERATIONS,
    *edges.OPERATIONS,
    *events.OPERATIONS,
    *chat.OPERATIONS,
    *runs.OPERATIONS,
    *catalog.OPERATIONS,
    *routing.OPERATIONS,
    *subscriptions.OPERATIONS,
    *admin.OPERATIONS,
    *tokens.OPERATIONS,
    *system.OPERATIONS,
)
"""The route table. Paths are tried in this order, so the frequent ones come first."""


def build_app(
    trail: Trail,
    keys: Keys,
    hygiene: Sweeper,
    *,
    config: Config | None = None,
    metrics: Metrics | None = None,
    clock: Clock | None = None,
    refresh_webhooks: Callable[[], None] = lambda: None,
    workspace: Callable[[], Awaitable[Workspace]] | None = None,
    models: Models | None = None,
    router: Router | None = None,
    mcp: ASGIApp | None = None,
) -> Starlette:
    """An ASGI application over an open trail. It opens and closes nothing itself.

    Without a `workspace` the catalog is empty; without `models` nobody looks whether an agent has one; without a
    `router` messages are routed without a model. `mcp` answers
    /mcp where it is given. `app.state.closing` is an event that ends all streams once it is set; `run_server` does so.
    """
    config, metrics, clock = config or Config(), metrics or Metrics(), clock or SystemClock()
    services = Services(
        trail=trail,
        keys=keys,
        clock=clock,
        hygiene=hygiene,
        metrics=metrics,
        operator=config.owner,
        max_body=config.server.max_body,
        allow_networks=config.webhooks.allow,
        refresh_webhooks=refresh_webhooks,
        workspace=workspace or _empty(trail, clock, Principal(owner_id=config.owner)),
        models=models,
        router=router or Router(clock=clock),
        closing=asyncio.Event(),
        operations=OPERATIONS,
    )
    app = Starlette(
        routes=[*_routes(services), *([Route("/mcp", mcp)] if mcp is not None else [])],
        middleware=[Middleware(Door, metrics=metrics, clock=clock, server=config.server)],
        exception_handlers={ClewError: answer_clew_error, HTTPException: answer_protocol_error},
    )
    app.router.redirect_slashes = False
    app.state.closing = services.closing
    app.state.paths = tuple(dict.fromkeys(each.path for each in OPERATIONS))
    return app


def _empty(trail: Trail, clock: Clock, owner: Principal) -> Callable[[], Awaitable[Workspace]]:
    workspace = empty_workspace(trail, clock, owner)

    async def get() -> Workspace:
        return workspace

    return get


def _routes(services: Services) -> list[Route]:
    """One route a path: it knows all methods of that path, so 405 can list them."""
    by_path: dict[str, list[Operation]] = {}
    for operation in services.operations:
        by_path.setdefault(operation.path, []).append(operation)
    # A name may hold a slash; it is always the last part of its path.
    return [
        Route(path.replace("{name}", "{name:path}"), Endpoint(path, group, services)) for path, group in by_path.items()
    ]
