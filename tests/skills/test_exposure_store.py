"""The contract of every store of exposure sets, on the trail and in memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import HandleRefused
from clew.skills.exposure import LIFE, MAX_ITEMS, Exposed, Exposure, Exposures, Items, adding, remove_all, without

SESSION = Principal(owner_id="acme", agent_id="ann", session="s1")


def shown(clock: ManualClock, *items: str, **more: object) -> list[Exposed]:
    given: dict[str, object] = {"via": "load", "why": "asked for", "by": "ann", "tokens": 3, **more}
    return [Exposed(item=item, since=clock.now(), **given) for item in items]  # type: ignore[arg-type]


async def begun(sets: Exposures, clock: ManualClock, *items: str, by: Principal = SESSION) -> Exposure:
    return await sets.reveal(await sets.open(None, by=by), shown(clock, *items), by=by)


@pytest.mark.req("O5")
async def test_a_session_without_items_does_not_exist(sets: Exposures) -> None:
    found = await sets.open(None, by=SESSION)
    assert (found.handle, found.version, dict(found.items), found.ends_at) == ("session:s1", 0, {}, None)
    assert await sets.reload("session:s1", by=SESSION) == found
    assert await sets.open("session:s1", by=SESSION) == found


@pytest.mark.req("O4")
async def test_added_items_have_their_origin(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:a", "toolset:b", "docs://resources/c")
    assert held.version == 1
    assert held.ends_at == clock.now() + LIFE
    found = await sets.open(None, by=SESSION)
    assert list(found.items) == ["skill:a", "toolset:b", "docs://resources/c"]
    assert found.find("skill:a") == shown(clock, "skill:a")[0]
    assert found.find("skill:x") is None
    assert found.ended == ()


async def test_existing_items_stay_unchanged(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "a", "b")
    clock.advance(hours=1)
    again = await sets.reveal(held, shown(clock, "b", "c"), by=SESSION)
    assert list(again.items) == ["a", "b", "c"]
    assert again.items["b"].since == held.items["b"].since
    assert again.items["c"].since == clock.now()
    assert again.version == 2
    same = await sets.reveal(again, shown(clock, "a"), by=SESSION)
    assert same == again, "nothing new is nothing written"


async def test_a_new_handle_is_kept_even_when_nothing_was_shown(
    sets: Exposures, clock: ManualClock, me: Principal
) -> None:
    new = await sets.open(None, by=me)
    with pytest.raises(HandleRefused):
        await sets.open(new.handle, by=me)
    await sets.reveal(new, [], by=me)
    assert (await sets.open(new.handle, by=me)).version == 1
    other = await sets.open(None, by=me)
    assert other.handle != new.handle
    assert len(other.handle) > len("clew-") + 12


async def test_a_handle_works_for_nobody_else(sets: Exposures, clock: ManualClock, me: Principal) -> None:
    made = await sets.reveal(await sets.open(None, by=me), shown(clock, "a"), by=me)
    for other in (Principal(owner_id="other", agent_id="ann"), Principal(owner_id="acme", agent_id="bob")):
        with pytest.raises(HandleRefused, match="not yours"):
            await sets.open(made.handle, by=other)
        with pytest.raises(HandleRefused):
            await sets.change(made, remove_all, by=other)
    for wrong in ("", "clew-", "session:s1", "a\nb", "x" * 301):
        with pytest.raises(HandleRefused):
            await sets.open(wrong, by=me)
    assert list((await sets.open(made.handle, by=me)).items) == ["a"]


@pytest.mark.req("CAR-07")
async def test_sessions_and_agents_have_sets_of_their_own(sets: Exposures, clock: ManualClock) -> None:
    others = [
        Principal(owner_id="acme", agent_id="ann", session="s2"),
        Principal(owner_id="acme", agent_id="bob", session="s1"),
        Principal(owner_id="other", agent_id="ann", session="s1"),
    ]
    await begun(sets, clock, "skill:a")
    for at, other in enumerate(others):
        await begun(sets, clock, f"skill:{at}", by=other)
    assert [list((await sets.open(None, by=each)).items) for each in (SESSION, *others)] == [
        ["skill:a"],
        ["skill:0"],
        ["skill:1"],
        ["skill:2"],
    ]
    with pytest.raises(HandleRefused):
        await sets.open("session:s2", by=SESSION)


@pytest.mark.req("CAR-09")
async def test_removed_items_are_recorded_with_time_cause_and_reason(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:a", "skill:b", "x://tools/c")
    start = clock.now()
    clock.advance(minutes=5)
    after = await sets.change(held, without("skill:a", "skill:z"), by=SESSION, ended_by="bob", reason="unloaded")
    assert list(after.items) == ["skill:b", "x://tools/c"]
    (ended,) = after.ended
    assert (ended.item, ended.via, ended.why, ended.by, ended.tokens) == ("skill:a", "load", "asked for", "ann", 3)
    assert (ended.since, ended.until) == (start, start + timedelta(minutes=5))
    assert (ended.ended_by, ended.reason) == ("bob", "unloaded")
    assert (await sets.reload(held.handle, by=SESSION)) == after


@pytest.mark.req("CAR-05")
async def test_an_emptied_set_keeps_its_history_and_can_be_filled_again(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:a", "skill:b")
    empty = await sets.change(held, remove_all, by=SESSION, ended_by="ann", reason="reset")
    assert dict(empty.items) == {}
    assert [(each.item, each.reason) for each in empty.ended] == [("skill:a", "reset"), ("skill:b", "reset")]
    again = await sets.reveal(empty, shown(clock, "skill:a"), by=SESSION)
    assert list(again.items) == ["skill:a"]
    assert len(again.ended) == 2


@pytest.mark.req("O4")
async def test_an_item_expires(sets: Exposures, clock: ManualClock) -> None:
    end = clock.now() + timedelta(hours=1)
    held = await sets.reveal(
        await sets.open(None, by=SESSION), [*shown(clock, "skill:a", until=end), *shown(clock, "skill:b")], by=SESSION
    )
    assert held.items["skill:a"].until == end
    clock.advance(seconds=3599)
    assert list((await sets.open(None, by=SESSION)).items) == ["skill:a", "skill:b"]
    clock.advance(seconds=1)
    for found in (await sets.open(None, by=SESSION), await sets.reload("session:s1", by=SESSION)):
        assert list(found.items) == ["skill:b"]
        assert [(each.item, each.until, each.ended_by) for each in found.ended] == [("skill:a", end, "clock")]
    clock.advance(hours=1)
    after = await sets.reveal(held, shown(clock, "skill:c"), by=SESSION)
    assert list(after.items) == ["skill:b", "skill:c"]
    assert [(each.item, each.until) for each in after.ended] == [("skill:a", end)]
    assert await sets.reload("session:s1", by=SESSION) == after


@pytest.mark.req("CAR-12")
async def test_an_edit_that_fails_changes_nothing(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:a")

    def broken(items: Items) -> Items:
        dict(items).clear()
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        await sets.change(held, broken, by=SESSION)
    assert await sets.open(None, by=SESSION) == held
    assert await sets.reload("session:s1", by=SESSION) == held


async def test_an_edit_applies_to_the_stored_set(sets: Exposures, clock: ManualClock) -> None:
    old = await begun(sets, clock, "a")
    await sets.change(old, without("a"), by=SESSION)
    after = await sets.change(old, adding(shown(clock, "b")), by=SESSION)
    assert list(after.items) == ["b"]
    assert after.version == 3


@pytest.mark.req("CAR-16")
async def test_a_hundred_concurrent_changes_lose_nothing(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:start")
    names = [f"skill:{at % 30}" for at in range(100)]
    await asyncio.gather(*(sets.reveal(held, shown(clock, name), by=SESSION) for name in names))
    found = await sets.reload("session:s1", by=SESSION)
    assert set(found.items) == {"skill:start", *names}
    assert found.version == 31, "what was there already was not written again"
    await asyncio.gather(*(sets.change(held, without(name), by=SESSION, reason="unloaded") for name in names))
    found = await sets.reload("session:s1", by=SESSION)
    assert list(found.items) == ["skill:start"]
    assert len(found.ended) == 30


@pytest.mark.req("CAR-16")
async def test_the_first_changes_of_a_session_may_be_concurrent(sets: Exposures, clock: ManualClock) -> None:
    empty = await sets.open(None, by=SESSION)
    await asyncio.gather(*(sets.reveal(empty, shown(clock, f"skill:{at}"), by=SESSION) for at in range(20)))
    assert len((await sets.open(None, by=SESSION)).items) == 20


async def test_an_unchanged_set_expires(sets: Exposures, clock: ManualClock, me: Principal) -> None:
    held = await sets.reveal(await sets.open(None, by=me), shown(clock, "a"), by=me)
    session = await begun(sets, clock, "a")
    clock.advance(seconds=LIFE.total_seconds() - 1)
    assert list((await sets.open(held.handle, by=me)).items) == ["a"]
    clock.advance(seconds=1)
    with pytest.raises(HandleRefused):
        await sets.open(held.handle, by=me)
    with pytest.raises(HandleRefused):
        await sets.reveal(held, shown(clock, "b"), by=me)
    assert (await sets.open(None, by=SESSION)).version == 0
    again = await sets.reveal(session, shown(clock, "c"), by=SESSION)
    assert (list(again.items), again.ended) == (["c"], ()), "a session whose set has ended begins anew"


async def test_a_full_set_drops_its_oldest_routes_and_keeps_loads(sets: Exposures, clock: ManualClock) -> None:
    held = await begun(sets, clock, "skill:a", *(f"x://tools/{at}" for at in range(MAX_ITEMS - 1)))
    after = await sets.reveal(held, shown(clock, "skill:b", "x://tools/new"), by=SESSION)
    assert len(after.items) == MAX_ITEMS
    assert list(after.items)[:2] == ["skill:a", "x://tools/2"]
    assert list(after.items)[-2:] == ["skill:b", "x://tools/new"]
    assert [(each.item, each.reason) for each in after.ended] == [
        ("x://tools/0", "the set was full"),
        ("x://tools/1", "the set was full"),
    ]
