"""Scopes on a record: an emitter may add only its own scopes, because the record would otherwise be hidden from its
writer."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.errors import AccessDenied
from clew.trail.model.event import Consumer
from clew.trail.store import Trail
from tests.conformance.records import claim_one, draft, list_all, make

pytestmark = pytest.mark.req("RCR-19")

BOTH = frozenset({"emitter", "subscriber"})
WORKER = Principal(owner_id="acme", agent_id="worker", roles=BOTH, scopes=frozenset({"ops"}))
CURATOR = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"ops", "hr"}))


async def test_scopes_that_are_held_are_put_on(trail: Trail) -> None:
    made = await make(trail, WORKER, scopes=["ops"])
    assert (await trail.records.get(made.id, by=WORKER)).scopes == ("ops",)


async def test_a_scope_that_is_not_held_is_refused_and_nothing_is_written(trail: Trail) -> None:
    for batch in ([draft("Lost", scopes=["hr"])], [draft("Fine"), draft("Lost", scopes=["ops", "hr"])]):
        with pytest.raises(AccessDenied, match="hr"):
            await trail.records.create_many(batch, by=WORKER)
    assert await list_all(trail, CURATOR) == []


async def test_a_handler_hides_no_output_from_itself(trail: Trail) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=WORKER)
    await make(trail, CURATOR)
    held = await claim_one(trail, WORKER, "c")
    with pytest.raises(AccessDenied, match="hr"):
        await trail.deliveries.finish(held, [draft("Lost", scopes=["hr"])], by=WORKER)
    await trail.deliveries.finish(held, [draft("Kept", scopes=["ops"])], by=WORKER)


async def test_a_curator_puts_on_any_scope(trail: Trail) -> None:
    lone = Principal(owner_id="acme", agent_id="ann", roles=frozenset({"curator"}))
    made = await make(trail, lone, "For HR only", scopes=["hr"])
    assert made.scopes == ("hr",)
    assert (await trail.records.get(made.id, by=CURATOR)).title == "For HR only"
