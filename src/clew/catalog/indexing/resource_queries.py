"""Find resources on the trail by their address, and list them by their fields."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import AsyncIterator
from typing import Literal, TypedDict, Unpack

import msgspec

from clew.access import Principal
from clew.catalog.indexing.document_nodes import SCHEMA, resource_id, source_tag
from clew.errors import InvalidInput, NotFound
from clew.trail.bulk import PAGE, each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.model.tags import tag_of
from clew.trail.store import Trail

Sort = Literal["quality_score", "indexed_at"]

MAX_LISTED = 1_000


async def find_resource(trail: Trail, uri: str, *, by: Principal) -> Breadcrumb | None:
    """The resource at this address; None if the caller may not see it, or if it does not exist or is a record of
    another kind."""
    with contextlib.suppress(NotFound):
        found = await trail.records.get(resource_id(by.owner_id, uri), by=by)
        return found if found.schema_name == SCHEMA and found.context.get("uri") == uri else None
    return None


class ResourceFilters(TypedDict, total=False):
    """Values that resources have, and the order in which they are listed."""

    domain: str
    resource_type: str
    path_segment: str
    source_id: str
    is_unrestricted: bool
    scope: str
    sort: Sort
    ascending: bool


async def list_resources(
    trail: Trail, by: Principal, *, limit: int = 50, **filters: Unpack[ResourceFilters]
) -> list[Breadcrumb]:
    """The resources that have all these values and that the caller may see.

    The newest come first. With `sort`, the highest values come first, or the lowest if `ascending`; equal values are
    ordered by uri. Raises InvalidInput.
    """
    sort = filters.get("sort")
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LISTED:,}")
    if sort not in (None, "quality_score", "indexed_at"):
        raise InvalidInput("sort", f"{sort!r} is not a field to sort by", hint="Fields are quality_score, indexed_at")
    selector = _selector(filters)
    if sort is None:
        return list((await trail.records.list(selector, by=by, limit=limit)).items)
    return await _best(each_record(trail, selector, by=by), sort, 1 if filters.get("ascending") else -1, limit)


def _selector(filters: ResourceFilters) -> Selector:
    conditions = []
    if "is_unrestricted" in filters:
        conditions.append(ContextMatch(path="is_unrestricted", value=filters["is_unrestricted"]))
    if "scope" in filters:
        conditions.append(ContextMatch(path="scopes", op="contains_all", value=[filters["scope"]]))
    selector = select_resources(
        domain=filters.get("domain"),
        type=filters.get("resource_type"),
        segment=filters.get("path_segment"),
        source_id=filters.get("source_id"),
    )
    return msgspec.structs.replace(selector, context_match=conditions)


def select_resources(
    *, domain: str | None = None, type: str | None = None, segment: str | None = None, source_id: str | None = None
) -> Selector:
    """The selector of resources for listing, searching and subscribing."""
    tags = [
        f"domain:{domain}" if domain is not None else None,
        source_tag(source_id) if source_id is not None else None,
        tag_of("type", type) if type is not None else None,
        tag_of("segment", segment) if segment is not None else None,
    ]
    return Selector(schema_name=SCHEMA, all_tags=[tag for tag in tags if tag is not None])


async def _best(found: AsyncIterator[Breadcrumb], field: Sort, sign: int, limit: int) -> list[Breadcrumb]:
    """The first `limit` resources in sort order, without holding many more in memory."""
    chosen: list[Breadcrumb] = []

    def rank(each: Breadcrumb) -> tuple[int, str]:
        return sign * each.context[field], each.context["uri"]

    async for each in found:
        chosen.append(each)
        if len(chosen) >= 2 * limit + PAGE:
            chosen = heapq.nsmallest(limit, chosen, key=rank)
    return heapq.nsmallest(limit, chosen, key=rank)
