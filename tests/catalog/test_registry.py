"""The registry holds every route once, and shows each caller what it may see."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.registry import DomainRegistry
from clew.catalog.resource import Resource
from clew.catalog.route import parse_route
from clew.errors import AlreadyExists, InvalidInput, NotFound
from tests.tools.fraud import ME, SUPPORT, WAREHOUSE, analyst, some_tool


async def fetch(client: Any) -> str:
    return "content"


def holding(*scopes: str) -> Principal:
    return Principal(owner_id="acme", agent_id="ann", scopes=frozenset(scopes))


@pytest.mark.req("ERN-05")
def test_adding_a_domain_registers_all_its_routes() -> None:
    registry = DomainRegistry()
    registry.add(WAREHOUSE)
    assert [str(each.route) for each in registry.tools()] == [
        "warehouse://tools/analyst",
        "warehouse://tools/hidden/user-investigation",
        "warehouse://tools/hidden/fincrime",
    ]
    assert registry.count_routes() == 3


@pytest.mark.req("ERN-01")
def test_a_route_that_comes_twice_is_refused_and_nothing_is_registered() -> None:
    registry = DomainRegistry()
    with pytest.raises(AlreadyExists, match="warehouse://tools/analyst"):
        registry.add(Domain(name="warehouse", description="Data", tools=[analyst, some_tool("analyst")]))
    assert registry.all_domains() == []
    assert registry.count_routes() == 0
    registry.add(WAREHOUSE)
    with pytest.raises(AlreadyExists, match="domain warehouse"):
        registry.add(WAREHOUSE)


@pytest.mark.req("ERN-01")
def test_a_tool_may_be_searchable_and_hidden_under_one_name_since_the_routes_differ() -> None:
    registry = DomainRegistry()
    registry.add(Domain(name="d", description="Data", tools=[some_tool("a"), some_tool("a", searchable=False)]))
    assert {str(each.route) for each in registry.tools()} == {"d://tools/a", "d://tools/hidden/a"}


@pytest.mark.req("ERN-01")
@pytest.mark.parametrize("path", ["", "a//b", "../a", "a b", "ключ"])
def test_a_malformed_path_of_a_resource_is_refused_at_registration(path: str) -> None:
    registry = DomainRegistry()
    resource = Resource(path=path, name="A", description="About A", fetch=fetch)
    with pytest.raises(InvalidInput):
        registry.add(Domain(name="d", description="Data", resources=[resource]))
    assert registry.all_domains() == []


@pytest.mark.req("ERN-21")
def test_the_scopes_of_a_route_are_those_of_its_domain_and_its_own() -> None:
    registry = DomainRegistry()
    registry.add(
        Domain(
            name="d",
            description="Data",
            scopes=frozenset({"internal"}),
            tools=[some_tool("care", scopes=["support"]), some_tool("plain")],
            resources=[Resource(path="r", name="R", description="R", fetch=fetch, scopes=frozenset({"admin"}))],
        )
    )
    (care, plain), (resource,) = registry.tools(), registry.resources()
    assert care.scopes == {"internal", "support"}
    assert plain.scopes == {"internal"}
    assert resource.scopes == {"internal", "admin"}


@pytest.mark.req("ERN-21")
def test_entry_points_are_those_whose_scopes_the_caller_holds_all() -> None:
    registry = DomainRegistry()
    domain = Domain(
        name="d",
        description="Data",
        scopes=frozenset({"internal"}),
        tools=[some_tool("care", scopes=["support"]), some_tool("plain"), some_tool("secret", searchable=False)],
    )
    registry.add(domain)
    seen = {
        scopes: [each.tool.name for each in registry.entry_points(domain, holding(*scopes)).values()]
        for scopes in [("internal",), ("support",), ("internal", "support")]
    }
    assert seen == {("internal",): ["plain"], ("support",): [], ("internal", "support"): ["care", "plain"]}
    assert registry.domains(holding("support")) == []


def test_an_unknown_domain_is_answered_with_the_nearest_that_the_caller_may_see() -> None:
    registry = DomainRegistry()
    registry.add(WAREHOUSE)
    registry.add(msgspec.structs.replace(SUPPORT, name="warehoused", scopes=frozenset({"s"})))
    with pytest.raises(NotFound, match="Did you mean warehouse"):
        registry.visible_domain("warehous", ME)
    with pytest.raises(NotFound, match=r"Domains are warehouse$"):
        registry.visible_domain("zzz", ME)
    with pytest.raises(NotFound, match="There are none yet"):
        DomainRegistry().visible_domain("zzz", ME)


def test_every_change_is_a_new_generation() -> None:
    registry = DomainRegistry()
    seen = [registry.generation]
    registry.add(WAREHOUSE)
    seen.append(registry.generation)
    registry.remove("warehouse")
    seen.append(registry.generation)
    assert len(set(seen)) == 3
    assert registry.find_tool(parse_route("warehouse://tools/analyst")) is None
    with pytest.raises(NotFound):
        registry.remove("warehouse")


@pytest.mark.req("ERN-09")
def test_hidden_routes_and_those_of_others_are_never_suggested() -> None:
    registry = DomainRegistry()
    registry.add(WAREHOUSE)
    registry.add(Domain(name="safe", description="Keys", tools=[some_tool("open")], scopes=frozenset({"s"})))
    for wrong in ("warehouse://tools/analist", "warehouse://tools/hidden/analyst", "warehose://tools/analyst"):
        assert registry.suggest(parse_route(wrong), ME) == "warehouse://tools/analyst"
    for wrong in ("warehouse://tools/user-investigation", "safe://tools/opn", "safe://tools/open", "zoo://tools/open"):
        assert registry.suggest(parse_route(wrong), ME) == ""
