"""An answer stays within its budget for any catalog, and mentions every omitted domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.operations.answers import CatalogAnswer
from clew.catalog.resource import Resource
from clew.llm.tokens import count_tokens
from tests.tools.fraud import ask, catalog_at, resources_of, routes_of, some_tool

WORDS = ["orders", "payments", "devices", "letters", "flights", "recipes", "weather", "taxes", "music", "plants"]


def many_domains(number: int, each: int = 3) -> list[Domain]:
    return [
        Domain(
            name=f"{WORDS[at % 10]}-system-{at}",
            description=f"Everything about {WORDS[at % 10]} in region {at}, for the people who work with it",
            tools=[
                some_tool(f"{WORDS[at % 10]}-{verb}", f"Can {verb} {WORDS[at % 10]} of region {at}.")
                for verb in ("list", "find", "create", "remove", "export")[:each]
            ],
        )
        for at in range(number)
    ]


def named_or_told(answer: CatalogAnswer, domains: Sequence[Domain]) -> bool:
    shown = {section.domain for section in answer.sections}
    missing = [domain.name for domain in domains if domain.name not in shown]
    if not missing:
        return True
    told = [name for name in missing if name in answer.cut]
    return (
        len(told) == len(missing)
        or f"{len(missing) - len(told)} more" in answer.cut
        or (not told and f"{len(missing)} domains" in answer.cut)
    )


@pytest.mark.req("ERN-09")
@pytest.mark.parametrize("number", [1, 5, 12, 150])
async def test_an_answer_over_any_number_of_domains_keeps_to_its_budget(tmp_path: Path, number: int) -> None:
    domains = many_domains(number)
    async with catalog_at(tmp_path, *domains) as (catalog, _):
        for budget in (300, 2_000, 10_000):
            for query in ("find flights of region 4", "zzqx blorf"):
                answer = await ask(catalog, query, budget=budget)
                assert count_tokens(answer.markdown) <= budget, (number, budget, query)
                assert answer.tokens <= budget
                assert named_or_told(answer, domains)
                assert answer.sections
                if answer.cut:
                    assert answer.cut in answer.markdown


@pytest.mark.req("ERN-09")
async def test_with_few_tools_an_ordinary_budget_cuts_nothing(tmp_path: Path) -> None:
    domains = many_domains(12)
    async with catalog_at(tmp_path, *domains) as (catalog, _):
        answer = await ask(catalog, "zzqx blorf")
    assert len(routes_of(answer)) == 36
    assert answer.cut == ""


async def test_the_most_relevant_items_come_first_and_complete(tmp_path: Path) -> None:
    domains = [
        *many_domains(100),
        Domain(
            name="telescope",
            description="Stars and planets",
            tools=[some_tool("point", "Points the telescope at a star or planet."), some_tool("park", "Closes it.")],
        ),
    ]
    async with catalog_at(tmp_path, *domains, embedder="wordllama") as (catalog, _):
        answer = await ask(catalog, "point the telescope at the planet Saturn")
    first = answer.sections[0]
    assert (first.domain, first.is_folded) == ("telescope", False)
    assert first.tools[0].route == "telescope://tools/point"
    assert answer.is_relevant
    assert any(section.is_folded for section in answer.sections[1:])
    assert count_tokens(answer.markdown) <= 2_000


@pytest.mark.slow
async def test_two_thousand_routes_in_one_domain_stay_within_the_budget_and_each_can_be_found(tmp_path: Path) -> None:
    tools = [some_tool(f"{WORDS[at % 10]}-{at}", f"Handles {WORDS[at % 10]} case {at}.") for at in range(2_000)]
    domain = Domain(name="huge", description="Very many tools", tools=tools)
    async with catalog_at(tmp_path, domain) as (catalog, _):
        for query in ("zzqx blorf", "weather-1446", "handles music case 1448"):
            answer = await ask(catalog, query)
            assert count_tokens(answer.markdown) <= 2_000
            (section,) = answer.sections
            shown = len(section.tools) + len(section.folded)
            assert shown + section.more == 2_000
            assert f"{section.more:} more" in answer.markdown
        assert routes_of(await ask(catalog, "weather-1446"))[0] == "huge://tools/weather-1446"
        assert routes_of(await ask(catalog, "music 1448"))[0] == "huge://tools/music-1448"


async def test_long_names_and_descriptions_stay_within_the_budget(tmp_path: Path) -> None:
    long_name = "/".join(["very-long-name-of-a-part-of-a-tool" * 2] * 8)
    domains = [
        Domain(
            name=f"{'domain' * 9}-{at}",
            description="Long words about everything " * 35,
            tools=[some_tool(f"{long_name}-{number}", "Long words about anything. " * 140) for number in range(6)],
        )
        for at in range(5)
    ]
    async with catalog_at(tmp_path, *domains) as (catalog, _):
        for budget in (300, 1_000, 2_000):
            answer = await ask(catalog, "long words about anything", budget=budget)
            assert count_tokens(answer.markdown) <= budget
            assert named_or_told(answer, domains)


async def test_a_long_session_is_within_the_budget(tmp_path: Path) -> None:
    by = Principal(owner_id="acme", agent_id="ann", session="a-long-session-name-" * 9)
    async with catalog_at(tmp_path, *many_domains(60)) as (catalog, _):
        answer = await ask(catalog, "find flights", by=by, budget=600)
        again = await ask(catalog, "find flights", by=by, budget=600)
    assert again.is_repeated
    assert count_tokens(answer.markdown) <= 600
    assert count_tokens(again.markdown) <= 600


async def test_an_answer_counts_the_resources_that_did_not_fit(tmp_path: Path) -> None:
    async def fetch(client: Any) -> str:
        return "orders"

    pages = [
        Resource(path=f"p{at}", name=f"Page {at}", description="How orders are counted. " * 10, fetch=fetch)
        for at in range(40)
    ]
    domain = Domain(name="docs", description="Handbook", resources=pages)
    async with catalog_at(tmp_path, domain) as (catalog, _):
        answer = await ask(catalog, "how are orders counted", per_domain=40, budget=1_000)
        whole = await ask(catalog, "how are orders counted", per_domain=40, budget=10_000)
    assert count_tokens(answer.markdown) <= 1_000
    assert len(resources_of(whole)) == 40
    assert f"{40 - len(resources_of(answer))} resources" in answer.cut


async def test_an_answer_is_not_padded_without_close_matches(tmp_path: Path) -> None:
    async def fetch(client: Any) -> str:
        return "orders"

    pages = [Resource(path=f"p{at}", name=f"Page {at}", description="orders", fetch=fetch) for at in range(5)]
    domain = Domain(name="docs", description="Handbook", resources=pages)
    async with catalog_at(tmp_path, domain, embedder="wordllama") as (catalog, _):
        answer = await ask(catalog, "zzqx blorf wibble")
    assert not answer.is_relevant
    assert resources_of(answer) == []


async def test_a_cut_is_reported_only_if_a_larger_budget_would_show_more(tmp_path: Path) -> None:
    async def fetch(client: Any) -> str:
        return "Paint."

    about = "How refunds are paid back to passengers"
    near = Domain(
        name="refunds",
        description=about,
        tools=[some_tool("refund", about)],
        resources=[Resource(path="pay", name="refunds", description=about, fetch=fetch)],
    )
    far = Domain(
        name="boats",
        description="Boats",
        resources=[Resource(path="hull", name="hull", description="What refunds cost", fetch=fetch)],
    )
    async with catalog_at(tmp_path, near, far, *many_domains(6)) as (catalog, _):
        answer = await ask(catalog, "how refunds are paid back to passengers", budget=100_000)
    assert answer.is_relevant
    assert any(section.is_folded for section in answer.sections)
    assert answer.cut == ""
