"""Searches see writes through another open trail: changed scopes, tags, expiry and vectors, after any earlier searches
of any caller."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Change, Ttl
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import LetterEmbedder, draft, found_titles, lasting, make, make_all

pytestmark = [pytest.mark.req("O2"), pytest.mark.req("RCR-15")]

SECRET = ("secret",)


@pytest.fixture
def insider(me: Principal) -> Principal:
    return msgspec.structs.replace(me, scopes=me.scopes | {"secret"})


@pytest.mark.req("RCR-19")
async def test_a_record_that_changes_its_scopes_leaves_and_comes_in_every_open_trail(
    trail: Trail, open_again: OpenAgain, me: Principal, insider: Principal
) -> None:
    other = await open_again()
    made = await make(trail, insider, "a thread")
    version = 1
    for scopes, title in ((SECRET, "a thread"), ((), "that thread"), (SECRET, "that thread")):
        change = Change(scopes=scopes, title=title)
        version = (await trail.records.update(made.id, change, expect=version, by=insider)).version
        for each in (other, trail):
            assert await found_titles(each, me, "thread") == ([] if scopes else [title])
            assert await found_titles(each, insider, "thread") == [title]
    await other.records.delete(made.id, by=insider)
    for each in (trail, other):
        assert await found_titles(each, me, "thread") == await found_titles(each, insider, "thread") == []


SELECTORS = [
    Selector(all_tags=["red"]),
    Selector(any_tags=["red", "green"]),
    Selector(tag_prefix="re"),
    Selector(schema_name="note.v1"),
    Selector(except_schemas=["task.v1"]),
    Selector(context_match=[ContextMatch(path="n", value=1)]),
    Selector(path="src/*.py"),
]


async def test_each_filter_follows_what_another_open_trail_changes(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    fitting = {"tags": ["red"], "schema_name": "note.v1", "context": {"n": 1, "path": "src/a.py"}}
    strange = {"tags": ["blue"], "schema_name": "task.v1", "context": {"n": 2, "path": "docs/a.md"}}
    other = await open_again()
    ids = await make_all(trail, me, "thread one", "thread two", **fitting)
    for version, (fields, expected) in enumerate(((strange, 1), (fitting, 2), (strange, 1)), 1):
        for selector in SELECTORS:
            assert len(await found_titles(trail, me, "thread", selector=selector)) == 3 - expected
        await other.records.update(ids[0], Change(**fields), expect=version, by=me)
        for selector in SELECTORS:
            assert len(await found_titles(trail, me, "thread", selector=selector)) == expected, selector


async def test_records_used_up_by_other_readers_are_not_found(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    made = await make(trail, me, "thread", ttl=Ttl(kind="usage", max_reads=2))
    await make(trail, me, "a thread that stays")
    assert len(await found_titles(trail, me, "thread")) == 2
    await asyncio.gather(*(other.records.read(made.id, by=me) for _ in range(2)))
    for _ in range(2):
        assert await found_titles(trail, me, "thread") == ["a thread that stays"]


async def test_a_new_end_of_life_that_another_open_trail_sets_counts(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    other = await open_again()
    made = await make(trail, me, "thread", ttl=lasting(clock, minutes=1))
    assert await found_titles(trail, me, "thread") == ["thread"]
    await other.records.update(made.id, Change(ttl=lasting(clock, minutes=5)), expect=1, by=me)
    clock.advance(minutes=2)
    assert await found_titles(trail, me, "thread") == ["thread"]
    clock.advance(minutes=5)
    assert await found_titles(trail, me, "thread") == []
    await other.upkeep.purge()
    assert await found_titles(trail, me, "thread") == []


async def test_one_who_may_not_see_a_record_does_not_hide_it_from_those_who_may(
    trail: Trail, me: Principal, insider: Principal, stranger: Principal
) -> None:
    await make_all(trail, insider, *(f"thread {number}" for number in range(5)), scopes=SECRET, tags=["t"])
    await make(trail, me, "thread for all", tags=["t"])
    for selector in (Selector(), Selector(all_tags=["t"])):
        for _ in range(2):
            assert await found_titles(trail, stranger, "thread", selector=selector) == []
            assert await found_titles(trail, me, "thread", selector=selector) == ["thread for all"]
            assert len(await found_titles(trail, insider, "thread", selector=selector)) == 6


async def test_new_vectors_of_all_records_are_used_by_every_open_trail(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await make_all(trail, me, "aaa", "bbb", "ccc", embedding=[1.0, 0.0])
    assert len(await found_titles(trail, me, vector=[1.0, 0.0], ranking="vector")) == 3
    other = await open_again(LetterEmbedder())
    async for _ in other.upkeep.reembed():
        pass
    for each in (trail, other):
        wanted = [1.0 if at == 1 else 0.0 for at in range(26)]
        assert (await found_titles(each, me, vector=wanted, ranking="vector"))[0] == "bbb"
    await make(other, me, "bbbb")
    assert (await found_titles(other, me, "bbbb", ranking="vector"))[:2] == ["bbb", "bbbb"]


@pytest.mark.req("RCR-19")
@pytest.mark.parametrize("seed", range(3))
async def test_answers_do_not_depend_on_earlier_searches(
    trail: Trail, open_again: OpenAgain, me: Principal, insider: Principal, seed: int
) -> None:
    """Two open trails and two callers write and search at random, beside a model in plain Python."""
    chance, trails = random.Random(seed), [trail, await open_again()]
    versions: dict[str, int] = {}
    known: dict[str, tuple[str, bool]] = {}
    for step in range(100):
        scopes, writer = chance.choice((SECRET, ())), chance.choice(trails)
        match chance.choice(("create", "create", "move", "delete", "search")):
            case "create":
                made = await make(writer, insider, f"thread {step}", scopes=scopes)
                versions[made.id], known[made.id] = 1, (made.title, bool(scopes))
            case "move" if versions:
                id = chance.choice(list(versions))
                change = Change(scopes=scopes, title=f"thread {step}")
                versions[id] = (await writer.records.update(id, change, expect=versions[id], by=insider)).version
                known[id] = f"thread {step}", bool(scopes)
            case "delete" if versions:
                id = chance.choice(list(versions))
                await writer.records.delete(id, by=insider)
                del versions[id], known[id]
            case _:
                wanted = {
                    me: sorted(title for title, is_secret in known.values() if not is_secret),
                    insider: sorted(title for title, _ in known.values()),
                }
                by = chance.choice((me, insider))
                assert sorted(await found_titles(chance.choice(trails), by, "thread", limit=1_000)) == wanted[by]


async def test_writes_of_many_records_elsewhere_are_found_by_words_and_by_vector(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    """More events than one read of the log returns, with changes and deletes among them."""
    other = await open_again()
    await make(trail, me, "first", embedding=[1.0, 0.0])
    assert await found_titles(trail, me, "first") == ["first"]
    words = ["x" + str(number).translate(str.maketrans("0123456789", "abcdefghij")) + "z" for number in range(3_000)]
    drafts = [
        draft(f"{word} thread", embedding=[1.0, 5.0 if at == 2_999 else at / 3_000]) for at, word in enumerate(words)
    ]
    made = await other.records.create_many(drafts, by=me)
    await other.records.delete(made[7].id, by=me)
    await other.records.update(made[8].id, Change(title="changed"), expect=1, by=me)
    assert await found_titles(trail, me, words[2_999]) == [f"{words[2_999]} thread"]
    assert await found_titles(trail, me, words[7]) == await found_titles(trail, me, words[8]) == []
    assert (await found_titles(trail, me, vector=[0.0, 1.0], ranking="vector"))[0] == f"{words[2_999]} thread"
    assert len(await found_titles(trail, me, "thread", limit=1_000)) == 1_000
