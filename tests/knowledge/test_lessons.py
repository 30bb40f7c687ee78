"""Mistakes, preferences, beliefs and searches over all domains, through the catalog of an app."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.app import App
from clew.catalog.operations.answers import Item
from tests.knowledge.doors import get, of_session, opened, store
from tests.leaked_keys import TOKEN

HIDDEN = "history://tools/hidden"
EVERYWHERE = "code://tools/hidden"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as found:
        await found.knowledge().gather()
        yield found


@pytest.mark.req("SYL-104")
async def test_a_mistake_that_was_reported_is_warned_of_in_every_session(app: App) -> None:
    told = {"pattern": "run the nightly import twice", "error": "orders were doubled", "fix": "take the lock first"}
    await get(app, f"{HIDDEN}/report_mistake", of_session(app, "one"), **told)
    again = await get(app, f"{HIDDEN}/report_mistake", of_session(app, "two"), **told)
    assert "reported 2 times" in again
    warned = await get(
        app, f"{HIDDEN}/check_mistakes", of_session(app, "three"), approach="run the nightly import twice a day"
    )
    assert "orders were doubled" in warned
    assert "take the lock first" in warned
    assert "seen 2 times" in warned
    safe = await get(app, f"{HIDDEN}/check_mistakes", approach="paint the fence green")
    assert "Safe to proceed" in safe


@pytest.mark.req("SYL-104")
async def test_a_mistake_that_is_noted_with_its_fix_is_warned_of_too(app: App) -> None:
    await store(
        app,
        "Orders were doubled",
        summary_type="mistake",
        title="run the nightly import twice",
        outcome="take the lock first",
    )
    warned = await get(app, f"{HIDDEN}/check_mistakes", approach="run the nightly import twice")
    assert "take the lock first" in warned


async def test_a_preference_that_is_noted_under_a_title_is_one_of_that_kind(app: App) -> None:
    assert "No preference is known" in await get(app, f"{HIDDEN}/get_preferences")
    await store(app, "four spaces", summary_type="preference", title="indentation")
    assert "indentation: four spaces (said)" in await get(app, f"{HIDDEN}/get_preferences")
    session = of_session(app, "one")
    await get(app, f"{HIDDEN}/set_preference", session, category="indentation", preference="tabs", for_session=True)
    assert "indentation: tabs (for this session)" in await get(app, f"{HIDDEN}/get_preferences", session)
    assert "tabs" not in await get(app, f"{HIDDEN}/get_preferences", of_session(app, "two"))


async def test_a_key_in_a_preference_is_masked_wherever_it_stands(app: App) -> None:
    await get(app, f"{HIDDEN}/set_preference", category=f"token {TOKEN}", preference=f"use {TOKEN}")
    shown = await get(app, f"{HIDDEN}/get_preferences")
    assert "token" in shown
    assert TOKEN not in shown


@pytest.mark.req("BEY-05")
async def test_beliefs_are_listed_as_valid_at_a_moment(app: App) -> None:
    fact: dict[str, Any] = {"subject": "shop", "attribute": "least Python", "source": "CHANGELOG.md"}
    await get(app, f"{HIDDEN}/record_belief", **fact, value="3.10", version="1.0", valid_from="2025-01-01T00:00:00Z")
    await get(app, f"{HIDDEN}/record_belief", **fact, value="3.11", version="2.0", valid_from="2026-01-01T00:00:00Z")
    now = await get(app, f"{HIDDEN}/get_beliefs", subject="shop")
    assert "is 3.11" in now
    assert "is 3.10" not in now
    assert "CHANGELOG.md 2.0" in now
    then = await get(app, f"{HIDDEN}/get_beliefs", subject="shop", as_of="2025-06-01T00:00:00Z")
    assert "is 3.10" in then
    assert "is 3.11" not in then
    before = await get(app, f"{HIDDEN}/get_beliefs", subject="shop", recorded_by="2020-01-01T00:00:00Z")
    assert "Nothing was recorded" in before


@pytest.mark.req("BEY-05")
async def test_beliefs_disagree_only_while_both_are_valid(app: App) -> None:
    fact: dict[str, Any] = {"subject": "shop", "attribute": "port"}
    await get(
        app, f"{HIDDEN}/record_belief", **fact, source="README.md", value="8081", valid_from="2025-01-01T00:00:00Z"
    )
    later = {"source": "a chat", "value": "9000", "valid_from": "2026-01-01T00:00:00Z"}
    await get(app, f"{HIDDEN}/record_belief", **fact, **later)
    then = await get(app, f"{HIDDEN}/get_beliefs", subject="shop", as_of="2025-06-01T00:00:00Z")
    assert "is 8081" in then
    assert "disagree" not in then.lower()
    now = await get(app, f"{HIDDEN}/get_beliefs", subject="shop", as_of="2026-06-01T00:00:00Z")
    assert "disagree" in now.lower()


@pytest.mark.req("SYL-106")
async def test_preferences_are_learned_from_accepted_and_rejected_suggestions(app: App) -> None:
    async def observe(response: str, suggestion: str = "tabs") -> str:
        given = {"category": "indentation", "suggestion": suggestion, "response": response}
        return await get(app, f"{HIDDEN}/observe_preference", **given)

    assert "Nothing is learned" in await observe("rejected")
    expected = [("accepted", 60), ("accepted", 70), ("rejected", 50), ("accepted", 60)]
    for response, percent in expected:
        assert f"indentation: tabs (learned, {percent}%)" in await observe(response)
    assert "indentation: spaces (learned, 60%)" in await observe("accepted", "spaces")
    await get(app, f"{HIDDEN}/set_preference", category="indentation", preference="two spaces")
    shown = await get(app, f"{HIDDEN}/get_preferences", of_session(app, "later"))
    assert shown.index("two spaces (said)") < shown.index("spaces (learned")


@pytest.mark.req("BEY-05")
async def test_a_belief_is_retracted_and_stays_on_record(app: App) -> None:
    fact = {"subject": "shop", "attribute": "port", "value": "8081", "source": "README.md"}
    shown = await get(app, f"{HIDDEN}/record_belief", **fact)
    found = re.search(r"Recorded as ([0-9a-f-]{36})", shown)
    assert found is not None
    await get(app, f"{HIDDEN}/retract_belief", id=found[1], why="it was a typo")
    assert "Nothing was recorded" in await get(app, f"{HIDDEN}/get_beliefs", subject="shop")
    kept = await app.trail.records.get(found[1], by=app.me)
    assert kept.context["value"] == "8081"
    catalog = (await app.workspace()).catalog
    item = Item(route=f"{HIDDEN}/retract_belief", params={"id": found[1], "why": " "})
    assert "why" in (await catalog.get([item], by=app.me)).markdown


@pytest.mark.req("BEY-05")
async def test_a_moment_without_a_time_zone_is_refused_with_an_example(app: App) -> None:
    catalog = (await app.workspace()).catalog
    item = Item(route=f"{HIDDEN}/get_beliefs", params={"subject": "shop", "as_of": "2025-06-01T00:00:00"})
    results = await catalog.get([item], by=app.me)
    assert results.summary.failed == 1
    assert "as_of" in results.markdown


@pytest.mark.req("SYL-93")
async def test_one_search_tells_of_all_domains(app: App) -> None:
    await store(app, "Payments wait between attempts", title="Payments are tried again")
    found = await get(app, f"{EVERYWHERE}/search_all", query="payments backoff attempt")
    assert re.findall(r"^## (\w+)", found, re.M) == ["code", "history", "academic"]
    assert "src/retry.py" in found
    assert "Payments are tried again" in found
    only = await get(app, f"{EVERYWHERE}/search_all", query="zebra quagga", domains=["history"])
    assert "## history\n\nno matches" in only
    assert "## code" not in only


@pytest.mark.req("SYL-94")
async def test_a_search_keeps_to_its_budget(app: App) -> None:
    found = await get(app, f"{EVERYWHERE}/smart_search", query="backoff attempt", token_budget=300)
    used = re.search(r"([\d,]+) of 300 tokens used", found)
    assert used is not None
    assert 0 < int(used[1].replace(",", "")) <= 300
    assert "src/retry.py" in found
    nothing = await get(app, f"{EVERYWHERE}/smart_search", query="zebra quagga")
    assert "No domain has anything on this" in nothing


@pytest.mark.req("SYL-93")
async def test_a_search_of_code_without_a_match_leads_on_to_all_domains(app: App) -> None:
    assert "search_all" in await get(app, "code://tools/search_code", query="zebra quagga")
