"""A consumer has the scopes of the principal that registered it. A principal with fewer scopes can neither see nor use
it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clew.access import Principal
from clew.errors import AlreadyExists, NotFound
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.conformance.records import claim_one, make, titles

pytestmark = pytest.mark.req("RCR-19")

WIDE = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"hr", "ops"}))
NARROW = Principal(owner_id="acme", agent_id="bob", scopes=frozenset({"ops"}))


@pytest.fixture
async def salaries(trail: Trail) -> Trail:
    """A trail with a consumer of wide scopes that has an event of these waiting."""
    await trail.deliveries.register(Consumer(name="pay"), by=WIDE)
    await make(trail, WIDE, "Salaries", scopes=["hr"])
    return trail


async def test_a_consumer_of_wider_scopes_is_not_listed(salaries: Trail) -> None:
    await salaries.deliveries.register(Consumer(name="tools"), by=NARROW)
    assert [each.consumer.name for each in await salaries.deliveries.consumers(by=NARROW)] == ["tools"]
    assert [each.consumer.name for each in await salaries.deliveries.consumers(by=WIDE)] == ["pay", "tools"]


async def test_a_consumer_of_wider_scopes_cannot_be_claimed_from_or_forgotten(salaries: Trail) -> None:
    calls: list[Any] = [
        salaries.deliveries.claim("pay", by=NARROW, worker="w"),
        salaries.deliveries.due_in("pay", by=NARROW),
        salaries.deliveries.unregister("pay", by=NARROW),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call
    assert titles([await claim_one(salaries, WIDE, "pay")]) == ["Salaries"]


async def test_a_consumer_of_wider_scopes_cannot_be_taken_over(salaries: Trail) -> None:
    with pytest.raises(AlreadyExists):
        await salaries.deliveries.register(Consumer(name="pay", selector=Selector(any_tags=["none"])), by=NARROW)
    assert titles([await claim_one(salaries, WIDE, "pay")]) == ["Salaries"]


async def test_a_claim_of_wider_scopes_cannot_be_held_finished_or_failed(salaries: Trail) -> None:
    held = await claim_one(salaries, WIDE, "pay")
    calls: list[Any] = [
        salaries.deliveries.extend(held, by=NARROW, lease=timedelta(hours=1)),
        salaries.deliveries.finish(held, [], by=NARROW),
        salaries.deliveries.fail(held, "no", by=NARROW),
        salaries.deliveries.release(held, by=NARROW),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call
    await salaries.deliveries.finish(held, [], by=WIDE)
