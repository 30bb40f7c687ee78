"""`ask` and `get` as tools of agents. Routes that a session was shown stay available in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.operations.answers import (
    DEFAULT_PER_DOMAIN,
    MAX_ITEMS,
    MAX_PER_DOMAIN,
    GivenItem,
    Question,
    read_items,
)
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

OpenCatalog = Callable[[], Awaitable[Catalog]]
"""The catalog, which is opened when it is first needed."""

PerDomain = Annotated[int, Meta(ge=1, le=MAX_PER_DOMAIN)]
Routes = Annotated[list[GivenItem], Meta(min_length=1, max_length=MAX_ITEMS)]


def catalog_tools(open_catalog: OpenCatalog) -> tuple[Tool, ...]:
    """The tools `ask` and `get`, through which all other tools and documents are reached."""

    @tool(effects=Effects(reads_only=True, reaches_out=False), category="catalog")
    async def ask(
        context: ToolContext, query: str, domain: str | None = None, per_domain: PerDomain = DEFAULT_PER_DOMAIN
    ) -> str:
        """Find what you can do and what is known. It answers with routes, which `get` takes.

        Args:
            query: what you want to do or know, in plain words
            domain: search this domain only
        """
        catalog = await open_catalog()
        question = Question(query=query, domain=domain, per_domain=per_domain, handle=_handle(context.by))
        return (await catalog.ask(question, by=context.by)).markdown

    @tool(limits=ToolLimits(seconds=300.0), category="catalog")
    async def get(context: ToolContext, routes: Routes) -> Any:
        """Run tools and read documents by route, side by side. Use routes that `ask` or a result gave you.

        Args:
            routes: each with its route, and params if it is a tool
        """
        catalog = await open_catalog()
        return (await catalog.get(read_items(routes), by=context.by, handle=_handle(context.by))).markdown

    return ask, get


def _handle(by: Principal) -> str | None:
    return f"session:{by.session}" if by.session else None
