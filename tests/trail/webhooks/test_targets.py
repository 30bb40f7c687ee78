"""The addresses that a webhook may use."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import DeliveryRefused, InvalidInput, NotFound
from clew.trail.model.event import Consumer, RetryPolicy, Webhook
from clew.trail.store import Trail
from clew.trail.work.webhooks import register_webhook
from tests.trail.webhooks.receiver import ANN, BOB, LOCAL, hook, note, open_receiver, open_sender


@pytest.mark.req("RCR-24")
async def test_a_private_address_is_refused_at_registration(trail: Trail) -> None:
    async with open_receiver() as receiver:
        with pytest.raises(DeliveryRefused, match="loopback"):
            await register_webhook(trail, hook(receiver), by=ANN)

    assert await trail.deliveries.consumers(by=ANN) == []


async def test_an_unknown_host_secret_or_webhook_is_refused_at_registration(trail: Trail) -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    known = Webhook(url="http://hooks.example/", secret="hook")
    with pytest.raises(DeliveryRefused, match="unknown"):
        await register_webhook(trail, Consumer(name="a", webhook=known), by=ANN, resolve=nowhere)
    async with open_receiver() as receiver:
        with pytest.raises(NotFound):
            await register_webhook(trail, hook(receiver), by=BOB, allow=LOCAL)
    with pytest.raises(InvalidInput, match="webhook"):
        await register_webhook(trail, Consumer(name="a"), by=ANN)


@pytest.mark.req("RCR-24")
async def test_a_webhook_has_eight_attempts_unless_it_names_others(trail: Trail) -> None:
    async with open_receiver() as receiver:
        webhook, three = hook(receiver).webhook, RetryPolicy(attempts=3, backoff=5.0)
        plain = await register_webhook(trail, Consumer(name="a", webhook=webhook), by=ANN, allow=LOCAL)
        given = await register_webhook(trail, Consumer(name="b", webhook=webhook, retry=three), by=ANN, allow=LOCAL)
        flood = Consumer(name="c", webhook=webhook, retry=RetryPolicy(attempts=100, backoff=0))
        with pytest.raises(InvalidInput, match="at least 1 second for a webhook"):
            await register_webhook(trail, flood, by=ANN, allow=LOCAL)

    assert plain.consumer.retry_policy.attempts == 8
    assert given.consumer.retry == three


@pytest.mark.req("RCR-24")
async def test_a_name_that_later_resolves_to_a_private_address_is_refused_at_delivery(
    trail: Trail, clock: ManualClock
) -> None:
    addresses = iter([["93.184.215.14"], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return next(addresses)

    async with open_receiver() as receiver:
        webhook = Webhook(url=f"http://hooks.example:{receiver.port}/", secret="hook")
        await register_webhook(trail, Consumer(name="hook", webhook=webhook), by=ANN, resolve=rebinding)
        async with open_sender(trail, clock, allow=(), resolve=rebinding) as sent:
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

    async with open_receiver() as receiver:
        webhook = Webhook(url=f"http://hooks.example:{receiver.port}/in", secret="hook")
        await register_webhook(trail, Consumer(name="hook", webhook=webhook), by=ANN, allow=LOCAL, resolve=local)
        async with open_sender(trail, clock, resolve=local):
            await trail.records.create(note(), by=ANN)
            request = await receiver.next()

            assert request.headers["host"] == f"hooks.example:{receiver.port}"


async def test_the_certificate_must_be_the_urls_not_the_addresss(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    async def local(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    server, client = self_signed("hooks.example", tmp_path)
    async with open_receiver(tls=server) as receiver:
        for name in ("hooks", "other"):
            webhook = Webhook(url=f"https://{name}.example:{receiver.port}/", secret="hook")
            await register_webhook(trail, Consumer(name=name, webhook=webhook), by=ANN, allow=LOCAL, resolve=local)
        async with open_sender(trail, clock, resolve=local, tls=client) as sent:
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
