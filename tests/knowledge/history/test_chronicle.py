"""The chronicle through its own object, on a real trail."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, NotFound
from clew.knowledge.history.entries import ArchiveQuery, Category
from clew.knowledge.history.journal import Chronicle
from clew.knowledge.nodes.node_store import Node
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail


@pytest.fixture
def monday(trail: Trail, me: Principal, clock: ManualClock) -> Chronicle:
    return Chronicle(trail, me, "monday", clock)


@pytest.fixture
def tuesday(trail: Trail, me: Principal, clock: ManualClock) -> Chronicle:
    return Chronicle(trail, me, "tuesday", clock)


def titles(entries: list[Node]) -> set[str]:
    return {entry.name for entry in entries}


@pytest.mark.req("SYL-22")
@pytest.mark.parametrize("category", list(Category))
async def test_every_category_can_be_stored_and_asked_for(monday: Chronicle, category: Category) -> None:
    stored = await monday.store("We chose port 8081", category, "Port")
    await monday.store("Something else", Category.GENERAL if category != "general" else Category.INSIGHT)

    [found] = await monday.query(ArchiveQuery(categories=[category]))
    assert found == stored
    assert (found.name, found.content, found.category) == ("Port", "We chose port 8081", category)
    assert (found.session_id, found.source) == ("monday", "ann")


@pytest.mark.req("SYL-09")
async def test_the_three_scopes_are_three_sets(monday: Chronicle, tuesday: Chronicle) -> None:
    await monday.store("mine", Category.INSIGHT, "own")
    await tuesday.store("theirs", Category.INSIGHT, "foreign")
    shared = await tuesday.store("for all", Category.PATTERN, "shared")
    await tuesday.promote(shared.id)

    assert titles(await monday.query()) == {"own", "shared"}
    assert titles(await monday.query(ArchiveQuery(current_only=True))) == {"own"}
    assert titles(await monday.query(ArchiveQuery(cross_session=True))) == {"own", "shared", "foreign"}
    assert titles(await monday.query(ArchiveQuery(promoted_only=True))) == {"shared"}
    with pytest.raises(InvalidInput):
        await monday.query(ArchiveQuery(cross_session=True, current_only=True))


@pytest.mark.req("SYL-09")
async def test_all_filters_hold_together(monday: Chronicle, trail: Trail, clock: ManualClock) -> None:
    await monday.store("The cache holds pages", Category.DECISION, "early")
    clock.advance(hours=1)
    middle = clock.now()
    coder = Principal(owner_id="acme", agent_id="coder")
    await Chronicle(trail, coder, "monday", clock).store("The cache holds blocks", Category.DECISION, "middle")
    clock.advance(hours=1)
    await Chronicle(trail, coder, "tuesday", clock).store("Bread needs yeast", Category.INSIGHT, "late")

    async def asked(**parts: object) -> set[str]:
        return titles(await monday.query(msgspec.convert({"cross_session": True, **parts}, ArchiveQuery)))

    assert await asked(since=middle) == {"middle", "late"}
    assert await asked(until=middle) == {"early", "middle"}
    assert await asked(since=middle, until=middle) == {"middle"}
    assert await asked(sources=["coder"]) == {"middle", "late"}
    assert await asked(sources=["coder"], categories=["decision"]) == {"middle"}
    assert await asked(session_ids=["tuesday"]) == {"late"}
    assert await asked(exclude_sessions=["tuesday"]) == {"early", "middle"}
    assert await asked(exclude_sessions=["tuesday", "monday"]) == set()
    assert [each.name for each in await monday.query(ArchiveQuery(cross_session=True, limit=1))] == ["late"]
    found = await monday.query(ArchiveQuery(cross_session=True, search_text="yeast for bread", limit=1))
    assert titles(found) == {"late"}
    narrowed = ArchiveQuery(search_text="cache", sources=["ann"], since=middle - timedelta(hours=2))
    assert titles(await monday.query(narrowed)) == {"early"}


@pytest.mark.req("SYL-34", "O17")
async def test_a_session_writes_for_itself_and_reads_what_was_promoted(
    monday: Chronicle, tuesday: Chronicle, clock: ManualClock
) -> None:
    stored = await monday.store("Retry with a growing pause", Category.PATTERN, "Retry")
    assert await tuesday.query() == []

    clock.advance(minutes=5)
    promoted = await monday.promote_pattern(stored.id)
    assert promoted.metadata["promoted"] == {"by": "ann", "at": clock.now().isoformat(), "because": "user"}
    assert titles(await tuesday.query()) == {"Retry"}
    assert await monday.promote_pattern(stored.id) == promoted

    taken = await tuesday.take_back(stored.id)
    assert taken.metadata["promoted"] is None
    assert await tuesday.query() == []
    assert titles(await monday.query()) == {"Retry"}


@pytest.mark.req("SYL-22")
async def test_only_a_pattern_is_promoted_as_a_pattern(monday: Chronicle, trail: Trail, me: Principal) -> None:
    stored = await monday.store("It broke", Category.FAILURE)
    with pytest.raises(InvalidInput, match="failure, not a pattern"):
        await monday.promote_pattern(stored.id)
    note = await trail.records.create(Draft(title="a note", context={"x": 1}), by=me)
    with pytest.raises(NotFound):
        await monday.promote(note.id)


async def test_emitters_cannot_promote(monday: Chronicle, trail: Trail, clock: ManualClock) -> None:
    stored = await monday.store("Retry", Category.PATTERN)
    writer = Principal(owner_id="acme", agent_id="bot", roles=frozenset({"emitter", "subscriber"}))
    with pytest.raises(AccessDenied):
        await Chronicle(trail, writer, "monday", clock).promote(stored.id)


async def test_other_owners_see_nothing_with_any_scope(
    monday: Chronicle, trail: Trail, stranger: Principal, clock: ManualClock
) -> None:
    stored = await monday.store("ours", Category.PATTERN)
    await monday.promote(stored.id)
    theirs = Chronicle(trail, stranger, "monday", clock)
    for query in (ArchiveQuery(), ArchiveQuery(cross_session=True), ArchiveQuery(promoted_only=True)):
        assert await theirs.query(query) == []
    with pytest.raises(NotFound):
        await theirs.promote(stored.id)


async def test_keys_are_masked_and_empty_entries_refused(monday: Chronicle) -> None:
    key = "ghp_" + "a1B2" * 9
    stored = await monday.store(f"the token is {key}", Category.GENERAL)
    assert key not in f"{stored.name} {stored.content}"
    with pytest.raises(InvalidInput, match="content"):
        await monday.store("  \n", Category.GENERAL)
