"""Tools on the trail: one breadcrumb each, so that discovery is the trail's own search."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.tools import Tool
from clew.trail.bulk import each_record
from clew.trail.mirror import TRIES, mirror
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

TOOL_SCHEMA, DOMAIN_SCHEMA = "tool.v1", "domain.v1"
ENTRY_POINT = "entry-point:yes"
MAX_ARGUMENTS = 2_000
_NAMESPACE = UUID("0e6dcb5e-4a52-5a80-8f0d-29f3a07c0a5e")


async def read_markers(trail: Trail, *, by: Principal) -> dict[str, Breadcrumb]:
    """The markers of all domains that were indexed, by name, for `index_domain`."""
    selector = Selector(schema_name=DOMAIN_SCHEMA)
    return {str(each.context.get("name")): each async for each in each_record(trail, selector, by=by)}


async def index_domain(trail: Trail, domain: Domain, *, by: Principal, marker: Breadcrumb | None = None) -> int:
    """Make the trail hold exactly this domain's tools. Returns the number of written records, 0 if nothing changed.

    `marker` is the domain's marker if the caller has just read it; that saves a lookup. For a foreign server only the
    entry points are written, since its registry keeps the rest. If another process indexes the same domain at the same
    time, this one retries.
    """
    for _ in range(TRIES - 1):
        try:
            return await _index(trail, domain, by, marker)
        except (AlreadyExists, Conflict, NotFound):
            marker = None
    return await _index(trail, domain, by, None)


async def _index(trail: Trail, domain: Domain, by: Principal, marker: Breadcrumb | None) -> int:
    tools = [tool for tool in domain.tools if tool.searchable or not domain.is_foreign]
    drafts = [draft_of(domain, tool, by) for tool in tools]
    digest = _digest([(draft.context, sorted(draft.scopes), sorted(draft.tags)) for draft in drafts])
    marker = marker or await _find_marker(trail, domain.name, by)
    if marker is not None and marker.context["digest"] == digest:
        return 0
    by = _holding(by, scopes_of(domain), marker.context["scopes"] if marker is not None else ())
    if marker is None or marker.context["digest"] or not by.scopes <= set(marker.context["scopes"]):
        marker = await _mark(trail, domain, "", by.scopes, marker, by)
    mirrored = await mirror(trail, drafts, _tools_of(domain.name), by=by)
    await _mark(trail, domain, digest, scopes_of(domain), marker, by)
    return mirrored.created + mirrored.updated


async def drop_domain(trail: Trail, name: str, *, by: Principal) -> None:
    """Take a domain's tools off the trail."""
    marker = await _find_marker(trail, name, by)
    if marker is None:
        return
    by = _holding(by, marker.context["scopes"])
    await mirror(trail, (), _tools_of(name), by=by)
    await trail.records.delete(marker.id, by=by)


def _tools_of(domain: str) -> Selector:
    return Selector(schema_name=TOOL_SCHEMA, all_tags=(f"domain:{domain}",))


async def keeper_of(trail: Trail, domains: Sequence[Domain], *, by: Principal) -> Principal:
    """The owner with the scopes of these domains and of all domains indexed earlier."""
    known = await read_markers(trail, by=by)
    return _holding(by, *map(scopes_of, domains), *(each.context["scopes"] for each in known.values()))


def scopes_of(domain: Domain) -> frozenset[str]:
    """All scopes that any record of a domain needs."""
    parts = (domain.scopes, *(tool.scopes for tool in domain.tools), *(each.scopes for each in domain.extractors))
    return frozenset().union(*parts, *(each.scopes for each in domain.resources))


def _holding(by: Principal, *scopes: Iterable[str]) -> Principal:
    return msgspec.structs.replace(by, scopes=by.scopes.union(*scopes))


def draft_of(domain: Domain, tool: Tool, by: Principal) -> Draft:
    """The record of a tool."""
    route = str(domain.route_of(tool))
    tags = [f"domain:{domain.name}", f"source:{tool.source}"]
    return Draft(
        id=str(uuid5(_NAMESPACE, f"{by.owner_id}\n{route}")),
        title=tool.name,
        schema_name=TOOL_SCHEMA,
        context={
            "route": route,
            "domain": domain.name,
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "arguments": _arguments(tool.schema),
        },
        tags=[*tags, ENTRY_POINT] if tool.searchable else tags,
        scopes=sorted(domain.scopes | tool.scopes),
    )


def _arguments(schema: Mapping[str, Any]) -> str:
    """The names and descriptions of a tool's parameters, for the search."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    described = (f"{name} {each.get('description', '')}" for name, each in properties.items() if isinstance(each, dict))
    return "\n".join(described)[:MAX_ARGUMENTS]


def _digest(contents: Sequence[Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(contents), digest_size=16).hexdigest()


def _marker_id(name: str, by: Principal) -> str:
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\ndomain {name}"))


async def _find_marker(trail: Trail, name: str, by: Principal) -> Breadcrumb | None:
    try:
        return await trail.records.get(_marker_id(name, by), by=by)
    except NotFound:
        return None


async def _mark(
    trail: Trail, domain: Domain, digest: str, scopes: Iterable[str], marker: Breadcrumb | None, by: Principal
) -> Breadcrumb:
    """Write the domain's marker. It is written before a change with the scopes of all affected records, and afterwards
    with the digest, so that the next start repairs an interrupted change."""
    context = {"name": domain.name, "digest": digest, "scopes": sorted(scopes)}
    if marker is not None:
        return await trail.records.update(marker.id, Change(context=context), expect=marker.version, by=by)
    draft = Draft(
        id=_marker_id(domain.name, by),
        title=domain.name,
        schema_name=DOMAIN_SCHEMA,
        context=context,
        tags=[f"domain:{domain.name}"],
        embed="never",
    )
    return await trail.records.create(draft, by=by)
