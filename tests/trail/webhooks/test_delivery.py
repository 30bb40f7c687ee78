"""The requests that the receiver of a webhook gets for an event."""

from __future__ import annotations

import json

import pytest

from clew.clock import ManualClock
from clew.trail.store import Trail
from clew.trail.work.webhooks import register_webhook, verify_signature
from tests.trail.webhooks.receiver import ANN, LOCAL, SECRET, hook, note, open_receiver, open_sender, reply


@pytest.mark.req("RCR-24")
async def test_an_event_is_posted_signed_with_the_fields_of_the_stream(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as receiver, open_sender(trail, clock) as sent:
        await register_webhook(trail, hook(receiver, name="höok"), by=ANN, allow=LOCAL)
        await sent.sender.refresh()
        written = await trail.records.create(note("grüße \x01", "a"), by=ANN)
        request = await receiver.next()

        body = json.loads(request.body)
        assert request.path == "/in?x=1"
        assert body["type"] == "breadcrumb.created"
        assert body["breadcrumb_id"] == written.id
        assert body["context"] == {"text": "grüße \x01"}
        assert body["tags"] == ["a"]
        headers = request.headers
        assert headers["content-type"] == "application/json"
        assert headers["host"] == f"127.0.0.1:{receiver.port}"
        assert headers["x-clew-event"] == "breadcrumb.created"
        assert headers["x-clew-attempt"] == "1"
        assert headers["x-clew-delivery"].startswith("h%C3%B6ok/")
        assert verify_signature(
            SECRET, headers["x-clew-timestamp"], request.body, headers["x-clew-signature"], now=clock.now()
        )
        await sent.until(lambda state: state.pending + state.claimed == 0, "höok")
        assert sent.outcomes == ["delivered"]


@pytest.mark.req("RCR-24")
@pytest.mark.req("SYL-113")
async def test_eight_failures_make_a_dead_letter_and_a_replay_delivers_it_once(
    trail: Trail, clock: ManualClock
) -> None:
    async with open_receiver(*[reply(500, b"broken\r\n\x1b[31m" + b"x" * 5_000)] * 8) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            requests = []
            for _ in range(8):
                requests.append(await receiver.next())
                await sent.later()
            dead = (await sent.until(lambda state: state.dead == 1)).dead
            [letter] = await trail.dead_letters.list(by=ANN)

            assert dead == 1
            assert [request.headers["x-clew-attempt"] for request in requests] == list("12345678")
            assert len({request.headers["x-clew-delivery"] for request in requests}) == 1
            assert letter.attempts == 8
            assert letter.reason.startswith("answered 500: broken [31mxxx")
            assert letter.reason.isprintable()
            assert len(letter.reason) < 300
            assert sent.outcomes == ["failed"] * 8
            assert receiver.arrived.empty()

            await trail.dead_letters.replay(letter.id, by=ANN)
            await sent.sender.refresh()
            replayed = await receiver.next()
            await sent.until(lambda state: state.pending + state.claimed + state.dead == 0)

            assert replayed.body == requests[0].body
            assert sent.outcomes[-1] == "delivered"
            assert await trail.dead_letters.list(by=ANN) == []


@pytest.mark.req("SYL-112")
async def test_a_temporary_failure_succeeds_on_retry(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver(reply(503), reply(429)) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            await receiver.next()
            await sent.later()
            await receiver.next()
            await sent.later()
            third = await receiver.next()
            await sent.until(lambda state: state.pending + state.claimed == 0)

            assert third.headers["x-clew-attempt"] == "3"
            assert sent.outcomes == ["failed", "failed", "delivered"]


async def test_status_410_is_final(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver(reply(410, b"moved away")) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            await sent.until(lambda state: state.dead == 1)

            [letter] = await trail.dead_letters.list(by=ANN)
            assert letter.reason == "answered 410: moved away"
            assert sent.outcomes == ["gone"]
            assert len(receiver.requests) == 1


@pytest.mark.req("RCR-24")
async def test_a_redirect_is_a_failure_and_is_not_followed(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as elsewhere:
        redirect = reply(307, extra=f"Location: http://127.0.0.1:{elsewhere.port}/\r\n")
        async with open_receiver(redirect) as receiver:
            await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
            async with open_sender(trail, clock) as sent:
                await trail.records.create(note(), by=ANN)
                await receiver.next()
                await sent.until(lambda state: state.claimed == 0 and state.pending == 1)

                assert elsewhere.requests == []
                assert sent.outcomes == ["failed"]


@pytest.mark.parametrize(
    "answer",
    [
        b"hang",
        b"HTTP/1.1 500 OK\r\nContent-Length: 99999\r\n\r\nslow",
        b"HTTP/1.1 500 X\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_a_receiver_that_does_not_answer_properly_costs_one_attempt(
    trail: Trail, clock: ManualClock, answer: bytes
) -> None:
    async with open_receiver(answer) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock, timeout=0.3) as sent:
            await trail.records.create(note(), by=ANN)
            assert await sent.outcome() == "failed"
            await sent.until(lambda state: state.claimed == 0 and state.pending == 1)
            await sent.later()

            while (request := await receiver.next()).headers["x-clew-attempt"] == "1":
                pass
            assert request.headers["x-clew-attempt"] == "2"


async def test_the_body_of_a_success_is_not_waited_for(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver(b"HTTP/1.1 202 X\r\nContent-Length: 99999\r\n\r\nslow") as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)

            assert await sent.outcome() == "delivered"


@pytest.mark.req("RCR-24")
async def test_a_hanging_receiver_does_not_delay_another(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver(b"hang", b"hang", b"hang", b"hang") as stuck, open_receiver() as quick:
        await register_webhook(trail, hook(stuck, name="stuck"), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(quick, name="quick"), by=ANN, allow=LOCAL)
        async with open_sender(trail, clock):
            for number in range(6):
                await trail.records.create(note(str(number)), by=ANN)
            arrived = [json.loads((await quick.next()).body)["context"]["text"] for _ in range(6)]

            assert sorted(arrived) == [str(number) for number in range(6)]
            assert len(stuck.requests) <= 4


async def test_a_refused_connection_is_a_failure(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as receiver:
        consumer = hook(receiver)
    await register_webhook(trail, consumer, by=ANN, allow=LOCAL)
    async with open_sender(trail, clock) as sent:
        await trail.records.create(note(), by=ANN)

        assert await sent.outcome() == "failed"
        assert (await sent.until(lambda state: state.claimed == 0)).pending == 1


async def test_a_missing_secret_is_a_failure_that_a_retry_can_solve(trail: Trail, clock: ManualClock) -> None:
    async with open_receiver() as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        await trail.secrets.drop("hook", by=ANN)
        async with open_sender(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            assert await sent.outcome() == "failed"
            assert receiver.requests == []

            await trail.secrets.put("hook", "new", by=ANN)
            await sent.later()
            request = await receiver.next()

            stamp, signature = request.headers["x-clew-timestamp"], request.headers["x-clew-signature"]
            assert verify_signature("new", stamp, request.body, signature, now=clock.now())
