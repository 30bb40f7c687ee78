"""The newest events in memory: the consumers that may want them, and cases that need the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import SystemClock
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.selector import EVERYTHING, ContextMatch, Selector
from clew.trail.sqlite.trail import SqliteTrail
from clew.trail.work.recent_events import LENGTH, EmptyLists, Tail

ME = Principal(owner_id="me", agent_id="test")
NOTES = Selector(schema_name="note.v1")
PATIENCE = 30.0


def rows(first: int, *schemas: str) -> list[tuple[object, ...]]:
    return [(seq, 0, seq, "id", 1, 1, schema, '["a"]', 0) for seq, schema in enumerate(schemas, first)]


def test_only_later_matching_events_count() -> None:
    tail = Tail()
    tail.add(0, rows(1, "note.v1"))
    assert tail.add(1, rows(2, "other.v1", "other.v1"))
    assert not tail.may_match_new_events(1, 3, NOTES)
    assert tail.may_match_new_events(0, 3, NOTES)
    assert tail.may_match_new_events(1, 3, EVERYTHING)
    assert not tail.may_match_new_events(3, 3, EVERYTHING)
    assert not tail.may_match_new_events(9, 3, EVERYTHING)


def test_the_head_of_the_file_decides_about_unknown_events() -> None:
    tail = Tail()
    assert tail.may_match_new_events(0, 1, NOTES)
    assert tail.add(4, rows(5, "other.v1")) == []
    assert tail.may_match_new_events(3, 5, NOTES)
    assert not tail.may_match_new_events(4, 5, NOTES)
    assert tail.may_match_new_events(4, 6, NOTES)


def test_events_before_the_first_that_may_match_are_passed_by() -> None:
    tail = Tail()
    tail.add(0, rows(1, "other.v1", "note.v1", "other.v1", "note.v1"))
    assert tail.pass_by(0, 4, NOTES) == 1
    assert tail.pass_by(2, 4, NOTES) == 3
    assert tail.pass_by(2, 3, NOTES) == 3
    assert tail.pass_by(4, 4, NOTES) == 4
    assert tail.pass_by(4, 6, NOTES) == 4, "events that are not known may match"
    assert tail.pass_by(2, 6, Selector(schema_name="third.v1")) == 4


def test_the_number_of_kept_events_is_limited() -> None:
    tail = Tail()
    tail.add(0, rows(1, "note.v1"))
    tail.add(1, rows(2, *["other.v1"] * LENGTH))
    assert tail.may_match_new_events(0, LENGTH + 1, NOTES)
    assert not tail.may_match_new_events(1, LENGTH + 1, NOTES)


async def write(trail: SqliteTrail, schema: str) -> None:
    await trail.records.create(Draft(title=schema, context={}, schema_name=schema), by=ME)


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[SqliteTrail]:
    opened = SqliteTrail(tmp_path / "trail.db", SystemClock())
    yield opened
    await opened.close()


async def test_other_events_of_this_process_do_not_end_a_wait(trail: SqliteTrail) -> None:
    await write(trail, "other.v1")
    waiting = asyncio.ensure_future(trail.log.wait(await trail.log.head(), PATIENCE, selector=NOTES))
    for _ in range(5):
        await write(trail, "other.v1")
    assert not waiting.done()
    await write(trail, "note.v1")
    async with asyncio.timeout(PATIENCE):
        assert await waiting


async def test_a_wait_ends_with_a_write_of_another_process(trail: SqliteTrail, tmp_path: Path) -> None:
    await write(trail, "other.v1")
    other = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        waiting = asyncio.ensure_future(trail.log.wait(await trail.log.head(), PATIENCE, selector=NOTES))
        await write(other, "note.v1")
        async with asyncio.timeout(PATIENCE):
            assert await waiting
        events, _ = await trail.log.read(0, by=ME, selector=NOTES)
        assert [event.schema_name for event in events] == ["note.v1"]
    finally:
        await other.close()


async def test_events_written_beside_a_failing_write_reach_those_who_wait(trail: SqliteTrail) -> None:
    await write(trail, "other.v1")
    waiting = asyncio.ensure_future(trail.log.wait(await trail.log.head(), PATIENCE, selector=NOTES))
    taken = Draft(title="x", context={}, id="0190f3a0-0000-7000-8000-000000000001")
    await trail.records.create(taken, by=ME)
    together = [write(trail, "note.v1"), trail.records.create(taken, by=ME), write(trail, "other.v1")]
    await asyncio.gather(*together, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        assert await waiting


async def test_a_list_that_was_empty_finds_what_is_written_later(trail: SqliteTrail, tmp_path: Path) -> None:
    """Also records of another process, and records that match only after a change."""
    mine, theirs = Selector(all_tags=("a",)), Selector(all_tags=("b",))
    changed = await trail.records.create(Draft(title="x", context={}, schema_name="other.v1"), by=ME)
    for selector in (mine, theirs, NOTES, mine, theirs, NOTES):
        assert not (await trail.records.list(selector, by=ME)).items
    await write(trail, "note.v1")
    assert not (await trail.records.list(mine, by=ME)).items
    assert len((await trail.records.list(NOTES, by=ME)).items) == 1
    await trail.records.update(changed.id, Change(tags=("a",)), expect=1, by=ME)
    assert [each.id for each in (await trail.records.list(mine, by=ME)).items] == [changed.id]
    other = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        await other.records.create(Draft(title="x", context={}, tags=("b",)), by=ME)
    finally:
        await other.close()
    assert len((await trail.records.list(theirs, by=ME)).items) == 1


@pytest.mark.parametrize(("stored", "other"), [(1, True), (True, 1), (0, False), (False, 0)])
async def test_an_empty_list_says_nothing_of_a_value_of_another_type(
    trail: SqliteTrail, stored: object, other: object
) -> None:
    await trail.records.create(Draft(title="x", context={"a": stored}), by=ME)
    for value, found in ((other, 0), (stored, 1), (other, 0)):
        selector = Selector(context_match=(ContextMatch(path="a", value=value),))
        assert len((await trail.records.list(selector, by=ME)).items) == found


def test_an_answer_from_before_the_file_was_replaced_is_not_used() -> None:
    tail = Tail()
    tail.add(0, rows(1, *["other.v1"] * 9))
    empty = EmptyLists(tail)
    empty.note("notes", 9)
    assert empty.knows("notes", NOTES, 9)
    assert not empty.knows("notes", NOTES, 8)
    assert not empty.knows("others", NOTES, 9)


async def test_an_empty_list_of_one_caller_says_nothing_of_another(trail: SqliteTrail) -> None:
    await trail.records.create(
        Draft(title="x", context={}, schema_name="note.v1", scopes=("secret",)),
        by=Principal(owner_id="me", agent_id="test", scopes=frozenset({"secret"})),
    )
    assert not (await trail.records.list(NOTES, by=ME)).items
    may = Principal(owner_id="me", agent_id="test", scopes=frozenset({"secret"}))
    assert len((await trail.records.list(NOTES, by=may)).items) == 1
