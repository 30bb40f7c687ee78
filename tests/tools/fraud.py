"""The fraud investigation that the tests of tools and of the catalog share: a warehouse whose analyst leads to hidden
tools, and support in another domain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.indexing.lifecycle import Lifecycle
from clew.catalog.operations.answers import CatalogAnswer, Item, Question, Results
from clew.clock import Clock, SystemClock
from clew.llm import open_embedder
from clew.tools import Guidance, GuidedContent, Tool, ToolContext, guide, tool
from clew.trail import open_trail
from clew.trail.store import Trail

ME = Principal(owner_id="acme", agent_id="ann")
ANALYST = "warehouse://tools/analyst"
USER = "warehouse://tools/hidden/user-investigation"
FINCRIME = "warehouse://tools/hidden/fincrime"
VIP = "support://tools/hidden/vip-care"
USERS: Mapping[str, Mapping[str, int]] = {
    "u1": {"riskScore": 91, "lifetimeSpend": 20},
    "u2": {"riskScore": 80, "lifetimeSpend": 10_000},
    "u3": {"riskScore": 99, "lifetimeSpend": 10_001},
}


@tool
async def analyst(topic: str = "", limit: int = 10) -> GuidedContent:
    """Analyst with schema knowledge: orders, users, revenue and fraud investigation."""
    return GuidedContent(content="# Guide", guidance=[guide(USER, "Look closely at one user", user_id="u1")])


@tool(searchable=False)
async def user_investigation(user_id: str, ctx: ToolContext) -> GuidedContent:
    """All signals about one user: devices, payments, risk."""
    user = ctx.client[user_id]
    steps: list[Guidance] = []
    if user["riskScore"] > 80:
        steps.append(guide(FINCRIME, "The risk score is over 80", user_id=user_id))
    if user["lifetimeSpend"] > 10_000:
        steps.append(guide(VIP, "A customer who spends that much is cared for", user_id=user_id))
    return GuidedContent(content=f"user {user_id}: risk {user['riskScore']}", guidance=steps)


@tool(searchable=False)
async def fincrime(user_id: str) -> GuidedContent:
    """File a report to the financial crime team."""
    return GuidedContent(content=f"reported {user_id}")


@tool(searchable=False, scopes=["vip"])
async def vip_care(user_id: str) -> str:
    """Notify the team for the best customers."""
    return f"told about {user_id}"


@tool
async def tickets(text: str) -> str:
    """Search support tickets and complaints of customers."""
    return f"no ticket about {text}"


WAREHOUSE = Domain(
    name="warehouse",
    description="Data warehouse: orders, users, analytics",
    tools=[analyst, user_investigation, fincrime],
    client=USERS,
)
SUPPORT = Domain(name="support", description="Customer support", tools=[tickets, vip_care])


def some_tool(name: str, description: str = "Does one thing well.", **more: Any) -> Tool:
    """A tool without parameters that says its name."""

    async def run() -> str:
        return name

    made: Tool = tool(name=name, description=description, **more)(run)
    return made


@asynccontextmanager
async def catalog_at(
    folder: Path, *domains: Domain, clock: Clock | None = None, embedder: str = "", **options: Any
) -> AsyncIterator[tuple[Catalog, Trail]]:
    """A catalog over a trail in a real file, with the resources of its domains on it."""
    known = clock or SystemClock()
    trail = await open_trail(f"sqlite://{folder}/trail.db", known, open_embedder(embedder) if embedder else None)
    try:
        catalog = Catalog(trail, known, owner=ME, **options)
        for domain in domains:
            await catalog.add(domain)
        await refresh(catalog, trail, known)
        yield catalog, trail
    finally:
        await trail.close()


async def refresh(catalog: Catalog, trail: Trail, clock: Clock | None = None) -> None:
    """Bring the resources of all domains onto the trail."""
    lifecycle = Lifecycle(
        trail, catalog.registry.all_domains(), by=await catalog.keeper(), clock=clock or SystemClock()
    )
    reports = await lifecycle.restart()
    assert [each.error for each in reports if each.error] == []


async def ask(catalog: Catalog, query: str, by: Principal = ME, **more: Any) -> CatalogAnswer:
    return await catalog.ask(Question(query=query, **more), by=by)


async def get(catalog: Catalog, *routes: str, by: Principal = ME, handle: str | None = None, **params: Any) -> Results:
    """Get routes that all take the same parameters."""
    return await catalog.get([Item(route=route, params=params) for route in routes], by=by, handle=handle)


def routes_of(answer: CatalogAnswer) -> list[str]:
    """Every route of a tool that an answer shows, in its order."""
    return [route for each in answer.sections for route in (*(entry.route for entry in each.tools), *each.folded)]


def resources_of(answer: CatalogAnswer) -> list[str]:
    return [entry.route for each in answer.sections for entry in each.resources]


def codes_of(results: Results) -> list[str]:
    """The outcome of each entry: its error code, or `ok`."""
    return [each.error.code if each.error is not None else "ok" for each in results.results]


def guided_by(results: Results) -> list[str]:
    return [step.route for each in results.results if each.data is not None for step in each.data.guidance]


def messages_of(results: Results) -> Sequence[str]:
    return [each.error.message for each in results.results if each.error is not None]
