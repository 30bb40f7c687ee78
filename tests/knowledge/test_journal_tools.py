"""Entries of the journal through the catalog: categories, scopes, promotion and summaries of sessions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.app import App
from clew.catalog.operations.answers import Item
from clew.knowledge.history.entries import Category
from tests.knowledge.doors import get, of_session, opened
from tests.leaked_keys import TOKEN

HIDDEN = "history://tools/hidden"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as found:
        yield found


async def store(app: App, by: Principal, content: str, category: str, **more: Any) -> str:
    shown = await get(app, f"{HIDDEN}/store", by, content=content, category=category, **more)
    found = re.search(r"Stored as ([0-9a-f-]{36})", shown)
    assert found is not None, shown
    return found[1]


async def refused(app: App, tool: str, by: Principal, **params: Any) -> str:
    results = await (await app.workspace()).catalog.get([Item(route=f"{HIDDEN}/{tool}", params=params)], by=by)
    assert results.summary.failed == 1
    return results.markdown


@pytest.mark.req("SYL-22")
@pytest.mark.parametrize("category", list(Category))
async def test_an_entry_of_each_category_is_stored_and_found_by_it(app: App, category: Category) -> None:
    monday = of_session(app, "monday")
    id = await store(app, monday, "The kettle takes three litres", category, title="Kettle")
    other = Category.GENERAL if category is not Category.GENERAL else Category.INSIGHT
    await store(app, monday, "The tap takes two", other)
    shown = await get(app, f"{HIDDEN}/query", monday, category=category.value)
    assert id in shown
    assert f"{category}: Kettle" in shown
    assert "The tap" not in shown


@pytest.mark.req("SYL-22")
async def test_an_unknown_category_is_refused_with_the_choices(app: App) -> None:
    shown = await refused(app, "store", of_session(app, "monday"), content="x", category="rumour")
    assert "rumour" in shown
    assert "hypothesis" in shown


@pytest.mark.req("SYL-09")
async def test_the_three_scopes_list_three_sets(app: App) -> None:
    monday, tuesday = of_session(app, "monday"), of_session(app, "tuesday")
    await store(app, monday, "Mine alone", "insight")
    await store(app, tuesday, "Theirs alone", "insight")
    shared = await store(app, tuesday, "For everybody", "pattern")
    await get(app, f"{HIDDEN}/promote", tuesday, id=shared)

    async def listed(**params: Any) -> set[str]:
        shown = await get(app, f"{HIDDEN}/query", monday, **params)
        return {text for text in ("Mine alone", "Theirs alone", "For everybody") if text in shown}

    assert await listed() == {"Mine alone", "For everybody"}
    assert await listed(scope="current_only") == {"Mine alone"}
    assert await listed(scope="cross_session") == {"Mine alone", "Theirs alone", "For everybody"}
    assert await listed(promoted_only=True) == {"For everybody"}
    assert await listed(scope="cross_session", search="everybody", limit=1) == {"For everybody"}
    assert await listed(since="2099-01-01T00:00:00Z") == set()
    assert await listed(until="2099-01-01T00:00:00Z", sources=["ann"], category="insight") == {"Mine alone"}


@pytest.mark.req("SYL-22")
async def test_other_sessions_are_queried_with_and_without_the_own(app: App) -> None:
    monday, tuesday = of_session(app, "monday"), of_session(app, "tuesday")
    await store(app, monday, "Mine alone", "insight")
    await store(app, tuesday, "Theirs alone", "failure")
    both = await get(app, f"{HIDDEN}/cross_session_query", monday)
    assert "Mine alone" in both
    assert "Theirs alone" in both
    others = await get(app, f"{HIDDEN}/cross_session_query", monday, exclude_current=True)
    assert "Mine alone" not in others
    assert "session tuesday" in others
    assert "No entry fits" in await get(app, f"{HIDDEN}/cross_session_query", monday, session_ids=["friday"])
    assert "Theirs" not in await get(app, f"{HIDDEN}/cross_session_query", monday, category="insight")


@pytest.mark.req("SYL-22", "SYL-07")
async def test_a_pattern_is_promoted_for_all_sessions_and_taken_back(app: App) -> None:
    monday, tuesday = of_session(app, "monday"), of_session(app, "tuesday")
    id = await store(app, monday, "Retry with a growing pause", "pattern")
    assert "promoted for all sessions, by ann" in await get(app, f"{HIDDEN}/promote_pattern", monday, id=id)
    assert "growing pause" in await get(app, f"{HIDDEN}/query", tuesday)
    assert "no longer promoted" in await get(app, f"{HIDDEN}/take_back", tuesday, id=id)
    assert "No entry fits" in await get(app, f"{HIDDEN}/query", tuesday)
    failure = await store(app, monday, "It broke", "failure")
    assert "not a pattern" in await refused(app, "promote_pattern", monday, id=failure)


@pytest.mark.req("SYL-22")
async def test_a_session_is_summed_up_with_its_times_and_sources(app: App) -> None:
    monday = of_session(app, "monday")
    id = await store(app, monday, "We keep commits in SQLite", "decision", title="SQLite")
    await store(app, monday, "The lock was never released", "failure", title="Deadlock")
    shown = await get(app, f"{HIDDEN}/session_summary", of_session(app, "tuesday"), session_id="monday")
    assert "Session monday: 1 decision, 1 failure." in shown
    assert "Deadlock" in shown
    assert id in shown
    assert re.search(r"From \d{4}-\d\d-\d\d \d\d:\d\d to ", shown)
    own = await get(app, f"{HIDDEN}/session_summary", of_session(app, "tuesday"))
    assert "Session tuesday: nothing recorded yet." in own


async def test_a_key_in_an_entry_is_masked(app: App) -> None:
    await store(app, of_session(app, "monday"), f"The key is {TOKEN}", "general")
    assert TOKEN not in await get(app, f"{HIDDEN}/query", of_session(app, "monday"))


@pytest.mark.req("O17")
async def test_the_word_of_the_user_is_not_marked_as_unverified(app: App) -> None:
    monday = of_session(app, "monday")
    await store(app, monday, "I like short names", "user_voice")
    await store(app, monday, "They like short names", "insight")
    shown = await get(app, f"{HIDDEN}/query", monday)
    assert re.search(r"user_voice: I like short names", shown)
    assert re.search(r"insight: .*UNVERIFIED", shown)
