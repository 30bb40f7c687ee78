"""Hosts that a server may redirect a login to: public ones, and private ones only for a private server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthMetadata

from clew.catalog.servers import McpServerConfig
from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.login.login import log_in
from clew.catalog.servers.login.login_hosts import CheckedTransport, LoginHosts
from clew.catalog.servers.login.login_store import LoginStore
from clew.catalog.servers.login.oauth import Credentials, NewLogin
from clew.catalog.servers.login.vault import MemoryVault
from clew.errors import ServerError
from clew.trail.work.webhook_addresses import Resolve

from .conftest import PATIENCE
from .fixtures.authority import Authority, running_authority

PUBLIC = "8.8.8.8"


def names(known: Mapping[str, Sequence[str]]) -> Resolve:
    """Looks names up in a table."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        if host not in known:
            raise OSError("unknown host")
        return known[host]

    return resolve


@pytest.mark.parametrize(
    ("home", "address", "said"),
    [
        (PUBLIC, PUBLIC, ""),
        (PUBLIC, "127.0.0.1", "a loopback address"),
        (PUBLIC, "10.1.2.3", "a private address"),
        (PUBLIC, "192.168.0.1", "a private address"),
        (PUBLIC, "169.254.169.254", "a link-local address"),
        (PUBLIC, "::1", "a loopback address"),
        (PUBLIC, "fe80::1%eth0", "a link-local address"),
        (PUBLIC, "::ffff:127.0.0.1", "an IPv4-mapped address"),
        ("127.0.0.1", "127.0.0.1", ""),
        ("127.0.0.1", "10.1.2.3", ""),
        ("10.1.2.3", "169.254.169.254", "a link-local address"),
        ("169.254.1.1", "169.254.169.254", ""),
    ],
)
async def test_a_public_server_leads_to_public_hosts_only(home: str, address: str, said: str) -> None:
    known = {"mcp.example": [home], "login.example": [PUBLIC, address]}
    elsewhere = LoginHosts("https://mcp.example/mcp", names(known))
    _, refusal = await elsewhere.look_up("https://login.example/token")
    assert (said in refusal, bool(refusal)) == (True, bool(said))


class Listening:
    """A server of this machine that records the requested hosts."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    one = Listening()
    server = await asyncio.start_server(one.answer, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()
    await server.wait_closed()


async def ask(home: str, url: str, faults: Faults) -> str:
    known = {"mcp.example": [home], "login.example": ["127.0.0.1"]}
    elsewhere = LoginHosts("http://mcp.example/mcp", names(known))
    transport = CheckedTransport(httpx2.AsyncHTTPTransport(), elsewhere, faults)
    async with httpx2.AsyncClient(transport=transport) as client:
        return (await client.post(url, content=b"")).text


async def test_only_the_checked_address_is_contacted(listening: Listening) -> None:
    url, faults = f"http://login.example:{listening.port}/token", Faults()
    with pytest.raises(httpx2.ConnectError):
        await ask(PUBLIC, url, faults)
    assert listening.asked == []
    assert (
        faults.take_note()[0]
        == "redirects the login to a refused address: login.example is at 127.0.0.1, a loopback address"
    )
    assert await ask("127.0.0.1", url, faults) == "ok"  # no such name is known but to the table
    assert f"host: login.example:{listening.port}".encode() in listening.asked[0].lower()
    with pytest.raises(httpx2.ConnectError, match=r"unknown\.example has no address"):
        await ask(PUBLIC, "http://unknown.example/", faults)


@pytest.fixture
def authority() -> Iterator[Authority]:
    with running_authority() as one:
        yield one


@pytest.fixture
def public_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """`localhost` is treated as a host of the internet; no other name is resolved."""
    known = {"localhost": [PUBLIC], "127.0.0.1": ["127.0.0.1"], "login.example": [PUBLIC], "10.0.0.1": ["10.0.0.1"]}
    monkeypatch.setattr("clew.catalog.servers.login.login_hosts.resolve_host", names(known))


async def test_a_login_is_not_led_to_a_service_of_this_machine(authority: Authority, public_home: None) -> None:
    async def show(address: str) -> None:
        raise AssertionError("nobody is asked")

    url = authority.url.replace("127.0.0.1", "localhost")
    config = McpServerConfig(id="notes", transport="http", url=url, auth=Auth(type="oauth"), timeout_seconds=PATIENCE)
    with pytest.raises(ServerError) as told:
        await log_in(config, MemoryVault(), show, seconds=PATIENCE)
    assert "127.0.0.1 is at 127.0.0.1, a loopback address" in str(told.value)
    assert (authority.registered, authority.said) == ({}, [])


@pytest.mark.parametrize("place", ["authorization_endpoint", "token_endpoint"])
async def test_a_browser_is_not_led_to_a_private_address(public_home: None, place: str) -> None:
    class Unused:
        redirect_uri = "http://127.0.0.1:1/callback"

        async def visit(self, address: str) -> dict[str, str]:
            raise AssertionError("nobody is asked")

    store = LoginStore("notes", "http://localhost/mcp", MemoryVault(), lambda: 0.0)
    login = NewLogin(Auth(type="oauth"), Credentials(), store, Unused())
    good = "http://login.example/x"
    places = {"issuer": good, "authorization_endpoint": good, "token_endpoint": good, place: "http://10.0.0.1/x"}
    login.context.oauth_metadata = OAuthMetadata.model_validate(places)
    with pytest.raises(OAuthFlowError, match=r"10\.0\.0\.1, a private address"):
        await login._perform_authorization()
