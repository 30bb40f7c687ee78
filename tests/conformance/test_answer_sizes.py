"""Answers are bounded even for large breadcrumbs: a page ends early, and the next page continues."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.conformance.records import list_all

BIG = 3_000_000
MANY = 14
PAGE_BYTES = 12_000_000
"""More than a page of large breadcrumbs ever holds, and far less than all of them."""

RESULT_BYTES = 36_000_000


@pytest.fixture
async def large(trail: Trail, me: Principal) -> Trail:
    """A trail with 42 MB of breadcrumbs that all match one word."""
    for number in range(MANY):
        draft = Draft(title=f"Whale {number}", context={"blob": "x" * BIG}, embed="never")
        await trail.records.create(draft, by=me)
    return trail


async def test_a_page_of_large_breadcrumbs_ends_early_and_the_next_goes_on(large: Trail, me: Principal) -> None:
    page = await large.records.list(by=me, limit=1_000)
    assert 0 < len(page.items) * BIG < PAGE_BYTES
    assert page.cursor is not None
    assert [each.title for each in await list_all(large, me)] == [f"Whale {number}" for number in range(MANY)]


async def test_a_read_of_the_log_ends_early_and_the_next_goes_on(large: Trail, me: Principal) -> None:
    after, seen, reads = 0, [], 0
    while len(seen) < MANY:
        events, after = await large.log.read(after, by=me, limit=10_000)
        assert 0 < len(events) * BIG < PAGE_BYTES
        seen += [event.seq for event in events]
        reads += 1
    assert seen == sorted(set(seen))
    assert reads > 3


async def test_a_search_gives_the_best_of_large_breadcrumbs_only(large: Trail, me: Principal) -> None:
    result = await large.index.search(SearchRequest(text="whale", limit=1_000), by=me)
    assert 0 < len(result.hits) * BIG < RESULT_BYTES
    best = await large.index.search(SearchRequest(text="whale", limit=len(result.hits)), by=me)
    assert [hit.breadcrumb.id for hit in best.hits] == [hit.breadcrumb.id for hit in result.hits]
