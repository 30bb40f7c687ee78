"""Exposure sets on the trail: bound to owner and agent, durable and merged; handles are not stored."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import Conflict, HandleRefused
from clew.skills import exposure_store
from clew.skills.exposure import LIFE, MAX_ITEMS, Exposed, Exposure, Exposures, adding, without
from clew.skills.exposure_store import SCHEMA, SCOPE, TrailExposures, _id_of
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Breadcrumb, Draft, Ttl
from clew.trail.model.event import Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail


def shown(clock: ManualClock, *items: str) -> list[Exposed]:
    return [Exposed(item=item, via="ask", why="ask: orders", since=clock.now(), tokens=3) for item in items]


@pytest.fixture
def exposures(trail: Trail, clock: ManualClock) -> Exposures:
    return TrailExposures(trail, clock)


@pytest.mark.req("BEY-01")
async def test_a_set_is_found_again_by_its_handle_also_by_another_reader(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal
) -> None:
    new = await exposures.open(None, by=me)
    await exposures.reveal(new, shown(clock, "a", "b"), by=me)
    await exposures.reveal(await exposures.open(new.handle, by=me), shown(clock, "b", "c"), by=me)
    found = await TrailExposures(trail, clock).open(new.handle, by=me)
    assert list(found.items) == ["a", "b", "c"]
    assert found.items["a"] == shown(clock, "a")[0], "the cause, the reason, the time and the cost"


@pytest.mark.req("BEY-01")
async def test_every_handle_is_another_and_none_is_stored_in_clear(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    handles = set()
    for _ in range(50):
        made = await exposures.open(None, by=me)
        await exposures.reveal(made, shown(clock, "a"), by=me)
        handles.add(made.handle)
    assert len(handles) == 50
    await trail.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files)
    assert b"ask: orders" in stored
    assert not any(handle.encode() in stored or handle.removeprefix("clew-").encode() in stored for handle in handles)


@pytest.mark.req("BEY-01")
async def test_a_handle_works_for_nobody_else(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal
) -> None:
    made = await exposures.open(None, by=me)
    await exposures.reveal(made, shown(clock, "a"), by=me)
    for other in (
        Principal(owner_id="other", agent_id="ann"),
        Principal(owner_id="acme", agent_id="bob"),
        Principal(owner_id="acme", agent_id=""),
        Principal(owner_id="acme", agent_id="ann\nbob"),
    ):
        for reader in (exposures, TrailExposures(trail, clock)):
            with pytest.raises(HandleRefused, match="not yours"):
                await reader.open(made.handle, by=other)
    for invented in ("", "clew-", "clew-aaaaaaaaaaaaaaaa", made.handle + "x", made.handle.upper(), "session:s1"):
        with pytest.raises(HandleRefused):
            await exposures.open(invented, by=me)


@pytest.mark.req("BEY-01")
async def test_a_session_is_a_handle_by_itself_and_each_of_its_agents_has_a_set(
    exposures: Exposures, trail: Trail, clock: ManualClock
) -> None:
    ann, bob = (Principal(owner_id="acme", agent_id=name, session="s1") for name in ("ann", "bob"))
    await exposures.reveal(await exposures.open(None, by=ann), shown(clock, "a"), by=ann)
    await exposures.reveal(await exposures.open(None, by=bob), shown(clock, "b"), by=bob)
    again = TrailExposures(trail, clock)
    assert list((await again.open(None, by=ann)).items) == ["a"]
    assert list((await again.open(None, by=bob)).items) == ["b"]


@pytest.mark.parametrize("session", ["with space", "söme/thing:odd", "x" * 150])
async def test_a_session_of_any_name_can_be_shown_things(
    exposures: Exposures, clock: ManualClock, session: str
) -> None:
    by = Principal(owner_id="acme", agent_id="ann", session=session)
    await exposures.reveal(await exposures.open(None, by=by), shown(clock, "a"), by=by)
    assert list((await exposures.open(None, by=by)).items) == ["a"]


@pytest.mark.req("BEY-01")
async def test_a_set_ends_when_it_was_not_added_to_for_long(
    exposures: Exposures, clock: ManualClock, me: Principal
) -> None:
    made = await exposures.open(None, by=me)
    held = await exposures.reveal(made, shown(clock, "a"), by=me)
    clock.advance(seconds=LIFE.total_seconds() - 1)
    await exposures.reveal(await exposures.open(made.handle, by=me), shown(clock, "b"), by=me)
    clock.advance(seconds=2)
    assert list((await exposures.open(made.handle, by=me)).items) == ["a", "b"]
    clock.advance(seconds=LIFE.total_seconds())
    with pytest.raises(HandleRefused):
        await exposures.open(made.handle, by=me)
    with pytest.raises(HandleRefused):
        await exposures.reveal(held, shown(clock, "c"), by=me)


async def test_a_session_whose_set_has_ended_begins_anew(exposures: Exposures, clock: ManualClock) -> None:
    by = Principal(owner_id="acme", agent_id="ann", session="s1")
    await exposures.reveal(await exposures.open(None, by=by), shown(clock, "a"), by=by)
    clock.advance(seconds=LIFE.total_seconds() + 1)
    await exposures.reveal(await exposures.open(None, by=by), shown(clock, "b"), by=by)
    assert list((await exposures.open(None, by=by)).items) == ["b"]


@pytest.mark.req("BEY-01")
async def test_additions_at_the_same_time_lose_nothing(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal
) -> None:
    made = await exposures.open(None, by=me)
    many = [f"item-{at}" for at in range(200)]
    await asyncio.gather(*(exposures.reveal(made, shown(clock, item), by=me) for item in many))
    assert set((await TrailExposures(trail, clock).open(made.handle, by=me)).items) == set(many)


@pytest.mark.req("BEY-01")
async def test_additions_from_several_openings_of_the_trail_are_merged(
    tmp_path: Path, clock: ManualClock, me: Principal
) -> None:
    trails = [await open_trail(f"sqlite://{tmp_path}/trail.db", clock) for _ in range(3)]
    try:
        readers = [TrailExposures(each, clock) for each in trails]
        made = await readers[0].open(None, by=me)
        await readers[0].reveal(made, shown(clock, "first"), by=me)
        opened = [await reader.open(made.handle, by=me) for reader in readers]
        await asyncio.gather(
            *(
                reader.reveal(exposure, shown(clock, f"{at}-{number}"), by=me)
                for at, (reader, exposure) in enumerate(zip(readers, opened, strict=True))
                for number in range(20)
            )
        )
        found = await readers[0].reload(made.handle, by=me)
        assert set(found.items) == {"first", *(f"{at}-{number}" for at in range(3) for number in range(20))}
    finally:
        for each in trails:
            await each.close()


async def test_the_oldest_leave_a_set_that_is_full(exposures: Exposures, clock: ManualClock, me: Principal) -> None:
    made = await exposures.open(None, by=me)
    items = [f"item-{at}" for at in range(MAX_ITEMS + 10)]
    held = await exposures.reveal(made, shown(clock, *items), by=me)
    assert list(held.items) == items[10:]


@pytest.mark.req("BEY-02")
async def test_no_search_or_list_of_a_caller_meets_a_set(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await exposures.reveal(await exposures.open(None, by=me), shown(clock, "orders"), by=me)
    assert (await trail.index.search(SearchRequest(text="what an agent was shown: orders"), by=me)).hits == ()
    assert (await trail.records.list(Selector(schema_name="exposure.v1"), by=me)).items == ()


async def test_nothing_is_written_when_nothing_is_new(
    exposures: Exposures, trail: Trail, clock: ManualClock, me: Principal
) -> None:
    held = await exposures.reveal(await exposures.open(None, by=me), shown(clock, "a"), by=me)
    head = await trail.log.head()
    await exposures.reveal(held, shown(clock, "a"), by=me)
    assert await trail.log.head() == head


async def test_a_caller_that_may_only_read_is_shown_things_as_well(exposures: Exposures, clock: ManualClock) -> None:
    reader = Principal(owner_id="acme", agent_id="ann", roles=frozenset({"subscriber"}))
    held = await exposures.reveal(await exposures.open(None, by=reader), shown(clock, "a"), by=reader)
    assert list((await exposures.reload(held.handle, by=reader)).items) == ["a"]


@pytest.mark.req("BEY-01")
@pytest.mark.parametrize("forged", [{"items": []}, {"a": 1}, {"items": [{"item": 5}]}])
async def test_a_record_that_somebody_put_in_the_place_of_a_set_is_refused(
    trail: Trail, clock: ManualClock, forged: dict[str, object]
) -> None:
    by = Principal(owner_id="acme", agent_id="ann")
    await trail.records.create(Draft(id=_id_of(by, "mine"), title="x", schema_name="note.v1", context=forged), by=by)
    with pytest.raises(HandleRefused):
        await TrailExposures(trail, clock).open("mine", by=by)


@pytest.mark.req("BEY-01")
@pytest.mark.parametrize("handle", ["session:other", "\ud800", "a\nb", "x" * 10_000])
async def test_a_handle_that_is_none_or_another_session_is_refused(
    trail: Trail, clock: ManualClock, handle: str
) -> None:
    by = Principal(owner_id="acme", agent_id="ann", session="mine")
    with pytest.raises(HandleRefused):
        await TrailExposures(trail, clock).open(handle, by=by)


@pytest.mark.req("BEY-01")
@pytest.mark.parametrize("forged", [{"a": 1}, {"items": [{"item": 5}]}, {"items": [], "ended": [{}]}])
async def test_a_set_that_cannot_be_read_is_refused(
    trail: Trail, clock: ManualClock, forged: dict[str, object]
) -> None:
    by = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({SCOPE}))
    draft = Draft(id=_id_of(by, "mine"), title="x", schema_name=SCHEMA, scopes=(SCOPE,), context=forged)
    await trail.records.create(draft, by=by)
    with pytest.raises(HandleRefused):
        await TrailExposures(trail, clock).open("mine", by=by)


async def test_a_set_that_was_written_before_items_could_end_is_read(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    old = {"item": "x://tools/a", "via": "ask", "why": "ask: a", "since": "2026-01-01T00:00:00Z", "tokens": 3}
    writer = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({SCOPE}))
    ttl = Ttl(kind="datetime", expires_at=clock.now() + LIFE)
    context = {"agent_id": "ann", "items": [old]}
    draft = Draft(id=_id_of(me, "mine"), title="x", schema_name=SCHEMA, scopes=(SCOPE,), context=context, ttl=ttl)
    await trail.records.create(draft, by=writer)
    sets = TrailExposures(trail, clock)
    found = await sets.open("mine", by=me)
    assert (found.items["x://tools/a"].by, found.items["x://tools/a"].until, found.ended) == ("", None, ())
    after = await sets.change(found, without("x://tools/a"), by=me, reason="unloaded")
    assert [each.item for each in (await TrailExposures(trail, clock).open("mine", by=me)).ended] == ["x://tools/a"]
    assert dict(after.items) == {}


class Beaten(TrailExposures):
    """A store in which another writer is faster at every write."""

    other: TrailExposures
    beaten = 0
    patience = 10**9

    async def _store(self, exposure: Exposure, ttl: Ttl, by: Principal) -> Breadcrumb:
        if self.beaten < self.patience:
            self.beaten += 1
            held = await self.other.open(exposure.handle, by=by)
            await self.other.reveal(held, shown(ManualClock(), f"other-{self.beaten}"), by=by)
        return await super()._store(exposure, ttl, by)


async def test_a_change_that_met_others_is_applied_to_what_came_of_them(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    beaten = Beaten(trail, clock)
    beaten.other, beaten.patience = TrailExposures(trail, clock), 3
    made = await beaten.other.reveal(await beaten.other.open(None, by=me), shown(clock, "a"), by=me)
    after = await beaten.change(made, adding(shown(clock, "mine")), by=me)
    assert list(after.items) == ["a", "other-1", "other-2", "other-3", "mine"]
    assert await beaten.other.open(made.handle, by=me) == after


async def test_a_change_that_never_gets_its_turn_gives_up_and_has_changed_nothing(
    trail: Trail, clock: ManualClock, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposure_store, "_TRIES", 4)
    beaten = Beaten(trail, clock)
    beaten.other = TrailExposures(trail, clock)
    made = await beaten.other.reveal(await beaten.other.open(None, by=me), shown(clock, "a"), by=me)
    with pytest.raises(Conflict, match="is at version 6, not 5"):
        await beaten.change(made, adding(shown(clock, "mine")), by=me)
    assert beaten.beaten == 4
    assert "mine" not in (await beaten.other.open(made.handle, by=me)).items


async def test_a_set_that_is_known_and_unchanged_is_not_read_again(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    sets = TrailExposures(trail, clock)
    held = await sets.reveal(await sets.open(None, by=me), shown(clock, "a"), by=me)
    assert await sets.open(held.handle, by=me) is held, "the very one that was written"
    await trail.records.create(Draft(title="x", context={}), by=me)
    again = await sets.open(held.handle, by=me)
    assert again is not held, "something was written meanwhile"
    assert again == held
    assert await sets.open(held.handle, by=me) is again


@pytest.mark.req("RCR-12")
async def test_a_session_that_comes_back_after_its_set_expired_removes_no_idle_agent(
    trail: Trail, clock: ManualClock
) -> None:
    by = Principal(owner_id="acme", agent_id="ann", session="long")
    await trail.deliveries.register(Consumer(name="yearly", agent_id="auditor"), by=by)
    sets = TrailExposures(trail, clock)
    await sets.reveal(await sets.open(None, by=by), shown(clock, "a"), by=by)
    clock.advance(days=8)
    again = await sets.reveal(await sets.open(None, by=by), shown(clock, "b"), by=by)
    assert list(again.items) == ["b"]
    assert [each.consumer.name for each in await trail.deliveries.consumers(by=by)] == ["yearly"]
