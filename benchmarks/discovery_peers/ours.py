"""Clew: the rows as tools or as documents of a catalog, found as `ask` finds them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.indexing.lifecycle import Lifecycle
from clew.catalog.indexing.tool_index import TOOL_SCHEMA
from clew.catalog.operations.discovery import (
    FOREIGN_TOOL_SCHEMA,
    RESOURCE_SCHEMA,
    TOOL_HITS,
)
from clew.catalog.resource import Resource
from clew.clock import SystemClock
from clew.llm.embedders import open_embedder
from clew.tools import GuidedContent, Tool, ToolContext
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.search.closeness import CLOSE, closeness
from clew.trail.store import Trail
from discovery_peers.data import Row

ME = Principal(owner_id="bench")
DOMAIN_SIZE = 60
WHERE = Selector(schema_names=(TOOL_SCHEMA, FOREIGN_TOOL_SCHEMA, RESOURCE_SCHEMA))


async def give_nothing(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
    return GuidedContent(content="done")


def to_tool(row: Row) -> Tool:
    return Tool(name=row.name, description=row.description, call=give_nothing, check=dict, schema=row.schema)


def to_resource(row: Row) -> Resource:
    async def fetch(client: Any) -> str:
        return row.text

    return Resource(path=row.name, name=row.name, description=row.description, fetch=fetch)


def build_domains(rows: Sequence[Row], size: int = DOMAIN_SIZE, *, by_home: bool = True) -> list[Domain]:
    """A domain for each server, and domains of fixed size for rows without a server; or only the latter."""
    homes: dict[str, list[Tool]] = {}
    for at, row in enumerate(rows):
        known = re.sub(r"[^a-z0-9]+", "-", row.home.lower()).strip("-") if by_home else ""
        home = known or f"part-{at // size}"
        homes.setdefault(home, []).append(to_tool(row))
    return [Domain(name=home, description=f"The tools of {home}.", tools=tools) for home, tools in homes.items()]


class OurCatalog:
    """A catalog that holds the rows, and what it finds for a question."""

    def __init__(self, trail: Trail, rows: Sequence[Row], *, as_documents: bool) -> None:
        self.catalog = Catalog(trail, SystemClock(), owner=ME)
        self._trail = trail
        self._ids = {row.name: row.id for row in rows}
        about = "Skills, each with its whole text."
        shelf = [Domain(name="skills", description=about, resources=[to_resource(row) for row in rows])]
        self._domains = shelf if as_documents else build_domains(rows)

    async def fill(self) -> None:
        for domain in self._domains:
            await self.catalog.add(domain)
        known = self.catalog.registry.all_domains()
        failed = [
            each for each in await Lifecycle(self._trail, known, by=ME, clock=SystemClock()).restart() if each.error
        ]
        if failed:
            raise RuntimeError(f"not indexed: {failed[0].error}")
        await self._trail.index.warm()

    def ranked(self, ranking: str) -> Callable[[str], Awaitable[list[str]]]:
        """Ids in the order of the trail's search over tools and documents, as discovery asks for it."""

        async def rank(query: str) -> list[str]:
            request = SearchRequest(text=query, selector=WHERE, limit=TOOL_HITS, ranking=ranking)
            hits = (await self._trail.index.search(request, by=ME)).hits
            return [self._ids[hit.breadcrumb.context["name"]] for hit in hits]

        return rank

    async def by_closeness(self, query: str) -> list[str]:
        """Ids in the order of their closeness to the question."""
        found = (await self._find(query)).items()
        return [self._ids[name] for name, _ in sorted(found, key=lambda each: -each[1])]

    async def relevance(self, query: str) -> float:
        """The closeness of the best hit, in the unit of the thresholds; above all of them if the question has its
        name."""
        return max((await self._find(query)).values(), default=0.0)

    async def _find(self, query: str) -> dict[str, float]:
        request = SearchRequest(text=query, selector=WHERE, limit=TOOL_HITS)
        hits = (await self._trail.index.search(request, by=ME)).hits
        unit = {True: CLOSE, False: 1.0}  # without vectors, use the closeness itself
        return {hit.breadcrumb.context["name"]: closeness(hit) * unit[hit.vector_score is not None] for hit in hits}


@contextlib.asynccontextmanager
async def open_catalog(
    rows: Sequence[Row], embedder: str | None = "wordllama", *, as_documents: bool = False
) -> AsyncIterator[OurCatalog]:
    trail = await open_trail("sqlite://:memory:", embedder=open_embedder(embedder) if embedder else None)
    try:
        await bootstrap(trail, ME)
        ours = OurCatalog(trail, rows, as_documents=as_documents)
        await ours.fill()
        yield ours
    finally:
        await trail.close()
