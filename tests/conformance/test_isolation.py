"""Records of other owners or scopes stay hidden, tested on the storage layer itself without an interface above it.

Random worlds of two owners are written, then every call of a random principal is compared with a model in plain
Python. A record's scopes are those of its newest version. A principal without them sees none of its versions or events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.access import ROLES, Principal
from clew.errors import AccessDenied, AlreadyExists, LeaseLost, NotFound
from clew.trail.model.breadcrumb import Change
from clew.trail.model.edge import Edge
from clew.trail.model.event import Claim, Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.conformance.records import claim_one, draft, list_all, make, read_log

pytestmark = [pytest.mark.req("RCR-19"), pytest.mark.req("O12")]

SCOPES = ("s", "t")
OWNERS = ("a", "b")
_world_numbers = count()


class Spec(NamedTuple):
    """A planned record: its owner, its first scopes, those after an update (if any), and whether it is deleted.

    Two records in a row that have different owners get the same id.
    """

    owner: str
    first: frozenset[str]
    then: frozenset[str] | None
    deleted: bool


class Viewer(NamedTuple):
    owner: str
    scopes: frozenset[str]
    roles: frozenset[str]


scope_sets = st.frozensets(st.sampled_from(SCOPES))
specs = st.builds(
    Spec, st.sampled_from(OWNERS), scope_sets, st.none() | scope_sets, st.integers(0, 5).map(lambda n: n == 0)
)
role_sets = st.just(ROLES) | st.frozensets(st.sampled_from(sorted(ROLES)))
viewers = st.builds(Viewer, st.sampled_from(OWNERS), scope_sets, role_sets)
pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=14)

in_random_worlds = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class World:
    """The written records as plain data. Owners get fresh names in each world, so that one trail serves them all."""

    def __init__(self, trail: Trail, records: list[Spec]) -> None:
        self.trail = trail
        self.specs = records
        self.name = f"w{next(_world_numbers)}"
        self.ids: list[str] = []
        self.edges: set[tuple[int, int]] = set()

    def principal(self, viewer: Viewer) -> Principal:
        return Principal(owner_id=f"{self.name}-{viewer.owner}", scopes=viewer.scopes, roles=viewer.roles)

    def owner(self, name: str) -> Principal:
        """A principal with all roles and scopes of an owner."""
        return self.principal(Viewer(name, frozenset(SCOPES), ROLES))

    async def build(self, arrows: list[tuple[int, int]]) -> World:
        for at, spec in enumerate(self.specs):
            by = self.owner(spec.owner)
            shared = self.ids[-1] if at % 2 and self.specs[at - 1].owner != spec.owner else None
            title = f"{self.name} thread {at}"
            made = await make(self.trail, by, title, scopes=sorted(spec.first), tags=["x"], id=shared)
            self.ids.append(made.id)
            if spec.then is not None:
                change = Change(title=f"{self.name} thread {at} anew", scopes=sorted(spec.then))
                await self.trail.records.update(made.id, change, expect=1, by=by)
        for one, two in arrows:
            await self._link(one % len(self.specs), two % len(self.specs))
        for at, spec in enumerate(self.specs):
            if spec.deleted:
                await self.trail.records.delete(self.ids[at], by=self.owner(spec.owner))
        return self

    async def _link(self, one: int, two: int) -> None:
        if one == two or self.specs[one].owner != self.specs[two].owner or (one, two) in self.edges:
            return
        edge = Edge(source=self.ids[one], target=self.ids[two], type="calls")
        await self.trail.edges.add([edge], by=self.owner(self.specs[one].owner))
        self.edges.add((one, two))

    # -- the model ----------------------------------------------------------------------------------------

    def may_know(self, viewer: Viewer, at: int) -> bool:
        """Whether the viewer holds the owner and the scopes of a record's newest version."""
        spec = self.specs[at]
        return spec.owner == viewer.owner and (spec.first if spec.then is None else spec.then) <= viewer.scopes

    def visible(self, viewer: Viewer) -> set[int]:
        return {at for at, spec in enumerate(self.specs) if not spec.deleted and self.may_know(viewer, at)}

    def is_seen(self, viewer: Viewer, id: str) -> bool:
        """Whether the viewer sees a record with this id, even if other owners use the id too."""
        return any(self.ids[at] == id for at in self.visible(viewer))

    def events(self, viewer: Viewer) -> Counter[str]:
        """How many events of each record the viewer may see."""
        known = [at for at in range(len(self.specs)) if self.may_know(viewer, at)]
        return Counter({self.ids[at]: self.changes(at) for at in known})

    def changes(self, at: int) -> int:
        spec = self.specs[at]
        return 1 + (spec.then is not None) + spec.deleted

    def seen_edges(self, viewer: Viewer) -> set[tuple[int, int]]:
        visible = self.visible(viewer)
        return {(one, two) for one, two in self.edges if one in visible and two in visible}

    def reached(self, viewer: Viewer, start: int) -> set[int]:
        """The targets of outgoing edges between records that the viewer sees."""
        edges, found, stack = self.seen_edges(viewer), set(), [start]
        while stack:
            here = stack.pop()
            for one, two in edges:
                if one == here and two not in found and two != start:
                    found.add(two)
                    stack.append(two)
        return found


async def answer(call: Awaitable[Any]) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return await call
    except (NotFound, AccessDenied) as error:
        return type(error)


def allowed(viewer: Viewer, verb: str) -> bool:
    return Principal(owner_id="x", roles=viewer.roles).may(verb)


# -- reads ------------------------------------------------------------------------------------------------


@in_random_worlds
@given(records=st.lists(specs, min_size=1, max_size=8), watchers=st.lists(viewers, min_size=1, max_size=4))
async def test_no_record_version_listing_hit_event_or_count_reaches_the_wrong_one(
    trail: Trail, records: list[Spec], watchers: list[Viewer]
) -> None:
    world = await World(trail, records).build([])
    for viewer in watchers:
        by = world.principal(viewer)
        await check_records(world, viewer, by)
        await check_listing_and_search(world, viewer, by)
        await check_log_and_stats(world, viewer, by)


async def check_records(world: World, viewer: Viewer, by: Principal) -> None:
    records = world.trail.records
    for id in world.ids:
        is_seen = world.is_seen(viewer, id)
        for call in (
            records.get(id, by=by),
            records.get(id, by=by, version=1),
            records.read(id, by=by),
            records.history(id, by=by),
        ):
            found = await answer(call)
            if not allowed(viewer, "read"):
                assert found is AccessDenied
            elif not is_seen:
                assert found is NotFound
            else:
                assert found not in (AccessDenied, NotFound)
                assert getattr(found, "owner_id", by.owner_id) == by.owner_id
        for call in (records.update(id, Change(tags=["y"]), expect=99, by=by), records.delete(id, by=by, expect=99)):
            if not is_seen:
                assert await answer(call) in (NotFound, AccessDenied)
            else:
                call.close()


async def check_listing_and_search(world: World, viewer: Viewer, by: Principal) -> None:
    trail, wanted = world.trail, {world.ids[at] for at in world.visible(viewer)}
    tagged = Selector(all_tags=["x"])
    if not allowed(viewer, "read"):
        assert await answer(trail.records.list(by=by)) is AccessDenied
        assert await answer(trail.index.search(SearchRequest(text="thread"), by=by)) is AccessDenied
        return
    assert {item.id for item in await list_all(trail, by)} == wanted
    assert {item.id for item in await list_all(trail, by, tagged)} == wanted
    for request in (
        SearchRequest(text="thread", limit=100),
        SearchRequest(text="thread", limit=100, selector=tagged),
        SearchRequest(text=f"{world.name} thread 0", limit=100, ranking="rcrt"),
    ):
        hits = (await trail.index.search(request, by=by)).hits
        assert {hit.breadcrumb.id for hit in hits} == wanted


async def check_log_and_stats(world: World, viewer: Viewer, by: Principal) -> None:
    trail = world.trail
    if not allowed(viewer, "subscribe"):
        assert await answer(trail.log.read(0, by=by)) is AccessDenied
        return
    events = await read_log(trail, by)
    assert Counter(event.breadcrumb_id for event in events) == world.events(viewer)
    assert {event.owner_id for event in events} <= {by.owner_id}
    stats = await trail.upkeep.stats(by=by)
    assert stats.breadcrumbs == sum(stats.schemas.values()) == len(world.visible(viewer))
    assert (stats.events, stats.edges) == (world.events(viewer).total(), 0)


# -- edges ------------------------------------------------------------------------------------------------


@in_random_worlds
@given(
    records=st.lists(specs, min_size=2, max_size=8), arrows=pairs, watchers=st.lists(viewers, min_size=1, max_size=3)
)
async def test_no_edge_walk_or_path_leads_through_what_is_hidden(
    trail: Trail, records: list[Spec], arrows: list[tuple[int, int]], watchers: list[Viewer]
) -> None:
    world = await World(trail, records).build(arrows)
    for viewer in watchers:
        by, visible = world.principal(viewer), world.visible(viewer)
        for at, id in enumerate(world.ids):
            if not allowed(viewer, "read") or not world.is_seen(viewer, id):
                await check_hidden_edges(world, viewer, by, id)
            if not allowed(viewer, "read") or at not in visible:
                continue
            around = {(world.ids[one], world.ids[two]) for one, two in world.seen_edges(viewer) if at in (one, two)}
            assert {(edge.source, edge.target) for edge in await trail.edges.of(id, by=by)} == around
            wanted = {world.ids[other] for other in world.reached(viewer, at)}
            walked = await trail.edges.walk([id], by=by, depth=20)
            assert {each.id for each in walked} == wanted
            paths = await trail.edges.paths([id], by=by, direction="outgoing", max_cost=20.0)
            assert {each.id for each in paths} == wanted | {id}
            shown = {world.ids[other] for other in visible}
            assert all(shown.issuperset(each.path) for each in (*walked, *paths))
        if allowed(viewer, "read"):
            assert (await trail.upkeep.stats(by=by)).edges == len(world.seen_edges(viewer))


async def check_hidden_edges(world: World, viewer: Viewer, by: Principal, id: str) -> None:
    edges = world.trail.edges
    refused = NotFound if allowed(viewer, "read") else AccessDenied
    for call in (edges.of(id, by=by), edges.walk([id], by=by), edges.paths([id], by=by)):
        assert await answer(call) is refused
    seen = [world.ids[at] for at in world.visible(viewer)]
    for other in seen[:1] if id not in seen else []:
        for call in (
            edges.add([Edge(source=id, target=other, type="calls")], by=by, replace=True),
            edges.remove(id, other, "calls", by=by),
        ):
            assert await answer(call) in (NotFound, AccessDenied)


# -- deliveries -------------------------------------------------------------------------------------------


async def drain(trail: Trail, by: Principal, consumer: str, *, finish: bool = True) -> AsyncIterator[Claim]:
    """All claims that the caller can get from a consumer, each finished or failed."""
    while held := await trail.deliveries.claim(consumer, by=by, worker="w", limit=100):
        for each in held:
            yield each
            if finish:
                await trail.deliveries.finish(each, [], by=by)
            else:
                await trail.deliveries.fail(each, "given up", by=by, retry=False)


@in_random_worlds
@given(records=st.lists(specs, min_size=1, max_size=7), watchers=st.lists(viewers, min_size=1, max_size=3))
async def test_no_claim_or_dead_letter_reaches_the_wrong_one(
    trail: Trail, records: list[Spec], watchers: list[Viewer]
) -> None:
    world = await World(trail, records).build([])
    for owner in OWNERS:
        await trail.deliveries.register(Consumer(name="wide", start="beginning"), by=world.owner(owner))
        async for _ in drain(trail, world.owner(owner), "wide", finish=False):
            pass
    for viewer in watchers:
        by = world.principal(viewer)
        if not allowed(viewer, "subscribe"):
            assert await answer(trail.deliveries.register(Consumer(name="own"), by=by)) is AccessDenied
            assert await answer(trail.deliveries.claim("wide", by=by, worker="w")) is AccessDenied
            continue
        await trail.deliveries.register(Consumer(name="own", start="beginning"), by=by)
        claimed = [each.event async for each in drain(trail, by, "own")]
        assert Counter(event.breadcrumb_id for event in claimed) == world.events(viewer)
        await trail.deliveries.unregister("own", by=by)
        if allowed(viewer, "administer"):
            letters = await trail.dead_letters.list(by=by, limit=1_000)
            assert Counter(letter.event.breadcrumb_id for letter in letters) == world.events(viewer)


# -- the same, one case at a time -------------------------------------------------------------------------

WIDE = Principal(owner_id="acme", scopes=frozenset({"hr"}))
NARROW = Principal(owner_id="acme")


async def test_an_id_of_another_owner_is_not_found_by_any_call(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    made = await make(trail, me, "Mine")
    for call in (
        trail.records.get(made.id, by=stranger),
        trail.records.get(made.id, by=stranger, version=1),
        trail.records.read(made.id, by=stranger),
        trail.records.history(made.id, by=stranger),
        trail.records.update(made.id, Change(title="Theirs"), expect=1, by=stranger),
        trail.records.update(made.id, Change(title="Theirs"), expect=7, by=stranger),
        trail.records.delete(made.id, by=stranger),
        trail.records.delete(made.id, by=stranger, expect=7),
        trail.edges.of(made.id, by=stranger),
        trail.edges.walk([made.id], by=stranger),
        trail.edges.paths([made.id], by=stranger),
    ):
        with pytest.raises(NotFound):
            await call
    assert await trail.records.get(made.id, by=me) == made


async def test_narrowed_scopes_take_old_versions_and_old_events_away(trail: Trail) -> None:
    made = await make(trail, NARROW, "Open thread", tags=["t"])
    assert len(await read_log(trail, NARROW)) == 1
    await trail.records.update(made.id, Change(title="Closed thread", scopes=["hr"]), expect=1, by=WIDE)
    assert await read_log(trail, NARROW) == []
    assert await list_all(trail, NARROW, Selector(all_tags=["t"])) == []
    assert (await trail.index.search(SearchRequest(text="thread"), by=NARROW)).hits == ()
    for version in (None, 1, 2):
        with pytest.raises(NotFound):
            await trail.records.get(made.id, by=NARROW, version=version)
    assert len(await read_log(trail, WIDE)) == 2
    assert (await trail.records.get(made.id, by=WIDE, version=1)).title == "Open thread"
    await trail.records.delete(made.id, by=WIDE)
    assert await read_log(trail, NARROW) == []


async def test_widened_scopes_give_old_events_and_hits(trail: Trail) -> None:
    made = await make(trail, WIDE, "Closed thread", scopes=["hr"])
    assert await read_log(trail, NARROW) == []
    await trail.records.update(made.id, Change(scopes=[]), expect=1, by=WIDE)
    assert len(await read_log(trail, NARROW)) == 2
    assert len((await trail.index.search(SearchRequest(text="thread"), by=NARROW)).hits) == 1


async def test_all_scopes_are_needed_not_any(trail: Trail) -> None:
    both = Principal(owner_id="acme", scopes=frozenset({"hr", "legal", "more"}))
    made = await make(trail, both, scopes=["hr", "legal"])
    assert await answer(trail.records.get(made.id, by=WIDE)) is NotFound
    assert (await trail.records.get(made.id, by=both)).scopes == ("hr", "legal")


async def test_a_writer_without_the_scope_cannot_read_its_record(trail: Trail) -> None:
    made = await make(trail, NARROW, "For HR only", scopes=["hr"])
    assert await answer(trail.records.get(made.id, by=NARROW)) is NotFound
    assert (await trail.records.get(made.id, by=WIDE)).title == "For HR only"


async def test_a_claim_gives_nothing_that_the_claiming_one_may_not_see(trail: Trail) -> None:
    await trail.deliveries.register(Consumer(name="wide"), by=WIDE)
    await make(trail, WIDE, "Salaries", scopes=["hr"])
    assert await answer(trail.deliveries.claim("wide", by=NARROW, worker="w")) in ([], NotFound, AccessDenied)


async def test_an_event_that_waits_while_its_scopes_are_narrowed_is_not_delivered(trail: Trail) -> None:
    await trail.deliveries.register(Consumer(name="narrow"), by=NARROW)
    made = await make(trail, NARROW, "Soon secret")
    await trail.deliveries.release(await claim_one(trail, NARROW, "narrow"), by=NARROW)
    await trail.records.update(made.id, Change(title="Secret", scopes=["hr"]), expect=1, by=WIDE)
    assert await trail.deliveries.claim("narrow", by=NARROW, worker="w", limit=10) == []


async def test_an_event_that_waits_while_its_scopes_are_narrowed_is_not_counted(trail: Trail) -> None:
    await trail.deliveries.register(Consumer(name="narrow"), by=NARROW)
    made = await make(trail, NARROW, "Soon secret")
    await trail.deliveries.release(await claim_one(trail, NARROW, "narrow"), by=NARROW)
    assert [state.pending for state in await trail.deliveries.consumers(by=NARROW)] == [1]
    await trail.records.update(made.id, Change(title="Secret", scopes=["hr"]), expect=1, by=WIDE)
    assert [state.pending for state in await trail.deliveries.consumers(by=NARROW)] == [0]


async def test_a_consumer_cannot_be_taken_over_by_one_who_lacks_its_scopes(trail: Trail) -> None:
    """The caller can neither see its pending events nor make it miss any."""
    await trail.deliveries.register(Consumer(name="c"), by=WIDE)
    await make(trail, WIDE, "Salaries", scopes=["hr"])
    await trail.deliveries.release(await claim_one(trail, WIDE, "c"), by=WIDE)
    with pytest.raises(AlreadyExists):
        await trail.deliveries.register(Consumer(name="c"), by=NARROW)
    assert await trail.deliveries.consumers(by=NARROW) == []
    for call in (
        trail.deliveries.claim("c", by=NARROW, worker="w"),
        trail.deliveries.unregister("c", by=NARROW),
        trail.deliveries.due_in("c", by=NARROW),
    ):
        with pytest.raises(NotFound):
            await call
    assert (await claim_one(trail, WIDE, "c")).event.seq == 1


async def test_a_consumer_that_begins_anew_with_fewer_scopes_gets_nothing_of_what_waited(trail: Trail) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=WIDE)
    await make(trail, WIDE, "Salaries", scopes=["hr"])
    await trail.deliveries.release(await claim_one(trail, WIDE, "c"), by=WIDE)
    await trail.deliveries.unregister("c", by=WIDE)
    state = await trail.deliveries.register(Consumer(name="c", start="beginning"), by=NARROW)
    assert (state.pending, state.claimed, state.dead) == (0, 0, 0)
    assert await trail.deliveries.claim("c", by=NARROW, worker="w", limit=10) == []


async def test_a_claim_of_another_owner_cannot_be_used(trail: Trail, me: Principal, stranger: Principal) -> None:
    for by in (me, stranger):
        await trail.deliveries.register(Consumer(name="c"), by=by)
    await make(trail, me)
    held = await claim_one(trail, me, "c")
    for call in (
        trail.deliveries.finish(held, [draft("Theirs")], by=stranger),
        trail.deliveries.fail(held, "no", by=stranger, retry=False),
        trail.deliveries.release(held, by=stranger),
    ):
        with pytest.raises((NotFound, LeaseLost)):
            await call
    await trail.deliveries.finish(held, [], by=me)


async def test_a_dead_letter_of_another_owner_or_scope_cannot_be_touched(trail: Trail, stranger: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=WIDE)
    await make(trail, WIDE, "Salaries", scopes=["hr"])
    await trail.deliveries.fail(await claim_one(trail, WIDE, "c"), "no", by=WIDE, retry=False)
    (letter,) = await trail.dead_letters.list(by=WIDE)
    for by in (stranger, NARROW):
        assert list(await trail.dead_letters.list(by=by)) == []
        for call in (trail.dead_letters.replay(letter.id, by=by), trail.dead_letters.drop(letter.id, by=by)):
            with pytest.raises(NotFound):
                await call


async def test_an_output_is_owned_by_the_one_who_finishes(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me)
    helper = msgspec.structs.replace(me, agent_id="helper")
    (output,) = await trail.deliveries.finish(await claim_one(trail, me, "c"), [draft("Out")], by=helper)
    assert (output.owner_id, output.created_by) == ("acme", "helper")
