"""The events that a webhook gets, by owner and sender."""

from __future__ import annotations

import json

import pytest

from clew.clock import ManualClock
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.webhooks import register_webhook, verify_signature
from tests.trail.webhooks.receiver import ANN, BOB, LOCAL, hook, note, open_receiver, open_sender


@pytest.mark.req("RCR-23")
async def test_only_matching_events_are_posted_with_deletions(trail: Trail, clock: ManualClock) -> None:
    wanted = Selector(schema_name="note.v1", context_match=(ContextMatch(path="text", value="yes"),))
    async with open_receiver() as receiver:
        await register_webhook(trail, hook(receiver, selector=wanted), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock):
            await trail.records.create(note("no"), by=ANN)
            written = await trail.records.create(note("yes"), by=ANN)
            created = await receiver.next()
            await trail.records.delete(written.id, by=ANN)
            deleted = await receiver.next()

            assert json.loads(created.body)["breadcrumb_id"] == written.id
            assert json.loads(deleted.body)["type"] == "breadcrumb.deleted"
            assert json.loads(deleted.body)["context"] is None


async def test_each_owner_is_served_with_its_own_events_and_secret(trail: Trail, clock: ManualClock) -> None:
    await trail.secrets.put("hook", "bobs", by=BOB)
    async with open_receiver() as anns, open_receiver() as bobs:
        await register_webhook(trail, hook(anns), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(bobs), by=BOB, allow=LOCAL)
        async with open_sender(trail, clock, owners=(ANN, BOB)):
            await trail.records.create(note("for bob"), by=BOB)
            await trail.records.create(note("for ann"), by=ANN)
            to_bob, to_ann = await bobs.next(), await anns.next()

            assert json.loads(to_bob.body)["context"]["text"] == "for bob"
            assert json.loads(to_ann.body)["context"]["text"] == "for ann"
            stamp, signature = to_bob.headers["x-clew-timestamp"], to_bob.headers["x-clew-signature"]
            assert verify_signature("bobs", stamp, to_bob.body, signature, now=clock.now())


async def test_a_changed_url_is_followed_and_an_unregistered_consumer_is_left(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as before, open_receiver() as after, open_receiver() as other:
        await register_webhook(trail, hook(before), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(other, name="other"), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note("1"), by=ANN)
            await before.next()
            await other.next()
            await sent.until(lambda state: state.claimed + state.pending == 0)

            await register_webhook(trail, hook(after), by=ANN, allow=LOCAL)
            await trail.deliveries.unregister("other", by=ANN)
            await sent.sender.refresh()
            await trail.records.create(note("2"), by=ANN)
            request = await after.next()

            assert json.loads(request.body)["context"]["text"] == "2"
            assert (len(before.requests), len(other.requests)) == (1, 1)


@pytest.mark.req("RCR-28")
async def test_two_senders_post_each_event_once(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as one, open_sender(trail, clock):
            await trail.records.create_many([note(str(number)) for number in range(50)], by=ANN)
            texts = [json.loads((await receiver.next()).body)["context"]["text"] for _ in range(50)]
            await one.until(lambda state: state.pending + state.claimed == 0)

            assert sorted(texts, key=int) == [str(number) for number in range(50)]
            assert receiver.arrived.empty()


@pytest.mark.req("RCR-22")
async def test_a_stopped_sender_gives_back_what_the_receiver_has_not_taken(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver(b"hang") as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock):
            await trail.records.create(note(), by=ANN)
            first = await receiver.next()
        async with open_sender(trail, clock):
            second = await receiver.next()

            assert second.headers["x-clew-delivery"] == first.headers["x-clew-delivery"]
            assert second.body == first.body
