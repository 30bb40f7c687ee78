"""Edges between related breadcrumbs, built after each write by one handler.

There are four kinds, each with a cost: `causal` (from the request, the trigger of the run, or a breadcrumb named by
id), `temporal` (from the previous breadcrumb of the session), `tag` (to others with the same pointer tag), `semantic`
(to the closest in meaning). The work for one breadcrumb is bounded. Handling an event twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.access import TEAM_SCHEMAS, Principal
from clew.context.schemas import SchemaCache, Schemas
from clew.context.sources import find_named, until
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.edge import Edge
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.query import SearchRequest
from clew.trail.model.readable import tag_kind
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request_id, find_run
from clew.trail.work.handlers import Handler

CAUSAL, TEMPORAL, TAG, SEMANTIC = "causal", "temporal", "tag", "semantic"
KINDS = (CAUSAL, TEMPORAL, TAG, SEMANTIC)
COSTS = {CAUSAL: 0.5, TEMPORAL: 0.75, TAG: 1.0, SEMANTIC: 1.0}
"""The cost of an edge by its kind. A similarity edge costs more with the distance."""

FOUND_ANEW = frozenset((TEMPORAL, TAG, SEMANTIC))
"""The kinds of edges from a message that the sources of its context find themselves, so that the result does not depend
on whether the handler has written them yet."""

HANDLER = "context/edges"
MAX_PARTNERS = 8
"""The number of breadcrumbs of one request that get edges."""
MAX_TAGS, MAX_TAGGED = 3, 3
"""The number of pointer tags that are read, and of the newest records of each."""
MAX_SIMILAR = 4
CLOSE = 0.6
"""The least cosine of two breadcrumbs that are close in meaning."""
_SAME_INSTANT = 20


def plumbing(flow: Flow) -> tuple[str, ...]:
    """Return the schemas without content for a reader, which get no edges: those of a flow and of the team."""
    return (
        flow.delta,
        flow.cancel,
        flow.usage,
        flow.budget,
        flow.snapshot,
        flow.started,
        flow.checkpoint,
        flow.permission_request,
        flow.permission_answer,
        flow.session,
        flow.focus,
        flow.session_snapshot,
        *sorted(TEAM_SCHEMAS),
    )


class EdgeBuilder:
    """Writes the edges of new breadcrumbs of one owner."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by
        self._book = SchemaCache(trail)

    async def __call__(self, event: Event, deps: object = None) -> None:
        if event.breadcrumb is not None:
            await self.link(event.breadcrumb)

    async def link(self, breadcrumb: Breadcrumb) -> list[Edge]:
        """Write the missing edges of a breadcrumb, and return all. Edges with a deleted end are left out. Schemas that
        semantic search does not cover have only causal edges."""
        schemas = await self._book.read(by=self._by)
        edges = await self._causal(breadcrumb)
        if schemas.of(breadcrumb.schema_name).is_found:
            edges += await self._temporal(breadcrumb, schemas)
            edges += await self._tagged(breadcrumb, schemas)
            edges += await self._similar(breadcrumb, schemas)
        found = list({(edge.source, edge.type, edge.target): edge for edge in edges}.values())
        try:
            return await self._trail.edges.add(found, by=self._by, replace=True) if found else []
        except NotFound:  # one end has been deleted: write the other edges one by one
            return [each for edge in found for each in await self._add_one(edge)]

    async def _add_one(self, edge: Edge) -> list[Edge]:
        try:
            return await self._trail.edges.add([edge], by=self._by, replace=True)
        except NotFound:
            return []

    async def _causal(self, breadcrumb: Breadcrumb) -> list[Edge]:
        """Return the edges from the causes of a breadcrumb."""
        run = find_run(breadcrumb)
        causes = [found for _, found in await find_named(self._trail, breadcrumb, run or "", by=self._by)]
        unlinked = plumbing(self._flow)
        sources = {each.id for each in causes if each.id == run or each.schema_name not in unlinked}
        edges = [_edge(source, breadcrumb.id, CAUSAL) for source in sorted(sources)]
        partners = await self._partners(breadcrumb)
        if partners and partners[0].id == breadcrumb.id:
            edges += [_edge(breadcrumb.id, each.id, CAUSAL) for each in partners[1:]]
        elif partners:
            edges.append(_edge(partners[0].id, breadcrumb.id, CAUSAL))
        return edges

    async def _partners(self, breadcrumb: Breadcrumb) -> Sequence[Breadcrumb]:
        """Return the breadcrumbs of a record's request, oldest first: the request, then the responses."""
        request = find_request_id(breadcrumb)
        if request is None or len(request) > 200 or request != request.strip() or "\n" in request:
            return ()
        tagged = Selector(all_tags=(REQUEST_TAG + request,), except_schemas=plumbing(self._flow))
        page = await self._trail.records.list(tagged, by=self._by, limit=MAX_PARTNERS, oldest_first=True)
        if page.items or breadcrumb.session is None:
            return page.items
        named = [
            Selector(session=breadcrumb.session, context_match=(ContextMatch(path=field, value=request),))
            for field in ("request_id", "requestId")
        ]
        pages = [await self._trail.records.list(each, by=self._by, limit=MAX_PARTNERS) for each in named]
        found = {each.id: each for page in pages for each in page.items}
        return sorted(found.values(), key=lambda each: (each.created_at, each.id))

    async def _temporal(self, breadcrumb: Breadcrumb, schemas: Schemas) -> list[Edge]:
        """Return the edge from the previous breadcrumb of its session."""
        if breadcrumb.session is None:
            return []
        before = Selector(
            session=breadcrumb.session,
            except_schemas=self._unlinked(schemas),
            created_before=until(breadcrumb.created_at),
        )
        for limit in (2, _SAME_INSTANT):  # two are enough unless several have the same time
            page = await self._trail.records.list(before, by=self._by, limit=limit)
            ids = [each.id for each in page.items]
            if breadcrumb.id in ids[:-1]:
                return [_edge(ids[ids.index(breadcrumb.id) + 1], breadcrumb.id, TEMPORAL)]
        return [_edge(ids[0], breadcrumb.id, TEMPORAL)] if ids and breadcrumb.id not in ids else []

    async def _tagged(self, breadcrumb: Breadcrumb, schemas: Schemas) -> list[Edge]:
        """Return the edges to the newest earlier breadcrumbs with the same pointer tags."""
        tags = [tag for tag in breadcrumb.tags if tag_kind(tag) == "pointer"][:MAX_TAGS]
        edges = []
        for tag in tags:
            before = Selector(
                all_tags=(tag,),
                except_schemas=self._unlinked(schemas),
                created_before=until(breadcrumb.created_at),
            )
            page = await self._trail.records.list(before, by=self._by, limit=MAX_TAGGED + 1)
            others = [each.id for each in page.items if each.id != breadcrumb.id][:MAX_TAGGED]
            edges += [_between(breadcrumb.id, other, TAG) for other in others]
        return edges

    async def _similar(self, breadcrumb: Breadcrumb, schemas: Schemas) -> list[Edge]:
        """Return the edges to breadcrumbs that are close in meaning, if the trail has vectors."""
        try:
            vector = (await self._trail.records.get(breadcrumb.id, by=self._by, vector=True)).embedding
        except NotFound:
            return []
        if vector is None or not any(vector):
            return []
        request = SearchRequest(
            vector=vector,
            ranking="vector",
            selector=Selector(except_schemas=self._unlinked(schemas)),
            exclude=(breadcrumb.id,),
            limit=MAX_SIMILAR,
        )
        found = await self._trail.index.search(request, by=self._by)
        return [
            _between(breadcrumb.id, hit.breadcrumb.id, SEMANTIC, apart=1.0 - hit.vector_score)
            for hit in found.hits
            if hit.vector_score is not None and hit.vector_score >= CLOSE
        ]

    def _unlinked(self, schemas: Schemas) -> tuple[str, ...]:
        return bounded((*plumbing(self._flow), *schemas.machinery))


def bounded(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without duplicates, up to the limit of a selector."""
    return tuple(dict.fromkeys(names))[:200]


def _edge(source: str, target: str, kind: str) -> Edge:
    return Edge(source=source, target=target, type=kind, weight=COSTS[kind])


def _between(one: str, other: str, kind: str, apart: float = 0.0) -> Edge:
    """Build an undirected edge, which is the same from both ends."""
    source, target = min(one, other), max(one, other)
    return Edge(source=source, target=target, type=kind, weight=round(COSTS[kind] + max(0.0, apart), 4))


def edge_handler(trail: Trail, flow: Flow, *, by: Principal, unlinked: Sequence[str] = ()) -> Handler:
    """Return the handler that writes the edges of new breadcrumbs. Order and repetition of events do not matter. Calls
    of the requesters in `unlinked` get no edges."""
    calls_of_models = ContextMatch(path="tool", op="ne", value=flow.model_tool)  # the answer has their content
    others = [ContextMatch(path="requestedBy", op="ne", value=each) for each in unlinked]
    selector = Selector(except_schemas=plumbing(flow), context_match=(calls_of_models, *others))
    link = EdgeBuilder(trail, flow, by=by)
    return Handler(name=HANDLER, selector=selector, function=link, ordered=False, retry=RetryPolicy(attempts=10))
