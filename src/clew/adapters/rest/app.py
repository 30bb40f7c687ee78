"""The REST application: the route table of all nouns, behind the outermost middleware (`door.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from clew.access import Principal
from clew.adapters.rest.auth import Keys
from clew.adapters.rest.dispatch import Dispatcher
from clew.adapters.rest.door import Door
from clew.adapters.rest.operation import Endpoint, RestOperation, Services, Sweeper
from clew.adapters.rest.routes import (
    admin,
    breadcrumbs,
    catalog,
    chat,
    edges,
    events,
    messages,
    plans,
    routing,
    runs,
    sessions,
    subscriptions,
    system,
    tasks,
    tokens,
)
from clew.catalog.workspace.workspace import Workspace, empty_workspace
from clew.clock import Clock, SystemClock
from clew.config import Config, ServerConfig
from clew.llm.model import Models
from clew.team.router import Router
from clew.team.team import Team
from clew.telemetry.metrics import Metrics
from clew.trail.store import Trail

if TYPE_CHECKING:
    from clew.telemetry.request_spans import RequestTracer

OPERATIONS: tuple[RestOperation, ...] = (
    *breadcrumbs.OPERATIONS,
    *edges.OPERATIONS,
    *events.OPERATIONS,
    *chat.OPERATIONS,
    *sessions.OPERATIONS,
    *runs.OPERATIONS,
    *plans.OPERATIONS,
    *tasks.OPERATIONS,
    *messages.OPERATIONS,
    *catalog.OPERATIONS,
    *routing.OPERATIONS,
    *subscriptions.OPERATIONS,
    *admin.OPERATIONS,
    *tokens.OPERATIONS,
    *system.OPERATIONS,
)
"""The route table. Paths are tried in this order, so the frequent ones come first."""


class RestApp(Door):
    """The complete application: the outermost middleware with all routes behind it. Setting `closing` ends all
    streams."""

    def __init__(
        self,
        app: ASGIApp,
        closing: asyncio.Event,
        *,
        metrics: Metrics,
        clock: Clock,
        server: ServerConfig,
        tracer: RequestTracer | None = None,
    ) -> None:
        super().__init__(app, metrics, clock, server, tracer)
        self.closing = closing


def build_app(
    trail: Trail,
    keys: Keys,
    hygiene: Sweeper,
    *,
    config: Config | None = None,
    metrics: Metrics | None = None,
    tracer: RequestTracer | None = None,
    clock: Clock | None = None,
    refresh_webhooks: Callable[[], None] = lambda: None,
    set_up: Callable[[str], Awaitable[None]] | None = None,
    workspace: Callable[[], Awaitable[Workspace]] | None = None,
    models: Models | None = None,
    router: Router | None = None,
    team: Callable[[], Awaitable[Team]] | None = None,
    mcp: ASGIApp | None = None,
    is_draining: Callable[[], bool] = lambda: False,
    operations: Sequence[RestOperation] = OPERATIONS,
) -> RestApp:
    """Build an ASGI application over an open trail. The application neither opens nor closes the trail.

    `set_up` prepares an owner before its first call. Without a `workspace` the catalog is empty. `models` are those of
    the agents that run for the configured owner; without them messages wait for agents elsewhere. Without a `router`
    messages are routed without a model. `team` opens the team of the configured owner. `mcp` answers /mcp. With a
    `tracer` requests leave spans. While `is_draining`, /ready answers 503. `operations` are the routes. Setting
    `closing` of the application ends all streams; `run_server` does so.
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
        set_up=set_up or _nothing,
        workspace=workspace or _empty(trail, clock, Principal(owner_id=config.owner)),
        models=models,
        router=router or Router(clock=clock),
        team=team,
        agent=config.agent.name,
        closing=asyncio.Event(),
        operations=operations,
        is_draining=is_draining,
    )
    dispatcher = Dispatcher(_endpoints(services) | ({"/mcp": mcp} if mcp is not None else {}))
    return RestApp(dispatcher, services.closing, metrics=metrics, clock=clock, server=config.server, tracer=tracer)


async def _nothing(owner_id: str) -> None:
    """Set up nothing: the caller of `build_app` has done it."""


def _empty(trail: Trail, clock: Clock, owner: Principal) -> Callable[[], Awaitable[Workspace]]:
    workspace = empty_workspace(trail, clock, owner)

    async def get() -> Workspace:
        return workspace

    return get


def _endpoints(services: Services) -> dict[str, ASGIApp]:
    """Build one endpoint per path. It knows all methods of the path, so that a 405 response can list them."""
    by_path: dict[str, list[RestOperation]] = {}
    for operation in services.operations:
        by_path.setdefault(operation.path, []).append(operation)
    return {path: Endpoint(path, group, services) for path, group in by_path.items()}
