"""The catalog over REST: the same two operations as everywhere, why something is shown, and the sources."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.catalog.catalog import NAMED_KINDS, DomainInfo
from clew.catalog.indexing.lifecycle import SourceState
from clew.catalog.indexing.pipeline import Report
from clew.catalog.operations.answers import AskBody, GivenItem, Results, read_items
from clew.catalog.operations.answers import CatalogAnswer as Found
from clew.catalog.operations.why import RouteExplanation
from clew.errors import AccessDenied, HandleRefused, InvalidInput, NotFound, TooLarge


class Items(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Routes to run in parallel, and the handle of an earlier answer."""

    routes: list[GivenItem]
    handle: str | None = None


class WhyQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    route: str
    handle: str | None = None


class WhyNamedQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    handle: str | None = None


class Refresh(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The source to refresh; without one, the stale sources. `force` accepts a source that is suddenly empty."""

    source: str | None = None
    force: bool = False


class Domains(msgspec.Struct, frozen=True, kw_only=True):
    """The domains that the caller may see; a curator of the server's owner also sees those that wait for consent."""

    items: list[DomainInfo]


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The configured sources and how fresh they are."""

    items: list[SourceState]


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """The reports of refreshed sources."""

    items: Sequence[Report]


async def ask(call: RestCall) -> RestAnswer:
    workspace = await call.services.workspace()
    return reply(await workspace.catalog.ask(call.body.to_question(), by=call.by))


async def get(call: RestCall) -> RestAnswer:
    workspace = await call.services.workspace()
    return reply(await workspace.catalog.get(read_items(call.body.routes), by=call.by, handle=call.body.handle))


async def why(call: RestCall) -> RestAnswer:
    workspace = await call.services.workspace()
    return reply(await workspace.catalog.why(call.query.route, by=call.by, handle=call.query.handle))


async def why_named(call: RestCall) -> RestAnswer:
    kind, name = call.path["kind"], call.path["name"]
    if kind not in NAMED_KINDS:
        raise InvalidInput("kind", f"{kind[:50]!r} is not a kind", hint=f"Kinds are {', '.join(NAMED_KINDS)}")
    workspace = await call.services.workspace()
    return reply(await workspace.catalog.why(f"{kind}:{name}", by=call.by, handle=call.query.handle))


async def list_domains(call: RestCall) -> RestAnswer:
    workspace = await call.services.workspace()
    return reply(Domains(items=workspace.domains(by=call.by)))


async def list_sources(call: RestCall) -> RestAnswer:
    _require_operator(call)
    workspace = await call.services.workspace()
    return reply(Sources(items=await workspace.lifecycle().sources()))


async def refresh(call: RestCall) -> RestAnswer:
    _require_operator(call)
    lifecycle = (await call.services.workspace()).lifecycle()
    if call.body.source is None:
        return reply(Reports(items=await lifecycle.restart()))
    return reply(Reports(items=await lifecycle.refresh_source(call.body.source, force=call.body.force)))


def _require_operator(call: RestCall) -> None:
    """Raise AccessDenied unless the caller belongs to the owner that runs the server, who owns the sources."""
    if call.by.owner_id != call.services.operator:
        raise AccessDenied("look at the sources", [f"curator of {call.services.operator}"])


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/ask",
        handler=ask,
        summary="Ask what can be done and what is known",
        group="catalog",
        verb="read",
        writes=True,
        body=AskBody,
        answer=Found,
        raises=(HandleRefused, InvalidInput, NotFound, TooLarge),
    ),
    RestOperation(
        method="POST",
        path="/get",
        handler=get,
        summary="Run routes in parallel; the error of a route is in its result",
        group="catalog",
        verb="read",
        writes=True,
        body=Items,
        answer=Results,
        raises=(HandleRefused, InvalidInput, TooLarge),
    ),
    RestOperation(
        method="GET",
        path="/why",
        handler=why,
        summary="Why the caller can or cannot use a route",
        group="catalog",
        verb="read",
        query=WhyQuery,
        answer=RouteExplanation,
        raises=(HandleRefused, InvalidInput),
    ),
    RestOperation(
        method="GET",
        path="/why/{kind}/{name}",
        handler=why_named,
        summary="Why the caller has or does not have a skill, a toolset, or a tool of a toolset",
        group="catalog",
        verb="read",
        query=WhyNamedQuery,
        answer=RouteExplanation,
        raises=(HandleRefused, InvalidInput),
    ),
    RestOperation(
        method="GET",
        path="/domains",
        handler=list_domains,
        summary="List the domains that the caller may see",
        group="catalog",
        verb="read",
        answer=Domains,
    ),
    RestOperation(
        method="GET",
        path="/sources",
        handler=list_sources,
        summary="List the sources and how fresh they are",
        group="catalog",
        verb="administer",
        answer=Sources,
    ),
    RestOperation(
        method="POST",
        path="/sources/refresh",
        handler=refresh,
        summary="Refresh one source, or those that are stale",
        group="catalog",
        verb="administer",
        writes=True,
        body=Refresh,
        answer=Reports,
        raises=(NotFound,),
    ),
)
