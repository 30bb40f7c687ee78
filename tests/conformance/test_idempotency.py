"""Idempotency keys: a create that is repeated returns the first result instead of writing again."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, InvalidInput
from clew.trail.model.breadcrumb import Change
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft, lasting, list_all, list_titles, make, short

pytestmark = pytest.mark.req("RCR-06")


async def test_the_same_key_twice_writes_one_breadcrumb_and_returns_it_twice(trail: Trail, me: Principal) -> None:
    first = await make(trail, me, "First", idempotency_key="k")
    second = await make(trail, me, "Second", idempotency_key="k")
    assert second == first
    assert await list_titles(trail, me) == ["First"]
    assert await trail.log.head() == 1


async def test_the_same_key_at_once_from_two_open_trails_writes_one_breadcrumb(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    made = await asyncio.gather(
        *(make(each, me, f"Try {number}", idempotency_key="k") for number, each in enumerate([trail, other] * 15))
    )
    assert len({each.id for each in made}) == 1
    assert len(await list_all(trail, me)) == 1


async def test_a_key_is_remembered_after_reopening(trail: Trail, open_again: OpenAgain, me: Principal) -> None:
    first = await make(trail, me, idempotency_key="k")
    await trail.close()
    assert (await make(await open_again(), me, "Again", idempotency_key="k")).id == first.id


async def test_keys_of_different_owners_do_not_meet(trail: Trail, me: Principal, stranger: Principal) -> None:
    mine = await make(trail, me, "Mine", idempotency_key="k")
    theirs = await make(trail, stranger, "Theirs", idempotency_key="k")
    assert mine.id != theirs.id
    assert theirs.title == "Theirs"


async def test_keys_work_within_a_batch_and_between_batches(trail: Trail, me: Principal) -> None:
    batch = [draft("A", idempotency_key="a"), draft("A again", idempotency_key="a"), draft("B"), draft("B")]
    first = await trail.records.create_many(batch, by=me)
    assert [each.title for each in first] == ["A", "A", "B", "B"]
    second = await trail.records.create_many([draft("C"), draft("A", idempotency_key="a")], by=me)
    assert second[1].id == first[0].id
    assert await list_titles(trail, me) == ["A", "B", "B", "C"]


async def test_a_repeat_returns_what_the_first_call_wrote_and_nothing_of_later_changes(
    trail: Trail, me: Principal
) -> None:
    """A principal that may only write does not see changes by others."""
    first = await make(trail, me, idempotency_key="k")
    await trail.records.update(first.id, Change(title="Changed", tags=["new"]), expect=1, by=me)
    emitter = Principal(owner_id=me.owner_id, agent_id="emitter", roles=frozenset({"emitter"}))
    for by in (me, emitter):
        assert await make(trail, by, "Again", idempotency_key="k") == first


async def test_a_key_of_a_breadcrumb_that_the_caller_may_not_see_is_taken_but_shows_nothing(trail: Trail) -> None:
    wide = Principal(owner_id="acme", scopes=frozenset({"hr"}))
    narrow = Principal(owner_id="acme")
    await make(trail, wide, "Salaries", scopes=["hr"], idempotency_key="k")
    with pytest.raises(AlreadyExists) as caught:
        await make(trail, narrow, "Mine", idempotency_key="k")
    assert "Salaries" not in str(caught.value)
    assert await list_titles(trail, narrow) == []
    with pytest.raises(AlreadyExists):
        await trail.records.create_many([draft("A"), draft("B", idempotency_key="k")], by=narrow)
    assert await list_titles(trail, wide) == ["Salaries"]


async def test_a_key_of_a_deleted_breadcrumb_stays_taken(trail: Trail, me: Principal) -> None:
    """A late retry must not restore a record that was deleted on purpose."""
    first = await make(trail, me, idempotency_key="k")
    await trail.records.delete(first.id, by=me)
    with pytest.raises(AlreadyExists):
        await make(trail, me, idempotency_key="k")
    assert await list_all(trail, me) == []


async def test_a_key_of_an_expired_breadcrumb_gives_the_same_answer_before_and_after_hygiene(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await make(trail, me, ttl=lasting(clock, minutes=1), idempotency_key="k")
    clock.advance(minutes=2)

    async def answer() -> str:
        try:
            return (await make(trail, me, idempotency_key="k")).id
        except AlreadyExists:
            return "taken"

    before = await answer()
    await trail.upkeep.purge()
    assert await answer() == before


async def test_a_key_of_a_refused_create_is_not_used_up(trail: Trail, me: Principal) -> None:
    with pytest.raises(InvalidInput):
        await make(trail, me, "", idempotency_key="k")
    taken = await make(trail, me)
    with pytest.raises(AlreadyExists):
        await make(trail, me, id=taken.id, idempotency_key="k")
    assert (await make(trail, me, "At last", idempotency_key="k")).title == "At last"


async def test_a_repeat_of_a_create_with_its_own_id_returns_the_first(trail: Trail, me: Principal) -> None:
    id = "0198c0de-0000-7000-8000-00000000c1e3"
    first = await make(trail, me, id=id, idempotency_key="k")
    assert await make(trail, me, id=id, idempotency_key="k") == first


async def test_a_key_finds_its_own_breadcrumb_although_another_owner_has_the_same_id(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    id = "0198c0de-0000-7000-8000-00000000c1e3"
    await make(trail, stranger, "Theirs", id=id)
    mine = await make(trail, me, "Mine", id=id, idempotency_key="k")
    assert await make(trail, me, "Mine", id=id, idempotency_key="k") == mine


@pytest.mark.parametrize("key", ["k" * 300, "ключ 🔑", "' OR 1=1 --"], ids=short)
async def test_keys_of_any_printable_text_work(trail: Trail, me: Principal, key: str) -> None:
    first = await make(trail, me, idempotency_key=key)
    assert (await make(trail, me, idempotency_key=key)).id == first.id
    assert (await make(trail, me, idempotency_key=key[:-1])).id != first.id
