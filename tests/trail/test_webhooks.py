from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import DeliveryRefused, InvalidInput, NotFound
from clew.trail import open_trail
from clew.trail.breadcrumb import Draft
from clew.trail.event import Consumer, ConsumerState, RetryPolicy, Webhook
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.webhooks import WebhookSender, register_webhook, sign, verify_signature
from tests.handling import PATIENCE

LOCAL = ("127.0.0.0/8",)
SECRET = "s3cret-ünïcode"
ANN = Principal(owner_id="ann")
BOB = Principal(owner_id="bob")


# -- signatures ---------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = str(int(NOW.timestamp()))


@pytest.mark.req("RCR-24")
def test_a_receiver_can_verify_a_signature_with_the_standard_library_alone() -> None:
    expected = hmac.new(SECRET.encode(), STAMP.encode() + b"." + b'{"a":1}', hashlib.sha256).hexdigest()

    assert sign(SECRET, STAMP, b'{"a":1}') == f"sha256={expected}"
    assert verify_signature(SECRET, STAMP, b'{"a":1}', f"sha256={expected}", now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"secret": "other"},
        {"body": b"{} "},
        {"signature": "sha256=" + "0" * 64},
        {"signature": ""},
        {"signature": "sha256=é\udc80"},
        {"timestamp": str(int(STAMP) + 1)},
        {"timestamp": "now"},
        {"timestamp": ""},
        {"timestamp": "-1"},
        {"timestamp": "²"},
        {"timestamp": "9" * 5_000},
        {"now": NOW + timedelta(minutes=6)},
        {"now": NOW - timedelta(minutes=6)},
    ],
)
def test_anything_changed_or_too_old_does_not_verify(change: dict[str, object]) -> None:
    given: dict[str, object] = {
        "secret": SECRET,
        "timestamp": STAMP,
        "body": b"{}",
        "signature": sign(SECRET, STAMP, b"{}"),
        "now": NOW,
    }
    assert verify_signature(**given)  # type: ignore[arg-type]  # keywords from a table

    assert not verify_signature(**{**given, **change})  # type: ignore[arg-type]  # keywords from a table


# -- a real receiver ----------------------------------------------------------------------------------------


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """An HTTP server on a local port that answers as told, in raw bytes, and remembers what came."""

    answers: list[bytes] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    arrived: asyncio.Queue[Request] = field(default_factory=asyncio.Queue)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                request = Request(path=first.split()[1], headers=headers, body=body)
                self.requests.append(request)
                self.arrived.put_nowait(request)
                answer = self.answers.pop(0) if self.answers else reply(200)
                if answer == b"hang":
                    await self.release.wait()
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def next(self) -> Request:
        async with asyncio.timeout(PATIENCE):
            return await self.arrived.get()


def reply(status: int, body: bytes = b"", extra: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


@asynccontextmanager
async def receiving(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(answers=list(answers))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
        receiver.release.set()


# -- the sender on a real trail -----------------------------------------------------------------------------


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db", clock)
    await trail.secrets.put("hook", SECRET, by=ANN)
    yield trail
    await trail.close()


@dataclass
class Sending:
    sender: WebhookSender
    trail: Trail
    clock: ManualClock
    outcomes: list[str]
    told: asyncio.Queue[str]

    async def outcome(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self.told.get()

    async def state(self, name: str = "hook", by: Principal = ANN) -> ConsumerState:
        return next(each for each in await self.trail.deliveries.consumers(by=by) if each.consumer.name == name)

    async def until(self, holds: Callable[[ConsumerState], bool], name: str = "hook") -> ConsumerState:
        async with asyncio.timeout(PATIENCE):
            while not holds(state := await self.state(name)):
                pass
            return state

    async def later(self) -> None:
        """Let every retry come due, once nothing is under way."""
        await self.until(lambda state: state.claimed == 0)
        self.clock.advance(hours=1)
        await self.sender.refresh()


@asynccontextmanager
async def sending(
    trail: Trail, clock: ManualClock, *, owners: Sequence[Principal] = (ANN,), **options: object
) -> AsyncIterator[Sending]:
    outcomes: list[str] = []
    told: asyncio.Queue[str] = asyncio.Queue()

    def on_delivery(outcome: str, seconds: float) -> None:
        outcomes.append(outcome)
        told.put_nowait(outcome)

    async def present_owners() -> Sequence[Principal]:
        return owners

    settings: dict[str, object] = {
        "allow": LOCAL,
        "on_delivery": on_delivery,
        **options,
    }
    sender = WebhookSender(trail, owners=present_owners, clock=clock, worker_id="w1", **settings)  # type: ignore[arg-type]  # options from tests
    running = asyncio.create_task(sender.run())
    try:
        yield Sending(sender, trail, clock, outcomes, told)
    finally:
        sender.stop()
        async with asyncio.timeout(PATIENCE):
            await running


def hook(receiver: Receiver, *, name: str = "hook", selector: Selector | None = None) -> Consumer:
    return Consumer(
        name=name,
        selector=selector or Selector(schema_name="note.v1"),
        webhook=Webhook(url=f"http://127.0.0.1:{receiver.port}/in?x=1", secret="hook"),
    )


def note(text: str = "hello", *tags: str) -> Draft:
    return Draft(title="Note", schema_name="note.v1", tags=tags, context={"text": text})


@pytest.mark.req("RCR-24")
async def test_an_event_is_posted_signed_with_the_fields_of_the_stream(trail: Trail, clock: ManualClock) -> None:
    async with receiving() as receiver, sending(trail, clock) as sent:
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
    async with receiving(*[reply(500, b"broken\r\n\x1b[31m" + b"x" * 5_000)] * 8) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as sent:
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
async def test_a_passing_failure_is_overcome_by_a_retry(trail: Trail, clock: ManualClock) -> None:
    async with receiving(reply(503), reply(429)) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            await receiver.next()
            await sent.later()
            await receiver.next()
            await sent.later()
            third = await receiver.next()
            await sent.until(lambda state: state.pending + state.claimed == 0)

            assert third.headers["x-clew-attempt"] == "3"
            assert sent.outcomes == ["failed", "failed", "delivered"]


async def test_gone_is_final(trail: Trail, clock: ManualClock) -> None:
    async with receiving(reply(410, b"moved away")) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            await sent.until(lambda state: state.dead == 1)

            [letter] = await trail.dead_letters.list(by=ANN)
            assert letter.reason == "answered 410: moved away"
            assert sent.outcomes == ["gone"]
            assert len(receiver.requests) == 1


@pytest.mark.req("RCR-24")
async def test_a_redirect_is_a_failure_and_is_not_followed(trail: Trail, clock: ManualClock) -> None:
    async with receiving() as elsewhere:
        redirect = reply(307, extra=f"Location: http://127.0.0.1:{elsewhere.port}/\r\n")
        async with receiving(redirect) as receiver:
            await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
            async with sending(trail, clock) as sent:
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
    async with receiving(answer) as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock, timeout=1.0) as sent:
            await trail.records.create(note(), by=ANN)
            assert await sent.outcome() == "failed"
            await sent.until(lambda state: state.claimed == 0 and state.pending == 1)
            await sent.later()

            while (request := await receiver.next()).headers["x-clew-attempt"] == "1":
                pass
            assert request.headers["x-clew-attempt"] == "2"


async def test_the_body_of_a_success_is_not_waited_for(trail: Trail, clock: ManualClock) -> None:
    async with receiving(b"HTTP/1.1 202 X\r\nContent-Length: 99999\r\n\r\nslow") as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)

            assert await sent.outcome() == "delivered"


@pytest.mark.req("RCR-24")
async def test_a_hanging_receiver_does_not_delay_another(trail: Trail, clock: ManualClock) -> None:
    async with receiving(b"hang", b"hang", b"hang", b"hang") as stuck, receiving() as quick:
        await register_webhook(trail, hook(stuck, name="stuck"), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(quick, name="quick"), by=ANN, allow=LOCAL)
        async with sending(trail, clock):
            for number in range(6):
                await trail.records.create(note(str(number)), by=ANN)
            arrived = [json.loads((await quick.next()).body)["context"]["text"] for _ in range(6)]

            assert sorted(arrived) == [str(number) for number in range(6)]
            assert len(stuck.requests) <= 4


async def test_a_refused_connection_is_a_failure(trail: Trail, clock: ManualClock) -> None:
    async with receiving() as receiver:
        consumer = hook(receiver)
    await register_webhook(trail, consumer, by=ANN, allow=LOCAL)
    async with sending(trail, clock) as sent:
        await trail.records.create(note(), by=ANN)

        assert await sent.outcome() == "failed"
        assert (await sent.until(lambda state: state.claimed == 0)).pending == 1


async def test_a_missing_secret_is_a_failure_that_can_be_mended(trail: Trail, clock: ManualClock) -> None:
    async with receiving() as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        await trail.secrets.drop("hook", by=ANN)
        async with sending(trail, clock) as sent:
            await trail.records.create(note(), by=ANN)
            assert await sent.outcome() == "failed"
            assert receiver.requests == []

            await trail.secrets.put("hook", "new", by=ANN)
            await sent.later()
            request = await receiver.next()

            stamp, signature = request.headers["x-clew-timestamp"], request.headers["x-clew-signature"]
            assert verify_signature("new", stamp, request.body, signature, now=clock.now())


# -- where it may go ----------------------------------------------------------------------------------------


@pytest.mark.req("RCR-24")
async def test_a_private_address_is_refused_at_registration(trail: Trail) -> None:
    async with receiving() as receiver:
        with pytest.raises(DeliveryRefused, match="loopback"):
            await register_webhook(trail, hook(receiver), by=ANN)

    assert await trail.deliveries.consumers(by=ANN) == []


async def test_an_unknown_host_secret_or_webhook_is_refused_at_registration(trail: Trail) -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    known = Webhook(url="http://hooks.example/", secret="hook")
    with pytest.raises(DeliveryRefused, match="unknown"):
        await register_webhook(trail, Consumer(name="a", webhook=known), by=ANN, resolve=nowhere)
    async with receiving() as receiver:
        with pytest.raises(NotFound):
            await register_webhook(trail, hook(receiver), by=BOB, allow=LOCAL)
    with pytest.raises(InvalidInput, match="webhook"):
        await register_webhook(trail, Consumer(name="a"), by=ANN)


async def test_a_webhook_always_has_eight_attempts(trail: Trail) -> None:
    async with receiving() as receiver:
        eager = Consumer(name="a", webhook=hook(receiver).webhook, retry=RetryPolicy(attempts=100))
        state = await register_webhook(trail, eager, by=ANN, allow=LOCAL)

    assert state.consumer.retry.attempts == 8


@pytest.mark.req("RCR-24")
async def test_a_name_that_later_resolves_to_a_private_address_is_refused_at_delivery(
    trail: Trail, clock: ManualClock
) -> None:
    addresses = iter([["93.184.215.14"], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return next(addresses)

    async with receiving() as receiver:
        webhook = Webhook(url=f"http://hooks.example:{receiver.port}/", secret="hook")
        await register_webhook(trail, Consumer(name="hook", webhook=webhook), by=ANN, resolve=rebinding)
        async with sending(trail, clock, allow=(), resolve=rebinding) as sent:
            await trail.records.create(note(), by=ANN)
            await sent.until(lambda state: state.dead == 1)

            [letter] = await trail.dead_letters.list(by=ANN)
            assert letter.attempts == 1
            assert "loopback" in letter.reason
            assert sent.outcomes == ["refused"]
            assert receiver.requests == []


@pytest.mark.req("RCR-24")
async def test_the_connection_goes_to_the_checked_address_under_the_urls_own_name(
    trail: Trail, clock: ManualClock
) -> None:
    async def local(host: str, port: int) -> Sequence[str]:
        assert host == "hooks.example"
        return ["127.0.0.2", "127.0.0.1"]

    async with receiving() as receiver:
        webhook = Webhook(url=f"http://hooks.example:{receiver.port}/in", secret="hook")
        await register_webhook(trail, Consumer(name="hook", webhook=webhook), by=ANN, allow=LOCAL, resolve=local)
        async with sending(trail, clock, resolve=local):
            await trail.records.create(note(), by=ANN)
            request = await receiver.next()

            assert request.headers["host"] == f"hooks.example:{receiver.port}"


async def test_the_certificate_must_be_the_urls_not_the_addresss(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    async def local(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    server, client = self_signed("hooks.example", tmp_path)
    async with receiving(tls=server) as receiver:
        for name in ("hooks", "other"):
            webhook = Webhook(url=f"https://{name}.example:{receiver.port}/", secret="hook")
            await register_webhook(trail, Consumer(name=name, webhook=webhook), by=ANN, allow=LOCAL, resolve=local)
        async with sending(trail, clock, resolve=local, tls=client) as sent:
            await trail.records.create(note(), by=ANN)
            request = await receiver.next()

            assert request.headers["host"] == f"hooks.example:{receiver.port}"
            assert {await sent.outcome(), await sent.outcome()} == {"delivered", "failed"}
            assert len(receiver.requests) == 1


def self_signed(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for a name, and a client's that trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode())


# -- which events and whose ---------------------------------------------------------------------------------


@pytest.mark.req("RCR-23")
async def test_only_what_the_selector_means_is_posted_and_deletions_are_told(trail: Trail, clock: ManualClock) -> None:
    wanted = Selector(schema_name="note.v1", context_match=(ContextMatch(path="text", value="yes"),))
    async with receiving() as receiver:
        await register_webhook(trail, hook(receiver, selector=wanted), by=ANN, allow=LOCAL)
        async with sending(trail, clock):
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
    async with receiving() as anns, receiving() as bobs:
        await register_webhook(trail, hook(anns), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(bobs), by=BOB, allow=LOCAL)
        async with sending(trail, clock, owners=(ANN, BOB)):
            await trail.records.create(note("for bob"), by=BOB)
            await trail.records.create(note("for ann"), by=ANN)
            to_bob, to_ann = await bobs.next(), await anns.next()

            assert json.loads(to_bob.body)["context"]["text"] == "for bob"
            assert json.loads(to_ann.body)["context"]["text"] == "for ann"
            stamp, signature = to_bob.headers["x-clew-timestamp"], to_bob.headers["x-clew-signature"]
            assert verify_signature("bobs", stamp, to_bob.body, signature, now=clock.now())


async def test_a_changed_url_is_followed_and_an_unregistered_consumer_is_left(trail: Trail, clock: ManualClock) -> None:
    async with receiving() as before, receiving() as after, receiving() as other:
        await register_webhook(trail, hook(before), by=ANN, allow=LOCAL)
        await register_webhook(trail, hook(other, name="other"), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as sent:
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
    async with receiving() as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock) as one, sending(trail, clock):
            await trail.records.create_many([note(str(number)) for number in range(50)], by=ANN)
            texts = [json.loads((await receiver.next()).body)["context"]["text"] for _ in range(50)]
            await one.until(lambda state: state.pending + state.claimed == 0)

            assert sorted(texts, key=int) == [str(number) for number in range(50)]
            assert receiver.arrived.empty()


@pytest.mark.req("RCR-22")
async def test_a_stopped_sender_gives_back_what_the_receiver_has_not_taken(trail: Trail, clock: ManualClock) -> None:
    async with receiving(b"hang") as receiver:
        await register_webhook(trail, hook(receiver), by=ANN, allow=LOCAL)
        async with sending(trail, clock):
            await trail.records.create(note(), by=ANN)
            first = await receiver.next()
        async with sending(trail, clock):
            second = await receiver.next()

            assert second.headers["x-clew-delivery"] == first.headers["x-clew-delivery"]
            assert second.body == first.body
