"""Discovery shows nothing but sound records of the caller's domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.catalog.domain import Domain, Segment
from clew.catalog.operations.discovery import select
from clew.catalog.resource import Resource
from clew.trail.model.breadcrumb import Draft
from tests.tools.fraud import ME, WAREHOUSE, ask, catalog_at, resources_of, some_tool


async def fetch(client: Any) -> str:
    return "fraud rules"


def rules(path: str) -> Resource:
    return Resource(path=path, name=path, description="fraud rules", fetch=fetch)


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"uri": 5, "description": "fraud rules"},
        {"uri": "docs://resources/x", "description": None},
        {"uri": "x`\n## forged", "description": "fraud rules"},
        {"uri": "warehouse://tools/hidden/fincrime", "description": "fraud rules"},
        {"uri": "other://resources/x", "description": "fraud rules"},
    ],
)
async def test_a_record_that_only_looks_like_a_resource_is_not_shown(tmp_path: Path, context: dict[str, Any]) -> None:
    domain = Domain(name="docs", description="Handbook", resources=[rules("real")])
    async with catalog_at(tmp_path, domain, WAREHOUSE) as (catalog, trail):
        draft = Draft(title="fraud rules", schema_name="resource.v1", context=context, tags=("domain:docs",))
        await trail.records.create(draft, by=ME)
        answer = await ask(catalog, "fraud rules")
    assert resources_of(answer) == ["docs://resources/real"]
    assert "forged" not in answer.markdown
    assert "hidden" not in answer.markdown


async def test_resources_of_many_domains_are_found_with_one_search(tmp_path: Path) -> None:
    domains = [
        Domain(name=f"docs-{at}", description="Handbook", resources=[rules(f"p{number}") for number in range(4)])
        for at in range(20)
    ]
    async with catalog_at(tmp_path, *domains) as (catalog, _):
        answer = await ask(catalog, "fraud rules", per_domain=2, budget=20_000)
        assert catalog.discovery.searches == 2
    assert all(len(section.resources) == 2 for section in answer.sections)
    assert len(answer.sections) == 20


async def test_a_hidden_tool_that_is_close_brings_its_domain_to_the_front(tmp_path: Path) -> None:
    deep = Domain(
        name="deep",
        description="A domain",
        tools=[some_tool("start", "Begins."), some_tool("volcano", "Measures volcano eruptions.", searchable=False)],
    )
    async with catalog_at(tmp_path, WAREHOUSE, deep) as (catalog, _):
        answer = await ask(catalog, "volcano eruptions")
    assert [section.domain for section in answer.sections] == ["deep", "warehouse"]
    assert answer.is_relevant
    assert "volcano" not in answer.markdown


@pytest.mark.req("ERN-06")
def test_a_segment_selects_by_type_or_first_part_of_the_path() -> None:
    selector = select("docs", Segment(name="s", types=["table"], path_segments=["guide"]))
    assert selector.all_tags == ("domain:docs",)
    assert selector.any_tags == ("type:table",)
    assert selector.context_match[0].value == ["guide"]
