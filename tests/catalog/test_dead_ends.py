"""A tool that names a missing route is reported, with the probable route."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.catalog.domain import Domain
from clew.catalog.operations.dead_ends import find_dead_ends
from clew.catalog.registry import DomainRegistry
from clew.catalog.resource import Resource
from clew.knowledge.domains.code import build_code
from clew.knowledge.domains.history import build_history
from clew.knowledge.domains.reference import build_reference
from clew.tools import Guidance, GuidedContent, Tool, guide, tool
from tests.catalog.sample_domains import MemorySource, a_domain
from tests.tools.fraud import SUPPORT, WAREHOUSE, catalog_at, get, guided_by, some_tool

ORDER = "shop://tools/hidden/order"
STEPS = {"pay": guide("shop://tools/hidden/pey", "Pay")}
ELSEWHERE = ("support://tools/hidden/vip-car", "billing://tools/invoices")


async def fetch(client: Any) -> str:
    return "text"


def lead(why: str) -> list[Guidance]:
    return [guide("shop://tools/hidden/refunds", why)]


@tool
async def fixed(user: int) -> GuidedContent:
    """Guides to the route in a constant of the module."""
    return GuidedContent(content="", guidance=[guide(ORDER, f"Orders of {user}", user=user)])


@tool
async def conditional(risk: int) -> GuidedContent:
    """Leads on where the risk is high."""
    steps = [guide("shop://tools/hidden/reviev", "A review")] if risk > 80 else []
    return GuidedContent(content="", guidance=[*steps, STEPS["pay"]])


@tool
async def across() -> GuidedContent:
    """Leads into other domains, one of which is not there."""
    return GuidedContent(content="", guidance=[guide(route, "On") for route in ELSEWHERE])


@tool
async def helped() -> GuidedContent:
    """Leads on with the help of another function."""
    return GuidedContent(content="", guidance=lead("Money back"))


@tool
async def reading() -> GuidedContent:
    """Leads to resources."""
    routes = ["shop://resources/terms", "shop://resources/term"]
    return GuidedContent(content="", guidance=[guide(route, "Read") for route in routes])


@tool
async def right(kind: str, number: int) -> GuidedContent:
    """Leads to shop://tools/hidden/nowhere in words only, and to routes that are put together."""
    steps = [guide(f"shop://tools/hidden/order-{number}", "One"), guide("shop://tools/hidden/" + kind, "Other")]
    steps += [guide("shop://tools/hidden/orders-" + kind, "One of a kind"), guide("shop://tools/hidden/orders", "All")]
    return GuidedContent(content="see shop://tools/hidden/nothing there", guidance=steps)


HIDDEN = [some_tool(name, searchable=False) for name in ("orders", "review", "pay", "refund")]
TERMS = Resource(path="terms", name="Terms", description="Terms", fetch=fetch)


def told(*domains: Domain) -> list[str]:
    registry = DomainRegistry()
    for domain in domains:
        registry.add(domain)
    return [str(each) for each in find_dead_ends(registry)]


def shop(*tools: Tool, **more: Any) -> Domain:
    return Domain(name="shop", description="The shop", tools=[*tools, *HIDDEN], resources=[TERMS], **more)


@pytest.mark.req("ERN-15")
@pytest.mark.parametrize(
    ("made", "pairs"),
    [
        (fixed, [("order", "orders")]),
        (conditional, [("pey", "pay"), ("reviev", "review")]),
        (helped, [("refunds", "refund")]),
        (right, []),
    ],
)
def test_a_step_to_a_tool_that_is_missing_is_reported_with_the_nearest(
    made: Tool, pairs: list[tuple[str, str]]
) -> None:
    assert told(shop(made)) == [
        f"shop://tools/{made.name} leads to shop://tools/hidden/{wrong}, which does not exist: the step is dropped."
        f" Did you mean shop://tools/hidden/{meant}?"
        for wrong, meant in pairs
    ]


@pytest.mark.req("ERN-15")
def test_a_step_into_another_domain_is_reported_only_if_that_domain_is_loaded() -> None:
    assert told(shop(across)) == []
    (only,) = told(shop(across), SUPPORT)
    assert only.endswith(
        "support://tools/hidden/vip-car, which does not exist: the step is dropped."
        " Did you mean support://tools/hidden/vip-care?"
    )
    assert told(WAREHOUSE, SUPPORT) == []


def test_a_step_to_a_resource_is_told_only_where_all_resources_are_known() -> None:
    (only,) = told(shop(reading))
    assert "shop://resources/term, which" in only
    assert told(shop(reading, extractors=a_domain(MemorySource({})).extractors)) == []


def test_functions_with_odd_closures_or_without_source_are_skipped() -> None:
    names: dict[str, Any] = {}
    exec('async def bare() -> str:\n    "Bare."\n    return "shop://tools/hidden/gone"', names)

    async def circle() -> str:
        """Refers to itself."""
        return await circle() + later

    made = [tool(names["bare"]), tool(circle)]
    assert told(shop(*made)) == []
    later = ""


@pytest.mark.req("ERN-15")
async def test_a_step_that_is_dropped_since_its_route_is_none_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def computed(name: str) -> GuidedContent:
        """Leads to a route that is put together."""
        routes = [f"shop://tools/hidden/{name}", f"shop {name}", f"absent://tools/{name}"]
        return GuidedContent(content="", guidance=[guide(route, "On") for route in routes])

    caplog.set_level(logging.WARNING, "clew.catalog")
    async with catalog_at(tmp_path, shop(computed)) as (catalog, _):
        assert guided_by(await get(catalog, "shop://tools/computed", name="gone")) == []
    assert [record.message for record in caplog.records] == [
        "shop://tools/computed leads to shop://tools/hidden/gone, which does not exist",
        "shop://tools/computed leads to shop gone, which is not a route",
    ]


def test_the_tools_that_come_with_clew_lead_to_routes_that_exist() -> None:
    async def open_knowledge() -> Any:
        raise AssertionError("no tool runs")

    domains = [build(open_knowledge) for build in (build_code, build_history, build_reference)]
    assert all(each.is_builtin for each in domains)
    assert told(*(msgspec.structs.replace(each, is_builtin=False) for each in domains)) == []


def test_domains_that_come_with_clew_are_not_checked_again() -> None:
    assert told(shop(fixed)) != []
    assert told(shop(fixed, is_builtin=True)) == []
