"""`Records`: updates against an expected version, the versions that are kept, and deletes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, AlreadyExists, Conflict, InvalidInput, NotFound, TooLarge
from clew.trail.model.breadcrumb import MAX_BATCH, NEVER, Breadcrumb, Change, Update
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import (
    FULL_ID,
    HALF,
    UNKNOWN,
    WIDE,
    full_draft,
    list_all,
    list_titles,
    make,
    read_log,
    succeeds,
)

# -- updating ---------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-04")
async def test_an_update_writes_the_next_version_and_keeps_other_fields(trail: Trail, clock: ManualClock) -> None:
    before = await trail.records.create(full_draft(clock), by=WIDE)
    clock.advance(minutes=1)
    editor = msgspec.structs.replace(WIDE, agent_id="bob")
    after = await trail.records.update(FULL_ID, Change(tags=["new"]), expect=1, by=editor)
    assert after == await trail.records.get(FULL_ID, by=WIDE)
    assert (after.version, after.tags) == (2, ("new",))
    assert (after.created_at, after.created_by) == (before.created_at, "ann")
    assert (after.updated_at, after.updated_by) == (clock.now(), "bob")
    for name in ("title", "context", "schema_name", "scopes", "llm_hints", "ttl", "entities"):
        assert getattr(after, name) == getattr(before, name)
    assert (await trail.records.get(FULL_ID, by=WIDE, vector=True)).embedding == pytest.approx((0.6, 0.8))


async def test_an_update_can_replace_and_clear_every_field(trail: Trail, clock: ManualClock) -> None:
    await trail.records.create(full_draft(clock), by=WIDE)
    change = Change(
        title="New",
        context={"b": 1},
        tags=[],
        schema_name=None,
        scopes=[],
        llm_hints=None,
        ttl=NEVER,
        entities=None,
        embedding=None,
    )
    await trail.records.update(FULL_ID, change, expect=1, by=WIDE)
    after = await trail.records.get(FULL_ID, by=WIDE, vector=True)
    assert (after.title, after.context, after.tags, after.schema_name) == ("New", {"b": 1}, (), None)
    assert (after.scopes, after.llm_hints, after.ttl, after.entities) == ((), None, NEVER, None)
    assert after.embedding is None
    assert await list_titles(trail, WIDE, all_tags=["guide"]) == []
    assert await list_titles(trail, WIDE, schema_name="guide.v1") == []


@pytest.mark.req("RCR-04")
async def test_one_of_two_writers_on_version_5_wins_and_the_other_succeeds_after_a_merge(
    trail: Trail, me: Principal
) -> None:
    made = await make(trail, me, context={})
    for version in range(1, 5):
        await trail.records.update(made.id, Change(context={"v": version}), expect=version, by=me)
    base = await trail.records.get(made.id, by=me)
    first = await trail.records.update(made.id, Change(context={**base.context, "a": 1}), expect=5, by=me)
    with pytest.raises(Conflict) as caught:
        await trail.records.update(made.id, Change(context={**base.context, "b": 2}), expect=5, by=me)
    assert (first.version, caught.value.id, caught.value.expected, caught.value.actual) == (6, made.id, 5, 6)
    fresh = await trail.records.get(made.id, by=me)
    merged = await trail.records.update(made.id, Change(context={**fresh.context, "b": 2}), expect=6, by=me)
    assert (merged.version, merged.context) == (7, {"v": 4, "a": 1, "b": 2})


@pytest.mark.req("RCR-04")
async def test_exactly_one_of_many_concurrent_writers_on_one_version_wins(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    made, other = await make(trail, me), await open_again()
    attempts = [
        each.records.update(made.id, Change(title=f"By {number}"), expect=1, by=me)
        for number, each in enumerate([trail, other] * 15)
    ]
    won = await asyncio.gather(*(succeeds(attempt, Conflict) for attempt in attempts))
    assert sum(won) == 1
    stored = await other.records.get(made.id, by=me)
    assert (stored.version, stored.title) == (2, f"By {won.index(True)}")
    assert len(await read_log(trail, me)) == 2


async def test_a_wrong_version_is_refused_whether_too_low_or_too_high(trail: Trail, me: Principal) -> None:
    made = await make(trail, me)
    for expect in (-1, 0, 2, 10**18):
        with pytest.raises(Conflict):
            await trail.records.update(made.id, Change(title="x"), expect=expect, by=me)
        with pytest.raises(Conflict):
            await trail.records.delete(made.id, by=me, expect=expect)
    assert (await trail.records.get(made.id, by=me)) == made


@pytest.mark.parametrize("change", [{"title": ""}, {"tags": [" x"]}, {"context": {"a": HALF}}, {"embedding": [0.0]}])
async def test_an_invalid_update_writes_nothing(trail: Trail, me: Principal, change: dict[str, Any]) -> None:
    made = await make(trail, me)
    with pytest.raises(InvalidInput):
        await trail.records.update(made.id, Change(**change), expect=1, by=me)
    assert await trail.records.get(made.id, by=me) == made
    assert await trail.log.head() == 1


# -- updating many ----------------------------------------------------------------------------------------


def retitled(made: Breadcrumb, title: str, **fields: Any) -> Update:
    return Update(id=made.id, change=Change(title=title, **fields), expect=made.version)


@pytest.mark.req("RCR-04")
async def test_many_updates_are_written_in_order_with_one_event_each(meaning: Trail, me: Principal) -> None:
    made = [await make(meaning, me, f"old {number}", tags=["kept"]) for number in range(30)]
    head = await meaning.log.head()
    after = await meaning.records.update_many([retitled(each, f"new {each.id}") for each in reversed(made)], by=me)
    assert [each.title for each in after] == [f"new {each.id}" for each in reversed(made)]
    assert {(each.version, each.tags) for each in after} == {(2, ("kept",))}
    assert [await meaning.records.get(each.id, by=me) for each in after] == after
    told = [(event.breadcrumb_id, event.type, event.version) for event in await read_log(meaning, me, head)]
    assert told == [(each.id, "breadcrumb.updated", 2) for each in after]
    assert await meaning.records.update_many([], by=me) == []
    assert await meaning.log.head() == head + 30


async def test_many_updates_equal_single_ones(meaning: Trail, me: Principal) -> None:
    pairs = [(await make(meaning, me, "same"), await make(meaning, me, "same")) for _ in range(8)]
    changes = [Change(title=f"the thread of {number}", context={"n": number}, tags=["t"]) for number in range(8)]
    for (one, _), change in zip(pairs, changes, strict=True):
        await meaning.records.update(one.id, change, expect=1, by=me)
    many = [Update(id=two.id, change=change, expect=1) for (_, two), change in zip(pairs, changes, strict=True)]
    await meaning.records.update_many(many, by=me)
    for one, two in pairs:
        left, right = [await meaning.records.get(each.id, by=me, vector=True) for each in (one, two)]
        assert left.embedding == right.embedding
        assert [getattr(left, name) for name in ("title", "context", "tags", "version", "entity_keywords")] == [
            getattr(right, name) for name in ("title", "context", "tags", "version", "entity_keywords")
        ]


@pytest.mark.req("RCR-04")
@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (Update(id="", change=Change(title="x"), expect=7), Conflict, "is at version 1, not 7"),
        (Update(id=UNKNOWN, change=Change(title="x"), expect=1), NotFound, UNKNOWN),
        (Update(id="", change=Change(title=""), expect=1), InvalidInput, r"\[2\]\.title"),
    ],
    ids=["another version", "nobody's", "no title"],
)
async def test_one_invalid_update_refuses_the_whole_batch(
    trail: Trail, me: Principal, wrong: Update, error: type[Exception], said: str
) -> None:
    made = [await make(trail, me, title) for title in ("a", "b", "c")]
    bad = wrong if wrong.id else msgspec.structs.replace(wrong, id=made[2].id)
    head = await trail.log.head()
    with pytest.raises(error, match=said):
        await trail.records.update_many([retitled(made[0], "A"), retitled(made[1], "B"), bad], by=me)
    assert await list_titles(trail, me) == ["a", "b", "c"]
    assert await trail.log.head() == head
    assert [len(await trail.records.history(each.id, by=me)) for each in made] == [1, 1, 1]


async def test_a_breadcrumb_comes_once_among_many_updates_and_there_is_a_limit(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "a")
    with pytest.raises(InvalidInput, match=r"\[1\]\.id: is in the batch twice"):
        await trail.records.update_many([retitled(made, "b"), retitled(made, "c")], by=me)
    with pytest.raises(TooLarge):
        await trail.records.update_many([retitled(made, "b")] * (MAX_BATCH + 1), by=me)
    reader = msgspec.structs.replace(me, roles=frozenset({"subscriber"}))
    with pytest.raises(AccessDenied):
        await trail.records.update_many([retitled(made, "b")], by=reader)
    assert await list_titles(trail, me) == ["a"]


@pytest.mark.req("RCR-04")
async def test_one_of_several_concurrent_batches_is_written_completely(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    made = [await make(trail, me, str(number)) for number in range(40)]
    trails = [trail, await open_again()]
    attempts = [
        trails[n % 2].records.update_many([retitled(each, f"of {n}") for each in made], by=me) for n in range(6)
    ]
    assert sum(await asyncio.gather(*(succeeds(each, Conflict) for each in attempts))) == 1
    assert len(set(await list_titles(trail, me))) == 1


async def test_many_updates_move_breadcrumbs_between_audiences(trail: Trail, me: Principal) -> None:
    made = [await make(trail, WIDE, str(number)) for number in range(5)]
    await trail.records.update_many([retitled(each, "hidden", scopes=["ops"]) for each in made], by=WIDE)
    assert await list_titles(trail, me) == []
    assert await read_log(trail, me) == []
    assert await list_titles(trail, WIDE) == ["hidden"] * 5


# -- versions ---------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-05")
async def test_version_2_of_4_is_readable_as_it_was(trail: Trail, clock: ManualClock, me: Principal) -> None:
    made = await make(trail, me, "One", schema_name="a.v1", tags=["one"])
    written = [made]
    for number, title in enumerate(("Two", "Three", "Four"), 1):
        clock.advance(seconds=1)
        hints = {"literal": {"n": number}}
        change = Change(
            title=title, context={"n": number}, tags=[title.lower()], llm_hints=hints, entities={"n": number}
        )
        editor = msgspec.structs.replace(me, agent_id=f"agent{number}")
        written.append(await trail.records.update(made.id, change, expect=number, by=editor))
    for version, wanted in enumerate(written, 1):
        assert await trail.records.get(made.id, by=me, version=version) == wanted
    history = await trail.records.history(made.id, by=me)
    assert [(line.version, line.updated_at, line.updated_by, line.checksum) for line in history] == [
        (each.version, each.updated_at, each.updated_by, each.checksum) for each in written
    ]
    assert len({each.checksum for each in written}) == 4


@pytest.mark.parametrize("version", [0, -1, 3, 10**18])
async def test_a_version_that_never_was_is_not_found(trail: Trail, me: Principal, version: int) -> None:
    made = await make(trail, me)
    await trail.records.update(made.id, Change(title="Two"), expect=1, by=me)
    with pytest.raises(NotFound):
        await trail.records.get(made.id, by=me, version=version)


@pytest.mark.req("RCR-02")
@pytest.mark.req("O1")
@pytest.mark.parametrize("schema", ["extension.settings.v1", "agent.def.v1"])
async def test_changing_a_setting_or_an_agent_leaves_a_version_trail_and_an_event(
    trail: Trail, me: Principal, schema: str
) -> None:
    made = await make(trail, me, "Settings", schema_name=schema, context={"agent_id": "a", "theme": "dark"})
    await trail.records.update(made.id, Change(context={"agent_id": "a", "theme": "light"}), expect=1, by=me)
    assert [line.version for line in await trail.records.history(made.id, by=me)] == [1, 2]
    assert (await trail.records.get(made.id, by=me, version=1)).context["theme"] == "dark"
    event = (await read_log(trail, me))[-1]
    assert (event.type, event.schema_name, event.version) == ("breadcrumb.updated", schema, 2)
    assert event.breadcrumb is not None
    assert event.breadcrumb.context["theme"] == "light"


# -- deleting ---------------------------------------------------------------------------------------------


async def test_a_deleted_breadcrumb_is_gone_with_its_versions(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, tags=["t"], embedding=[1.0])
    await trail.records.update(made.id, Change(title="Two"), expect=1, by=me)
    await trail.records.delete(made.id, by=me, expect=2)
    for call in (
        trail.records.get(made.id, by=me),
        trail.records.get(made.id, by=me, version=1),
        trail.records.history(made.id, by=me),
        trail.records.delete(made.id, by=me),
    ):
        with pytest.raises(NotFound):
            await call
    assert await list_titles(trail, me, all_tags=["t"]) == []
    last = (await read_log(trail, me))[-1]
    assert (last.type, last.breadcrumb_id, last.breadcrumb) == ("breadcrumb.deleted", made.id, None)


async def test_an_id_may_be_used_again_after_its_breadcrumb_is_gone(trail: Trail, me: Principal) -> None:
    await make(trail, me, "Old", id=FULL_ID)
    await trail.records.update(FULL_ID, Change(title="Older"), expect=1, by=me)
    await trail.records.delete(FULL_ID, by=me)
    again = await make(trail, me, "New", id=FULL_ID)
    assert again.version == 1
    assert [line.version for line in await trail.records.history(FULL_ID, by=me)] == [1]


async def test_exactly_one_of_many_concurrent_deletes_succeeds(trail: Trail, me: Principal) -> None:
    made = await make(trail, me)
    done = await asyncio.gather(*(succeeds(trail.records.delete(made.id, by=me), NotFound) for _ in range(10)))
    assert sum(done) == 1
    assert [event.type for event in await read_log(trail, me)] == ["breadcrumb.created", "breadcrumb.deleted"]


async def test_writes_of_many_tasks_at_once_all_arrive(trail: Trail, me: Principal) -> None:
    made = await asyncio.gather(*(make(trail, me, f"Note {number}") for number in range(100)))
    assert {each.id for each in made} == {each.id for each in await list_all(trail, me)}
    assert [event.seq for event in await read_log(trail, me)] == list(range(1, 101))


async def test_a_failed_write_among_others_fails_alone(trail: Trail, me: Principal) -> None:
    await make(trail, me, "Taken", id=FULL_ID)
    attempts = [
        make(trail, me, f"Note {number}", **({"id": FULL_ID, "scopes": [f"s{number}"]} if number % 3 == 0 else {}))
        for number in range(30)
    ]
    done = await asyncio.gather(*(succeeds(attempt, AlreadyExists) for attempt in attempts))
    assert done == [number % 3 != 0 for number in range(30)]
    assert len(await list_all(trail, me)) == 21
