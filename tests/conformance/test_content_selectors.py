"""`Deliveries`: consumers whose selector looks at the content of records."""

from __future__ import annotations

import asyncio

from clew.access import Principal
from clew.trail.model.breadcrumb import Change
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.records import PATIENCE, claim, draft, make, register


async def test_a_waiting_consumer_is_woken_by_the_one_record_of_a_transaction_whose_content_it_wants(
    trail: Trail, me: Principal
) -> None:
    """The content of a record decides: also with others in one transaction, after a change, and for an output."""
    await register(trail, me, "greps", selector=Selector(context_match=[ContextMatch(path="tool", value="grep")]))
    await register(trail, me, "outputs")
    waiting = asyncio.create_task(trail.deliveries.claim("greps", by=me, worker="w", wait=PATIENCE))
    await trail.records.create_many([draft(context={"tool": tool}) for tool in ("read", "write")], by=me)
    await trail.records.create_many([draft(context={"tool": tool}) for tool in ("read", "grep", "write")], by=me)
    (held,) = await waiting
    assert held.event.breadcrumb is not None
    assert held.event.breadcrumb.context == {"tool": "grep"}
    other = await make(trail, me, context={"tool": "read"})
    waiting = asyncio.create_task(trail.deliveries.claim("greps", by=me, worker="w", wait=PATIENCE))
    await trail.records.update(other.id, Change(context={"tool": "grep"}), expect=1, by=me)
    (changed,) = await waiting
    assert changed.event.breadcrumb_id == other.id
    (source, *_) = await claim(trail, me, "outputs")
    waiting = asyncio.create_task(trail.deliveries.claim("greps", by=me, worker="w", wait=PATIENCE))
    await trail.deliveries.finish(source, [draft(context={"tool": tool}) for tool in ("read", "grep")], by=me)
    (output,) = await waiting
    assert output.event.breadcrumb is not None
    assert output.event.breadcrumb.context == {"tool": "grep"}
