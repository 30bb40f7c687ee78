"""The bus over a real nats-server: fan-out, logins, certificates, a server that dies and comes back."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from nats.aio.client import Client

from clew.bus import nats as nats_bus
from clew.bus import open_bus
from clew.bus.notice import Bus, Notice
from clew.config import BusConfig
from clew.errors import ConfigError
from clew.trail.model.breadcrumb import Draft
from tests.bus.crew import ME, open_on_bus
from tests.bus.nats_server import NatsServer

PATIENCE = 30.0
NEWS = Notice(id="1", owner_id="acme", schema_name="job.v1", tags=("mine",))
Heard = asyncio.Queue[Notice | None]


@asynccontextmanager
async def opened(url: str, **settings: str) -> AsyncIterator[tuple[Bus, Heard]]:
    """A bus, and what is heard on it."""
    bus, heard = await open_bus(BusConfig(url=url, **settings), Path()), Heard()
    try:
        await bus.check()
        bus.listen(heard.put_nowait)
        async with asyncio.timeout(PATIENCE):
            yield bus, heard
    finally:
        await bus.close()


async def publish_until_heard(bus: Bus, heard: Heard) -> Notice | None:
    """The notices that a listener receives while they are sent repeatedly, for example while a connection is opened."""
    while True:
        bus.publish([NEWS])
        try:
            async with asyncio.timeout(0.2):
                return await heard.get()
        except TimeoutError:
            continue


@pytest.mark.req("RCR-22")
async def test_a_notice_reaches_the_others_and_not_its_own_process(nats: NatsServer) -> None:
    async with opened(nats.url) as (one, own), opened(nats.url) as (_, heard):
        assert await publish_until_heard(one, heard) in (NEWS, None)  # None after a late connection
        assert NEWS not in [own.get_nowait() for _ in range(own.qsize())]


@pytest.mark.req("RCR-22")
async def test_anybody_can_subscribe_to_one_record_or_one_agent(nats: NatsServer) -> None:
    other, subjects = Client(), asyncio.Queue[str]()
    await other.connect(nats.url)
    try:
        for subject in ("bc.7.updated", "agents.writer.events"):
            subscription = await other.subscribe(subject)

            async def pass_on(messages: object = subscription.messages) -> None:
                async for message in messages:  # type: ignore[attr-defined]  # the library names no type for it
                    subjects.put_nowait(message.subject)

            asyncio.get_running_loop().create_task(pass_on())
        await other.flush()
        async with opened(nats.url) as (bus, _):
            bus.publish([NEWS, Notice(id="7", owner_id="acme", agents=("writer",))])
            assert {await subjects.get(), await subjects.get()} == {"bc.7.updated", "agents.writer.events"}
            assert subjects.empty()
    finally:
        await other.close()


async def test_a_message_of_somebody_else_wakes_and_breaks_nothing(nats: NatsServer) -> None:
    other = Client()
    await other.connect(nats.url)
    async with opened(nats.url) as (_, heard):
        await other.publish("bc.x.updated", b"\xff no notice")
        assert await heard.get() is None
    await other.close()


@pytest.mark.req("RCR-22")
async def test_the_bus_reconnects_to_a_killed_server_and_notifies_listeners(nats: NatsServer) -> None:
    async with opened(nats.url) as (one, own), opened(nats.url) as (_, heard):
        nats.kill()
        one.publish([NEWS])  # dropped: nobody waits for a server
        nats.start()
        assert await own.get() is None
        assert await heard.get() is None
        assert await publish_until_heard(one, heard) == NEWS


async def test_a_server_that_is_not_there_is_waited_for_in_the_background(nats: NatsServer) -> None:
    nats.kill()
    async with opened(nats.url) as (one, own), opened(nats.url) as (_, heard):
        one.publish([NEWS])
        nats.start()
        assert await own.get() is None
        assert await heard.get() is None
        assert await publish_until_heard(one, heard) == NEWS


async def test_neither_opening_nor_writing_waits_for_a_server_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_bus, "CONNECT_SECONDS", 100 * PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        async with asyncio.timeout(PATIENCE):
            trail = await open_on_bus(tmp_path, url)
            await trail.records.create(Draft(title="A note", context={}), by=ME)
            await trail.close()


async def test_notices_during_the_connection_are_sent_before_the_bus_closes(nats: NatsServer) -> None:
    async with opened(nats.url) as (_, heard):
        bus = await open_bus(BusConfig(url=nats.url), Path())
        bus.publish([NEWS])
        await bus.close()
        assert await heard.get() == NEWS


@pytest.mark.parametrize(
    ("options", "login"),
    [(("--user", "clew", "--pass", "s3cret"), "clew:s3cret"), (("--auth", "t0ken"), "t0ken")],
)
async def test_a_login_is_read_from_where_the_settings_say(
    options: tuple[str, ...], login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_LOGIN", login)
    with NatsServer(*options) as server:
        async with (
            opened(server.url, credentials="env:BUS_LOGIN") as (one, _),
            opened(server.url, credentials="env:BUS_LOGIN") as (_, heard),
        ):
            assert await publish_until_heard(one, heard) in (NEWS, None)  # None after a late connection
        monkeypatch.setenv("BUS_LOGIN", "clew:wrong")
        with pytest.raises(ConfigError, match="refuses this client") as refused:
            async with opened(server.url, credentials="env:BUS_LOGIN"):
                """It is refused."""
        assert "\n" not in str(refused.value)
        assert "wrong" not in str(refused.value)


async def test_the_certificate_of_the_server_is_checked(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with NatsServer("--tls", "--tlscert", str(certificate), "--tlskey", str(key), scheme="tls") as server:
        ca = str(certificate)
        async with opened(server.url, ca=ca) as (one, _), opened(server.url, ca=ca) as (_, heard):
            assert await publish_until_heard(one, heard) in (NEWS, None)  # None after a late connection
        with pytest.raises(ConfigError, match=r"no certificate that is trusted .*check bus\.ca"):
            async with opened(server.url):
                """It is refused."""


async def test_the_error_for_the_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(ConfigError, match=r'pip install "clew\[nats\]"'):
        await open_bus(BusConfig(url="nats://127.0.0.1:4222"), Path())


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for this machine, signed by itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nats")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "nats.pem", folder / "nats.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


async def test_a_bus_can_be_closed_at_any_moment_of_its_connection(nats: NatsServer) -> None:
    async with asyncio.timeout(PATIENCE):
        for turns in range(60):
            bus = await open_bus(BusConfig(url=nats.url), Path())
            for _ in range(turns):
                await asyncio.sleep(0)
            await bus.close()


async def test_an_unusable_login_is_reported_and_blocks_nothing(tmp_path: Path) -> None:
    (tmp_path / "bus.creds").write_text(
        "-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\n"
        "-----BEGIN USER NKEY SEED-----\nSUNOSEED\n------END USER NKEY SEED------\n"
    )
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    (tmp_path / "nats.conf").write_text(f"authorization {{ users = [{{ nkey: {key} }}] }}")
    with NatsServer("-c", str(tmp_path / "nats.conf")) as server:
        bus = await open_bus(BusConfig(url=server.url, credentials="file:bus.creds"), tmp_path)
        try:
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(ConfigError, match=r"cannot be used .* check bus\.credentials"):
                    await bus.check()
        finally:
            await bus.close()
