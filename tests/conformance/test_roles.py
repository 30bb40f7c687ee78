"""The rights of roles: every method that takes a principal, with every role."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from clew.access import ROLES, VERBS, Principal
from clew.errors import AccessDenied, AlreadyExists, Conflict, LeaseLost, NotFound
from clew.trail import store
from clew.trail.model.breadcrumb import Change, Update
from clew.trail.model.edge import Edge
from clew.trail.model.event import Claim, Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.conformance.records import claim_one, draft, list_titles, make, make_all

pytestmark = [pytest.mark.req("RCR-18"), pytest.mark.req("O12")]


class Scene(msgspec.Struct):
    """A trail with one record of each kind, and a principal that tries to change it."""

    trail: Trail
    first: str
    second: str
    claim: Claim
    letter: str


Call = Callable[[Scene, Principal], Awaitable[Any]]

LEASE = timedelta(seconds=9)
MATRIX: dict[str, tuple[str, Call]] = {
    "Records.create": ("create", lambda s, by: s.trail.records.create(draft("New"), by=by)),
    "Records.create_many": ("create", lambda s, by: s.trail.records.create_many([draft("New")], by=by)),
    "Records.get": ("read", lambda s, by: s.trail.records.get(s.first, by=by)),
    "Records.find_many": ("read", lambda s, by: s.trail.records.find_many([s.first], by=by)),
    "Records.read": ("read", lambda s, by: s.trail.records.read(s.first, by=by)),
    "Records.update": ("update", lambda s, by: s.trail.records.update(s.first, Change(title="N"), expect=1, by=by)),
    "Records.update_many": (
        "update",
        lambda s, by: s.trail.records.update_many([Update(id=s.first, change=Change(title="N"), expect=1)], by=by),
    ),
    "Records.delete": ("delete", lambda s, by: s.trail.records.delete(s.first, by=by)),
    "Records.list": ("read", lambda s, by: s.trail.records.list(by=by)),
    "Records.history": ("read", lambda s, by: s.trail.records.history(s.first, by=by)),
    "Log.read": ("subscribe", lambda s, by: s.trail.log.read(0, by=by)),
    "Log.creation_of": ("subscribe", lambda s, by: s.trail.log.creation_of(s.first, by=by)),
    "Log.follow": ("subscribe", lambda s, by: anext(s.trail.log.follow(0, by=by))),
    "Deliveries.register": ("subscribe", lambda s, by: s.trail.deliveries.register(Consumer(name="n"), by=by)),
    "Deliveries.unregister": ("subscribe", lambda s, by: s.trail.deliveries.unregister("c", by=by)),
    "Deliveries.consumers": ("subscribe", lambda s, by: s.trail.deliveries.consumers(by=by)),
    "Deliveries.claim": ("subscribe", lambda s, by: s.trail.deliveries.claim("c", by=by, worker="w")),
    "Deliveries.extend": ("subscribe", lambda s, by: s.trail.deliveries.extend(s.claim, by=by, lease=LEASE)),
    "Deliveries.release": ("subscribe", lambda s, by: s.trail.deliveries.release(s.claim, by=by)),
    "Deliveries.finish": ("subscribe", lambda s, by: s.trail.deliveries.finish(s.claim, [], by=by)),
    "Deliveries.fail": ("subscribe", lambda s, by: s.trail.deliveries.fail(s.claim, "no", by=by)),
    "Deliveries.workers": ("subscribe", lambda s, by: s.trail.deliveries.workers(by=by)),
    "Deliveries.abandon": ("subscribe", lambda s, by: s.trail.deliveries.abandon("w", by=by)),
    "Deliveries.load": ("subscribe", lambda s, by: s.trail.deliveries.load("c", by=by)),
    "Deliveries.due_in": ("subscribe", lambda s, by: s.trail.deliveries.due_in("c", by=by)),
    "DeadLetters.list": ("administer", lambda s, by: s.trail.dead_letters.list(by=by)),
    "DeadLetters.replay": ("administer", lambda s, by: s.trail.dead_letters.replay(s.letter, by=by)),
    "DeadLetters.drop": ("administer", lambda s, by: s.trail.dead_letters.drop(s.letter, by=by)),
    "Search.search": ("read", lambda s, by: s.trail.index.search(SearchRequest(text="a"), by=by)),
    "Edges.add": ("create", lambda s, by: s.trail.edges.add([Edge(source=s.second, target=s.first, type="x")], by=by)),
    "Edges.remove": ("update", lambda s, by: s.trail.edges.remove(s.first, s.second, "calls", by=by)),
    "Edges.of": ("read", lambda s, by: s.trail.edges.of(s.first, by=by)),
    "Edges.around": ("read", lambda s, by: s.trail.edges.around([s.first], by=by)),
    "Edges.walk": ("read", lambda s, by: s.trail.edges.walk([s.first], by=by)),
    "Edges.paths": ("read", lambda s, by: s.trail.edges.paths([s.first], by=by)),
    "Upkeep.stats": ("read", lambda s, by: s.trail.upkeep.stats(by=by)),
    "Secrets.put": ("administer", lambda s, by: s.trail.secrets.put("new", "value", by=by)),
    "Secrets.names": ("administer", lambda s, by: s.trail.secrets.names(by=by)),
    "Secrets.drop": ("administer", lambda s, by: s.trail.secrets.drop("key", by=by)),
    "Secrets.reveal": ("administer", lambda s, by: s.trail.secrets.reveal("key", by=by)),
}


@pytest.fixture
async def scene(trail: Trail, me: Principal) -> Scene:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    first, second = await make_all(trail, me, "a", "b")
    await trail.deliveries.fail(await claim_one(trail, me, "c"), "no", by=me, retry=False)
    (letter,) = await trail.dead_letters.list(by=me)
    claim = await claim_one(trail, me, "c")
    await trail.edges.add([Edge(source=first, target=second, type="calls")], by=me)
    await trail.secrets.put("key", "value", by=me)
    return Scene(trail, first, second, claim, letter.id)


def with_roles(me: Principal, *roles: str) -> Principal:
    return msgspec.structs.replace(me, roles=frozenset(roles))


def test_the_matrix_names_every_method_that_takes_a_principal() -> None:
    found = {
        f"{name}.{method}"
        for name, interface in vars(store).items()
        if inspect.isclass(interface) and interface.__module__ == store.__name__
        for method, function in vars(interface).items()
        if inspect.isfunction(function) and "by" in inspect.signature(function).parameters
    }
    assert found == MATRIX.keys()


@pytest.mark.parametrize("method", MATRIX)
async def test_a_role_may_do_what_its_verbs_say_and_others_are_refused_before_it(
    scene: Scene, me: Principal, method: str
) -> None:
    verb, call = MATRIX[method]
    for other in {*ROLES, ""} - set(VERBS[verb]):
        with pytest.raises(AccessDenied) as caught:
            await call(scene, with_roles(me, *filter(None, [other])))
        assert (caught.value.verb, set(caught.value.needed)) == (verb, VERBS[verb])
    first, *others = sorted(VERBS[verb])
    await call(scene, with_roles(me, first))
    for role in others:
        with suppress(AlreadyExists, Conflict, LeaseLost, NotFound):  # the first has done it already
            await call(scene, with_roles(me, role))


def test_the_verbs_are_those_of_the_three_roles() -> None:
    assert {verb for verb, roles in VERBS.items() if "curator" in roles} == VERBS.keys()
    assert {verb for verb, roles in VERBS.items() if "emitter" in roles} == {"create"}
    assert {verb for verb, roles in VERBS.items() if "subscriber" in roles} == {"read", "subscribe"}


async def test_outputs_of_a_handler_need_the_right_to_create(scene: Scene, me: Principal) -> None:
    with pytest.raises(AccessDenied):
        await scene.trail.deliveries.finish(scene.claim, [draft("Out")], by=with_roles(me, "subscriber"))
    assert await list_titles(scene.trail, me) == ["a", "b"]
    both = with_roles(me, "subscriber", "emitter")
    await scene.trail.deliveries.finish(scene.claim, [draft("Out")], by=both)
    assert await list_titles(scene.trail, me) == ["a", "b", "Out"]


async def test_a_refusal_leaves_everything_as_it_was(scene: Scene, me: Principal) -> None:
    head, by = await scene.trail.log.head(), with_roles(me)
    for _, call in MATRIX.values():
        with pytest.raises(AccessDenied):
            await call(scene, by)
    assert await scene.trail.log.head() == head
    assert await list_titles(scene.trail, me) == ["a", "b"]
    assert await scene.trail.secrets.names(by=me) == ["key"]
    assert len(await scene.trail.dead_letters.list(by=me)) == 1
    await scene.trail.deliveries.finish(scene.claim, [], by=me)


async def test_a_role_is_asked_for_before_anything_is_looked_up(
    trail: Trail, stranger: Principal, me: Principal
) -> None:
    """Otherwise a refusal would tell whether something exists."""
    made = await make(trail, me)
    for id in (made.id, "absent"):
        with pytest.raises(AccessDenied):
            await trail.records.get(id, by=with_roles(stranger, "emitter"))
        with pytest.raises(AccessDenied):
            await trail.records.delete(id, by=with_roles(stranger, "subscriber"))
        with pytest.raises(NotFound):
            await trail.records.delete(id, by=stranger)
