"""`Records.list`: pages in order of creation, stable during other writes, and the meaning of selectors."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import Change
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import list_titles, make, make_all, short

HALF = "\ud83d"


async def pages(trail: Trail, by: Principal, limit: int, **options: Any) -> list[list[str]]:
    """The titles of each page."""
    found, cursor = [], None
    while True:
        page = await trail.records.list(by=by, limit=limit, cursor=cursor, **options)
        found.append([item.title for item in page.items])
        if page.cursor is None:
            return found
        cursor = page.cursor


async def test_an_empty_trail_lists_nothing(trail: Trail, me: Principal) -> None:
    page = await trail.records.list(by=me)
    assert (page.items, page.cursor) == ((), None)


async def test_pages_run_from_newest_to_oldest_or_the_other_way(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, *"abcde")
    assert await pages(trail, me, 2) == [["e", "d"], ["c", "b"], ["a"]]
    assert await pages(trail, me, 2, oldest_first=True) == [["a", "b"], ["c", "d"], ["e"]]
    assert await pages(trail, me, 5) == [["e", "d", "c", "b", "a"]]
    assert await pages(trail, me, 1_000) == [["e", "d", "c", "b", "a"]]


@pytest.mark.parametrize("scopes", [[], ["hr"]])
async def test_pages_of_a_tag_have_the_same_order_for_any_number_of_scopes(trail: Trail, scopes: list[str]) -> None:
    by = Principal(owner_id="acme", scopes=frozenset(scopes))
    for title in "abcdefgh":
        kept = scopes if title in "bdf" else []
        tags = ["all", *(["some"] if title in "adefh" else []), *(["session:s"] if title != "a" else [])]
        await make(trail, by, title, tags=tags, schema_name="note.v1" if title in "de" else None, scopes=kept)
    some = Selector(all_tags=("some", "all"), session="s")
    assert await pages(trail, by, 2, selector=some) == [["h", "f"], ["e", "d"]]
    assert await pages(trail, by, 3, selector=some, oldest_first=True) == [["d", "e", "f"], ["h"]]
    others = Selector(session="s", except_schemas=("note.v1",))
    assert await pages(trail, by, 2, selector=others) == [["h", "g"], ["f", "c"], ["b"]]
    notes = Selector(session="s", schema_name="note.v1")
    assert await pages(trail, by, 1, selector=notes, oldest_first=True) == [["d"], ["e"]]


async def test_the_order_is_that_of_creation_with_any_clock_and_updates(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    (first,) = await make_all(trail, me, "a")
    clock.advance(days=-3)
    await make_all(trail, me, "b")
    clock.advance(days=9)
    await make_all(trail, me, "c")
    await trail.records.update(first, Change(title="A"), expect=1, by=me)
    assert await pages(trail, me, 10) == [["c", "b", "A"]]


@pytest.mark.parametrize("oldest_first", [False, True])
async def test_a_cursor_neither_repeats_nor_hides_while_others_create_and_delete(
    trail: Trail, open_again: OpenAgain, me: Principal, oldest_first: bool
) -> None:
    ids = await make_all(trail, me, *(f"kept {number:02}" for number in range(30)), tags=["kept"])
    other, kept = await open_again(), Selector(all_tags=["kept"])
    seen, cursor, gone, fresh = [], None, set(), set()
    while True:
        page = await trail.records.list(kept, by=me, limit=4, cursor=cursor, oldest_first=oldest_first)
        seen += [item.id for item in page.items]
        if page.cursor is None:
            break
        cursor = page.cursor
        # delete the item at the cursor, and one after it
        left = [id for id in (ids if oldest_first else ids[::-1]) if id not in seen and id not in gone]
        gone |= {left[1]} if len(left) > 1 else set()
        for id in (seen[-1], *left[1:2]):
            await other.records.delete(id, by=me)
        await make(other, me, "in between", tags=["other"])
        fresh.add((await make(other, me, "new", tags=["kept"])).id)
    expected = [id for id in (ids if oldest_first else ids[::-1]) if id not in gone]
    assert [id for id in seen if id not in fresh] == expected
    assert len(set(seen)) == len(seen)


async def test_a_listing_during_many_writes_sees_each_breadcrumb_once(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, *(f"old {number}" for number in range(100)))
    done = asyncio.Event()

    async def write() -> None:
        number = 0
        while not done.is_set() and number < 300:
            await make(trail, me, f"new {number}")
            number += 1

    writer = asyncio.ensure_future(write())
    seen = [title for page in await pages(trail, me, 7) for title in page]
    done.set()
    await writer
    assert [title for title in seen if title.startswith("old")] == [f"old {number}" for number in range(99, -1, -1)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("limit", [0, -1, 1_001, 10**30])
async def test_an_absurd_limit_is_refused(trail: Trail, me: Principal, limit: int) -> None:
    with pytest.raises(InvalidInput):
        await trail.records.list(by=me, limit=limit)


@pytest.mark.parametrize(
    "cursor", ["", "x", "AAAA", "🧵", HALF, "_" * 11, "A" * 10_000, "' --", "//////////8="], ids=short
)
async def test_a_cursor_that_no_listing_returned_is_refused(trail: Trail, me: Principal, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        await trail.records.list(by=me, cursor=cursor)


@pytest.mark.req("RCR-23")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "abcd"),
        ({"schema_name": "note.v1"}, "ab"),
        ({"schema_names": ["note.v1", "task.v1"]}, "abc"),
        ({"except_schemas": ["note.v1"]}, "cd"),
        ({"schema_name": "task.v1", "schema_names": ["note.v1"]}, "abc"),
        ({"any_tags": ["red", "blue"]}, "abc"),
        ({"all_tags": ["red", "blue"]}, "a"),
        ({"any_tags": ["red"], "all_tags": ["blue"]}, "a"),
        ({"tag_prefix": "session:"}, "ad"),
        ({"tag_prefix": "session:s"}, "ad"),
        ({"tag_prefix": "sess%"}, ""),
        ({"session": "s1"}, "a"),
        ({"path": "src/*.py"}, "a"),
        ({"path": "src/**/*.py"}, "ab"),
        ({"context_match": [ContextMatch(path="n", value=1)]}, "a"),
        ({"context_match": [ContextMatch(path="n", op="gte", value=2)]}, "bc"),
        ({"context_match": [ContextMatch(path="n", op="exists", value=False)]}, "d"),
        ({"schema_name": "note.v1", "any_tags": ["red"], "context_match": [ContextMatch(path="n", value=1)]}, "a"),
        ({"schema_name": "absent.v1"}, ""),
    ],
)
async def test_a_selector_lists_what_it_means(
    trail: Trail, me: Principal, parts: dict[str, Any], expected: str
) -> None:
    context = {"path": "src/main.py", "n": 1}
    await make(trail, me, "a", schema_name="note.v1", tags=["red", "blue", "session:s1"], context=context)
    await make(trail, me, "b", schema_name="note.v1", tags=["red"], context={"path": "src/a/b.py", "n": 2})
    await make(trail, me, "c", schema_name="task.v1", tags=["blue"], context={"path": 7, "n": 3})
    await make(trail, me, "d", tags=["session:s2"])
    assert "".join(await list_titles(trail, me, **parts)) == expected


async def test_times_select_by_creation_with_open_bounds(trail: Trail, me: Principal, clock: ManualClock) -> None:
    start = clock.now()
    for title in "abc":
        await make(trail, me, title)
        clock.advance(seconds=1)
    second = timedelta(seconds=1)
    assert await list_titles(trail, me, created_after=start) == ["b", "c"]
    assert await list_titles(trail, me, created_before=start + 2 * second) == ["a", "b"]
    assert await list_titles(trail, me, created_after=start, created_before=start + 2 * second) == ["b"]


@pytest.mark.parametrize(
    "selector",
    [
        Selector(tag_prefix=""),
        Selector(any_tags=["t"] * 201),
        Selector(path="x" * 1_001),
        Selector(schema_name="a\x00b"),
        Selector(all_tags=["a\x00b"]),
        Selector(context_match=[ContextMatch(path="")]),
        Selector(context_match=[ContextMatch(path="a b")]),
        Selector(context_match=[ContextMatch(path="a", op="in", value="text")]),
        Selector(context_match=[ContextMatch(path="a", op="gt", value=True)]),
        Selector(context_match=[ContextMatch(path="a", op="exists", value="yes")]),
    ],
)
async def test_a_malformed_selector_is_refused(trail: Trail, me: Principal, selector: Selector) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        await trail.records.list(selector, by=me)


@pytest.mark.parametrize(
    "selector",
    [
        Selector(schema_name=HALF),
        Selector(any_tags=[HALF]),
        Selector(all_tags=[HALF]),
        Selector(tag_prefix=HALF),
        Selector(session=HALF),
        Selector(path=HALF),
        Selector(context_match=[ContextMatch(path="a", value=HALF)]),
    ],
    ids=["schema", "any", "all", "prefix", "session", "path", "context"],
)
async def test_a_selector_that_is_no_unicode_is_refused_or_means_nothing(
    trail: Trail, me: Principal, selector: Selector
) -> None:
    await make(trail, me)
    with contextlib.suppress(InvalidInput):
        assert (await trail.records.list(selector, by=me)).items == ()
