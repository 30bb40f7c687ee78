"""Resources as they stand on the trail: found by their address, listed by their fields, dropped."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import AsyncIterator
from typing import Literal

from clew.access import Principal
from clew.catalog.indexing.document_nodes import SCHEMA, resource_id, source_tag, tag_of
from clew.errors import InvalidInput, NotFound
from clew.trail.bulk import PAGE, each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

Sort = Literal["quality_score", "indexed_at"]

MAX_LISTED = 1_000


async def find_resource(trail: Trail, uri: str, *, by: Principal) -> Breadcrumb | None:
    """The resource at this address, None when there is none that the caller may see, or only a record of another kind
    in its place."""
    with contextlib.suppress(NotFound):
        found = await trail.records.get(resource_id(by.owner_id, uri), by=by)
        return found if found.schema_name == SCHEMA and found.context.get("uri") == uri else None
    return None


async def list_resources(
    trail: Trail,
    by: Principal,
    *,
    domain: str | None = None,
    resource_type: str | None = None,
    path_segment: str | None = None,
    source_id: str | None = None,
    is_unrestricted: bool | None = None,
    scope: str | None = None,
    sort: Sort | None = None,
    ascending: bool = False,
    limit: int = 50,
) -> list[Breadcrumb]:
    """The resources that have all these values and that the caller may see: in order of creation, or sorted, the
    highest first unless `ascending`; equal ones by their uri. Raises InvalidInput."""
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LISTED:,}")
    if sort not in (None, "quality_score", "indexed_at"):
        raise InvalidInput("sort", f"{sort!r} is not a field to sort by", hint="Fields are quality_score, indexed_at")
    conditions = []
    if is_unrestricted is not None:
        conditions.append(ContextMatch(path="is_unrestricted", value=is_unrestricted))
    if scope is not None:
        conditions.append(ContextMatch(path="scopes", op="contains_all", value=[scope]))
    selector = select_resources(domain=domain, type=resource_type, segment=path_segment, source_id=source_id)
    found = each_record(trail, _narrowed(selector, conditions), by=by)
    if sort is None:
        return await _first(found, limit)
    return await _best(found, sort, -1 if not ascending else 1, limit)


def select_resources(
    *, domain: str | None = None, type: str | None = None, segment: str | None = None, source_id: str | None = None
) -> Selector:
    """Which resources: for listing, searching and subscribing."""
    tags = [
        f"domain:{domain}" if domain is not None else None,
        source_tag(source_id) if source_id is not None else None,
        tag_of("type", type) if type is not None else None,
        tag_of("segment", segment) if segment is not None else None,
    ]
    return Selector(schema_name=SCHEMA, all_tags=[tag for tag in tags if tag is not None])


def _narrowed(selector: Selector, conditions: list[ContextMatch]) -> Selector:
    return Selector(schema_name=selector.schema_name, all_tags=selector.all_tags, context_match=conditions)


async def _first(found: AsyncIterator[Breadcrumb], limit: int) -> list[Breadcrumb]:
    chosen: list[Breadcrumb] = []
    async for each in found:
        chosen.append(each)
        if len(chosen) == limit:
            break
    return chosen


async def _best(found: AsyncIterator[Breadcrumb], field: Sort, sign: int, limit: int) -> list[Breadcrumb]:
    """The foremost `limit` without ever holding many more."""
    chosen: list[Breadcrumb] = []

    def rank(each: Breadcrumb) -> tuple[int, str]:
        return sign * each.context[field], each.context["uri"]

    async for each in found:
        chosen.append(each)
        if len(chosen) >= 2 * limit + PAGE:
            chosen = heapq.nsmallest(limit, chosen, key=rank)
    return heapq.nsmallest(limit, chosen, key=rank)
