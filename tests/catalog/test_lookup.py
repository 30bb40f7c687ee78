"""Looking up one resource: only for callers who see its domain and hold its scopes."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import resource_id
from clew.catalog.operations.lookup import Lookup
from clew.catalog.registry import DomainRegistry
from clew.catalog.resource import Resource
from clew.catalog.route import parse_route
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from tests.tools.fraud import ME

ROUTE = parse_route("docs://resources/page")
STAFF = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"staff"}))


async def write(trail: Trail, context: dict[str, Any], *scopes: str) -> None:
    draft = Draft(
        id=resource_id("acme", str(ROUTE)), title="Page", schema_name="resource.v1", context=context, scopes=scopes
    )
    await trail.records.create(draft, by=ME)


def registry(**more: Any) -> DomainRegistry:
    made = DomainRegistry()
    made.add(Domain(name="docs", description="Handbook", **more))
    return made


@pytest.mark.req("ERN-21")
async def test_an_indexed_resource_needs_its_own_scopes_and_those_of_its_domain(trail: Trail) -> None:
    await write(trail, {"uri": str(ROUTE), "description": "d", "content": "c"}, "staff")
    lookup = Lookup(trail, registry())
    whole = await lookup.read(ROUTE, by=STAFF)
    assert (whole.name, whole.description, whole.content, list(whole.scopes)) == ("Page", "d", "c", ["staff"])
    assert not await lookup.can_see(ROUTE, by=ME)
    narrowed = Lookup(trail, registry(scopes=frozenset({"inner"})))
    assert not await narrowed.can_see(ROUTE, by=STAFF)
    assert not await Lookup(trail, DomainRegistry()).can_see(ROUTE, by=STAFF), "its domain is gone"


@pytest.mark.parametrize("context", [{"content": 5}, {"uri": "docs://resources/other", "content": "c"}])
async def test_a_record_that_only_stands_where_a_resource_would_is_none(trail: Trail, context: dict[str, Any]) -> None:
    await write(trail, context)
    with pytest.raises(NotFound):
        await Lookup(trail, registry()).read(ROUTE, by=ME)


async def test_resources_of_a_domain_are_fetched_only_for_callers_that_may_see_it(trail: Trail) -> None:
    ran: list[Any] = []

    async def fetch(client: Any) -> str:
        ran.append(client)
        return "fresh"

    page = Resource(path="page", name="P", description="d", fetch=fetch, scopes=frozenset({"staff"}))
    lookup = Lookup(trail, registry(resources=[page], client="CLIENT"))
    with pytest.raises(NotFound):
        await lookup.read(ROUTE, by=ME)
    assert await lookup.can_see(ROUTE, by=STAFF)
    assert ran == []
    assert (await lookup.read(ROUTE, by=STAFF)).content == "fresh"
    assert ran == ["CLIENT"]
