"""Find tools and resources that are close to a question, with the trail's search."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.domain import FIELDS, Domain, Field, SearchConfig, Segment
from clew.catalog.indexing.document_nodes import SCHEMA as RESOURCE_SCHEMA
from clew.catalog.indexing.tool_index import TOOL_SCHEMA
from clew.catalog.route import parse_route
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import MAX_LIMIT, Hit, SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.search.closeness import EXACT, closeness
from clew.trail.search.text import STOP, split_text, term_id
from clew.trail.store import Trail

FOREIGN_TOOL_SCHEMA = "mcp.tool.v1"
TOOL_HITS = 24
OWN_SEARCHES = 12
"""With more domains than this, those without a search configuration share one search."""
SHARED_HITS = 200
_TRAIL_FIELDS = {"name": "title"}


class DomainHits(msgspec.Struct, kw_only=True):
    """The hits of one domain. `relevance` is that of its closest tool or resource, hidden tools included."""

    tools: dict[str, float] = {}
    resources: list[Hit] = []
    relevance: float = 0.0

    def put_tool_first(self, route: str) -> None:
        self.tools = {route: EXACT} | {each: close for each, close in self.tools.items() if each != route}
        self.relevance = EXACT

    def put_resource_first(self, record: Breadcrumb, most: int) -> None:
        others = [hit for hit in self.resources if hit.breadcrumb.id != record.id]
        self.resources = [Hit(breadcrumb=record, score=EXACT, exact=True), *others][:most]
        self.relevance = EXACT


class Discovery:
    """Searches the index on behalf of a caller, and counts the searches."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self.searches = 0

    async def find(
        self, query: str, domains: Sequence[Domain], per_domain: int, *, by: Principal
    ) -> Mapping[str, DomainHits]:
        """The hits of each domain, by its name. `by` reads as the catalog's owner with the caller's scopes."""
        found = {domain.name: DomainHits() for domain in domains}
        for hit in await self._search_tools(query, domains, by):
            name, context = _domain_of(hit.breadcrumb), hit.breadcrumb.context
            if name in found:
                _add_tool(found[name], str(context.get("route", "")), closeness(hit))
        for name, hits in (await self._search_resources(query, domains, per_domain, by)).items():
            found[name].resources = hits
            best = max(map(closeness, hits), default=0.0)
            found[name].relevance = max(found[name].relevance, best)
        return found

    async def _search_tools(self, query: str, domains: Sequence[Domain], by: Principal) -> Sequence[Hit]:
        tags = (f"domain:{domains[0].name}",) if len(domains) == 1 else ()
        selector = Selector(schema_names=(TOOL_SCHEMA, FOREIGN_TOOL_SCHEMA), all_tags=tags)
        return await self._search(SearchRequest(text=query, selector=selector, limit=TOOL_HITS), by)

    async def _search_resources(
        self, query: str, domains: Sequence[Domain], per_domain: int, by: Principal
    ) -> dict[str, list[Hit]]:
        filled = [domain for domain in domains if domain.extractors or domain.resources]
        special = [each for each in filled if each.search != SearchConfig()]
        alone = filled if len(filled) <= OWN_SEARCHES else special
        parts = await asyncio.gather(*(self._search_domain(query, each, per_domain, by) for each in alone))
        found = {domain.name: hits for domain, hits in zip(alone, parts, strict=True)}
        shared = [domain.name for domain in filled if domain.name not in found]
        if shared:
            request = SearchRequest(text=query, selector=Selector(schema_name=RESOURCE_SCHEMA), limit=SHARED_HITS)
            for hit in await self._search(request, by):
                if (name := _domain_of(hit.breadcrumb)) in shared and len(found.setdefault(name, [])) < per_domain:
                    found[name].append(hit)
        return found

    async def _search_domain(self, query: str, domain: Domain, per_domain: int, by: Principal) -> list[Hit]:
        """The resources of one domain: segment by segment, each within its limit, at most `per_domain` in all."""
        config = domain.search
        segments = sorted(config.segments, key=lambda each: each.priority) or [Segment(name="all", limit=per_domain)]
        weights = _weights(config)
        found: dict[str, Hit] = {}
        for segment in segments:
            limit = min(segment.limit, per_domain - len(found))
            if limit < 1:
                break
            selector = select(domain.name, segment)
            request = SearchRequest(text=query, selector=selector, limit=limit, weights=weights, exclude=tuple(found))
            hits = await self._search_fields(request, config.query_by, by)
            found |= {hit.breadcrumb.id: hit for hit in hits}
        return list(found.values())

    async def _search_fields(self, request: SearchRequest, fields: Sequence[Field], by: Principal) -> Sequence[Hit]:
        """The hits that share a word with one of these fields, as many as the request wants."""
        if set(fields) == set(FIELDS):
            return await self._search(request, by)
        wanted, found, seen = _terms(request.text), list[Hit](), list(request.exclude)
        while len(found) < request.limit and len(seen) + SHARED_HITS <= MAX_LIMIT:
            page = await self._search(msgspec.structs.replace(request, limit=SHARED_HITS, exclude=seen), by)
            found += [_without_name(hit, fields) for hit in page if wanted & _terms(_text_in(hit, fields))]
            seen += [hit.breadcrumb.id for hit in page]
            if not page:
                break
        return found[: request.limit]

    async def _search(self, request: SearchRequest, by: Principal) -> Sequence[Hit]:
        self.searches += 1
        return [hit for hit in (await self._trail.index.search(request, by=by)).hits if is_sound(hit.breadcrumb)]


def select(domain: str, segment: Segment) -> Selector:
    """The resources of a segment."""
    below: tuple[ContextMatch, ...] = ()
    if segment.path_segments:
        below = (ContextMatch(path="path_segment", op="in", value=list(segment.path_segments)),)
    return Selector(
        schema_name=RESOURCE_SCHEMA,
        all_tags=(f"domain:{domain}",),
        any_tags=tuple(f"type:{each}" for each in segment.types),
        context_match=below,
    )


def _weights(config: SearchConfig) -> dict[str, float]:
    """The trail's weights for the fields of a domain: 0 for a field that it does not search, empty if the defaults
    apply."""
    named = dict(zip(config.query_by, config.weights, strict=True)) if config.weights else {}
    unsearched = dict.fromkeys((field for field in FIELDS if field not in config.query_by), 0.0)
    return {_TRAIL_FIELDS.get(field, field): weight for field, weight in (named | unsearched).items()}


def _terms(text: str) -> set[int]:
    """The stems of a text's words, as the trail's search knows them; stop words count only if there are no others."""
    words = split_text(text)
    parts = [part for part in words.parts if part not in STOP] or words.parts
    return {term_id(part, 0) for part in (*parts, *words.compounds)}


def _text_in(hit: Hit, fields: Sequence[Field]) -> str:
    record = hit.breadcrumb
    texts = {"name": record.title, **{field: record.context.get(field, "") for field in ("description", "content")}}
    return "\n".join(str(texts[field]) for field in fields)


def _without_name(hit: Hit, fields: Sequence[Field]) -> Hit:
    """The hit, without its exact match by name if the name is not a searched field."""
    return hit if "name" in fields else msgspec.structs.replace(hit, exact=False)


def is_sound(record: Breadcrumb) -> bool:
    """Whether a resource may be shown. An agent with write access can forge a record that only looks like one."""
    if record.schema_name != RESOURCE_SCHEMA:
        return True
    uri, about = (record.context.get(field) for field in ("uri", "description"))
    if not isinstance(uri, str) or not isinstance(about, str):
        return False
    try:
        route = parse_route(uri)
    except InvalidInput:
        return False
    return route.kind == "resources" and route.domain == _domain_of(record)


def _add_tool(found: DomainHits, route: str, close: float) -> None:
    found.tools[route] = close
    found.relevance = max(found.relevance, close)


def _domain_of(record: Breadcrumb) -> str:
    return next((tag[7:] for tag in record.tags if tag.startswith("domain:")), "")
