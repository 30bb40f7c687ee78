"""The changes that a search reads before it answers: those that its caller may find. Others are read for later callers,
or in bulk."""

from __future__ import annotations

import gc
import random
import weakref
from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.clock import SystemClock
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.query import SearchRequest
from clew.trail.search.postings import TermPostings
from clew.trail.search.search_index import PENDING, Index
from clew.trail.sqlite.trail import SqliteTrail
from clew.trail.store import Trail

SECRET = ("secret",)


@pytest.fixture
def insider(me: Principal) -> Principal:
    return msgspec.structs.replace(me, scopes=me.scopes | {"secret"})


def opened(folder: Path) -> SqliteTrail:
    return SqliteTrail(folder / "trail.db", SystemClock())


def index_of(trail: SqliteTrail) -> Index:
    return trail.index._index


async def found(trail: Trail, by: Principal, text: str = "thread") -> list[str]:
    hits = (await trail.index.search(SearchRequest(text=text, limit=100), by=by)).hits
    return sorted(hit.breadcrumb.title for hit in hits)


async def test_records_hidden_from_a_caller_are_indexed_for_those_who_may_find_them(
    tmp_path: Path, me: Principal, insider: Principal
) -> None:
    trail = opened(tmp_path)
    await trail.records.create(Draft(title="open thread", context={}), by=me)
    assert await found(trail, me) == ["open thread"]
    before = index_of(trail).changes
    await trail.records.create(Draft(title="hidden thread", context={}, scopes=SECRET), by=insider)
    assert await found(trail, me) == ["open thread"]
    assert index_of(trail).changes == before
    assert await found(trail, insider) == ["hidden thread", "open thread"]
    await trail.close()


async def test_search_follows_records_that_change_their_visibility(
    tmp_path: Path, me: Principal, insider: Principal
) -> None:
    trail = opened(tmp_path)
    made = await trail.records.create(Draft(title="a thread", context={}), by=me)
    assert await found(trail, me) == ["a thread"]
    moved = await trail.records.update(made.id, Change(scopes=SECRET), expect=1, by=insider)
    assert await found(trail, me) == []
    assert await found(trail, insider) == ["a thread"]
    moved = await trail.records.update(
        made.id, Change(scopes=(), title="that thread"), expect=moved.version, by=insider
    )
    assert await found(trail, me) == ["that thread"]
    await trail.records.update(made.id, Change(scopes=SECRET), expect=moved.version, by=insider)
    assert await found(trail, me) == []
    await trail.records.delete(made.id, by=insider)
    assert await found(trail, me) == await found(trail, insider) == []
    await trail.close()


async def test_pending_records_are_indexed_in_bulk_and_survive_a_restart(
    tmp_path: Path, me: Principal, insider: Principal
) -> None:
    trail = opened(tmp_path)
    await found(trail, me)
    drafts = [Draft(title=f"note {number}", context={}, scopes=SECRET) for number in range(PENDING - 1)]
    await trail.records.create_many(drafts, by=insider)
    await found(trail, me)
    assert index_of(trail).columns.size == 0
    await trail.records.create(Draft(title="one thread more", context={}, scopes=SECRET), by=insider)
    assert await found(trail, me) == []
    assert index_of(trail).columns.size == PENDING
    await trail.close()
    again = opened(tmp_path)
    assert await found(again, insider) == ["one thread more"]
    assert len(await found(again, insider, "note")) == 100
    await again.close()


@pytest.mark.parametrize("seed", range(3))
async def test_results_do_not_depend_on_earlier_searches(
    tmp_path: Path, me: Principal, insider: Principal, seed: int
) -> None:
    chance, trail = random.Random(seed), opened(tmp_path)
    versions: dict[str, int] = {}
    for step in range(120):
        scopes = chance.choice((SECRET, ()))
        match chance.choice(("create", "create", "move", "delete", "search")):
            case "create":
                draft = Draft(title=f"thread {step}", context={}, scopes=scopes)
                versions[(await trail.records.create(draft, by=insider)).id] = 1
            case "move" if versions:
                id = chance.choice(list(versions))
                change = Change(scopes=scopes, title=f"thread {step}")
                versions[id] = (await trail.records.update(id, change, expect=versions[id], by=insider)).version
            case "delete" if versions:
                id = chance.choice(list(versions))
                await trail.records.delete(id, by=insider)
                del versions[id]
            case _:
                await found(trail, chance.choice((me, insider)))
    seen = [await found(trail, me), await found(trail, insider)]
    await trail.close()
    again = opened(tmp_path)
    assert seen == [await found(again, me), await found(again, insider)]
    assert len(seen[1]) == min(len(versions), 100)
    await again.close()


async def test_a_closed_trail_leaves_memory_without_the_garbage_collector(tmp_path: Path, me: Principal) -> None:
    """Its columns take megabytes, and tantivy has a thread of its own for as long as its index is there."""
    gc.collect()
    gc.disable()
    try:
        trail = opened(tmp_path)
        drafts = [Draft(title=f"thread {each}", context={}) for each in range(PENDING)]
        await trail.records.create_many(drafts, by=me)
        await found(trail, me)
        postings = [
            each for each in gc.get_objects() if isinstance(each, TermPostings) and tmp_path in each._folder.parents
        ]
        traces = [weakref.ref(each) for each in (trail, *postings)]
        trail._close()  # in this thread: the one that `close` takes remembers what it did last
        del trail, postings
        assert [trace() for trace in traces] == [None, None]
    finally:
        gc.enable()
