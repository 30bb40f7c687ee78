"""Mistakes that are remembered."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.knowledge.history.lessons import Mistakes
from clew.trail.store import Trail


@pytest.fixture
def mistakes(trail: Trail, me: Principal, clock: ManualClock) -> Mistakes:
    return Mistakes(trail, me, clock)


PATTERN = "storing auth tokens in localStorage"


@pytest.mark.req("SYL-104")
async def test_a_repeated_report_counts_once_more(mistakes: Mistakes, clock: ManualClock) -> None:
    first = await mistakes.report_mistake(PATTERN, "scripts can read them", "use cookies", "web pages", ["security"])
    assert (first.confidence, first.occurrences, first.created_at) == (0.7, 1, first.last_seen_at)

    clock.advance(days=1)
    again = await mistakes.report_mistake(
        "Storing the auth token in localStorage", "stolen by a script", "httpOnly cookies", tags=["web"]
    )
    assert (again.id, again.occurrences) == (first.id, 2)
    assert (again.created_at, again.last_seen_at) == (first.created_at, clock.now())
    assert again.confidence > first.confidence
    assert (again.fix, again.context, again.tags) == ("httpOnly cookies", "web pages", ("security", "web"))


@pytest.mark.req("SYL-104", "O17")
async def test_an_approach_is_checked_in_every_session(trail: Trail, clock: ManualClock, mistakes: Mistakes) -> None:
    await mistakes.report_mistake(PATTERN, "scripts can read them", "use cookies")
    await mistakes.report_mistake("parsing HTML with regular expressions", "breaks on nesting", "use a parser")
    elsewhere = Mistakes(trail, Principal(owner_id="acme", agent_id="bob", session="s9"), clock)

    warnings = await elsewhere.check_mistakes("using localStorage for auth tokens")
    assert [warning.pattern for warning in warnings] == [PATTERN]
    assert await elsewhere.check_mistakes("a regular expression that parses HTML pages")


@pytest.mark.req("SYL-104")
@pytest.mark.parametrize(
    "approach", ["keep the auth tokens in an httpOnly cookie", "localStorage for the theme", "sort a list of names"]
)
async def test_a_clean_approach_is_safe_to_proceed(mistakes: Mistakes, approach: str) -> None:
    await mistakes.report_mistake(PATTERN, "scripts can read them", "use cookies")
    assert await mistakes.check_mistakes(approach) == []


async def test_nothing_is_known_at_first(mistakes: Mistakes) -> None:
    assert await mistakes.check_mistakes("anything") == []


async def test_reports_at_the_same_time_are_all_counted(mistakes: Mistakes) -> None:
    await asyncio.gather(*(mistakes.report_mistake(PATTERN, "e", "f") for _ in range(12)))
    [warning] = await mistakes.check_mistakes(PATTERN)
    assert warning.occurrences == 12
    assert warning.confidence == 0.95


async def test_owners_do_not_share_mistakes(
    mistakes: Mistakes, trail: Trail, stranger: Principal, clock: ManualClock
) -> None:
    await mistakes.report_mistake(PATTERN, "scripts can read them", "use cookies")
    theirs = Mistakes(trail, stranger, clock)
    assert await theirs.check_mistakes(PATTERN) == []
    assert (await theirs.report_mistake(PATTERN, "e", "f")).occurrences == 1


async def test_empty_parts_are_refused_and_keys_masked(mistakes: Mistakes) -> None:
    for parts in (("", "e", "f"), ("p", " ", "f"), ("p", "e", "")):
        with pytest.raises(InvalidInput):
            await mistakes.report_mistake(*parts)
    with pytest.raises(InvalidInput):
        await mistakes.check_mistakes("  ")
    key = "ghp_" + "a1B2" * 9
    assert key not in str(await mistakes.report_mistake(f"committing {key}", f"{key} leaked", "revoke"))
