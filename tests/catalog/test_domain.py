"""Domains are plain objects that are wrong at once or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.domain import Domain, SearchConfig
from clew.errors import InvalidInput
from tests.catalog.sample_domains import MemorySource, a_domain
from tests.tools.fraud import WAREHOUSE, analyst, user_investigation


@pytest.mark.req("ERN-05")
def test_a_domain_needs_a_name_and_a_description_only() -> None:
    domain = Domain(name="warehouse", description="Data")
    assert (domain.tools, domain.resources, domain.extractors, domain.scopes) == ((), (), (), frozenset())


@pytest.mark.req("ERN-01")
@pytest.mark.req("ERN-05")
def test_searchable_tools_stand_below_tools_and_the_others_below_hidden() -> None:
    assert str(WAREHOUSE.route_of(analyst)) == "warehouse://tools/analyst"
    assert str(WAREHOUSE.route_of(user_investigation)) == "warehouse://tools/hidden/user-investigation"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "Ware house"}, "domain"),
        ({"description": "  \n"}, "description"),
        ({"description": "x" * 1_001}, "description"),
    ],
)
def test_a_malformed_domain_is_refused_by_the_field_that_is_wrong(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Domain(**{"name": "warehouse", "description": "Data", **given})
    assert refused.value.field == field


@pytest.mark.req("ERN-05")
@pytest.mark.parametrize("missing", ["name", "description"])
def test_a_domain_without_a_mandatory_field_is_refused(missing: str) -> None:
    given = {"name": "warehouse", "description": "Data"}
    del given[missing]
    with pytest.raises(TypeError, match=missing):
        Domain(**given)  # type: ignore[arg-type]  # it lacks a field on purpose


@pytest.mark.req("ERN-06")
def test_weights_count_one_for_each_field() -> None:
    SearchConfig(query_by=("description", "name", "content"), weights=(4, 2, 1))
    with pytest.raises(InvalidInput, match="2 numbers for 3 fields"):
        SearchConfig(weights=(4, 2))
    with pytest.raises(InvalidInput, match="Fields are description, name, content"):
        SearchConfig(query_by=("body",))  # type: ignore[arg-type]  # a name that does not exist on purpose


def test_a_function_that_is_not_a_tool_is_reported_by_its_name() -> None:
    async def forgotten(query: str) -> str:
        """Find it."""
        return query

    with pytest.raises(InvalidInput, match=r"forgotten is not a tool\. Write @tool above it"):
        Domain(name="d", description="d", tools=[forgotten])  # type: ignore[list-item]  # the mistake


def test_a_source_that_a_domain_has_twice_is_reported() -> None:
    with pytest.raises(InvalidInput, match=r"has the source memory:one twice\. Give one pipeline the formats of both"):
        a_domain(MemorySource({}), MemorySource({}))
