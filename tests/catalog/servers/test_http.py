"""Tokens that expire, and servers behind HTTP that misbehave."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from clew.access import Principal
from clew.catalog.servers import Hooks, McpServerConfig, ServerToken
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.connections.hooks import ServerHookChain
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.value_references import FromEnv, FromSecret
from clew.errors import ServerError
from clew.trail.store import Trail

from .conftest import PATIENCE, Opened
from .fixtures.guarded import Guarded


@asynccontextmanager
async def served(guarded: Guarded) -> AsyncIterator[str]:
    """The server on a free port of this machine."""
    running = uvicorn.Server(uvicorn.Config(guarded.app, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(running.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await asyncio.wait_for(task, PATIENCE)


def web(url: str, auth: Auth = Auth(type="oauth", client_id="clew")) -> McpServerConfig:  # noqa: B008  # frozen
    return McpServerConfig(id="web", transport="http", url=url, auth=auth, timeout_seconds=PATIENCE)


@pytest.mark.req("PLA-24")
async def test_an_expired_token_is_renewed_once_and_the_request_sent_again() -> None:
    guarded, refreshed = Guarded(valid="first"), []

    async def first(server: str) -> ServerToken:
        return ServerToken("first")

    async def renew(server: str, expired: ServerToken) -> ServerToken:
        refreshed.append((server, expired.value))
        return ServerToken("second")

    async with served(guarded) as url:
        connection = ServerConnection(web(url), hooks=ServerHookChain(Hooks(on_auth=first, on_auth_refresh=renew)))
        await connection.call_tool("work", {})
        assert refreshed == []
        guarded.valid = "second"
        results = await asyncio.gather(*(connection.call_tool("work", {}) for _ in range(5)))
        assert [result.content[0].text for result in results] == ["worked"] * 5
        assert refreshed == [("web", "first")]
        assert guarded.calls == 6
        await connection.close()


@pytest.mark.req("PLA-24")
async def test_a_token_that_stays_refused_is_not_tried_for_ever() -> None:
    guarded, refreshed = Guarded(valid="something else"), []

    async def renew(server: str, expired: ServerToken) -> ServerToken:
        refreshed.append(expired.value)
        return ServerToken(f"{expired.value}!")

    async with served(guarded) as url:
        config = web(url, Auth(type="bearer", token=FromEnv("WEB_TOKEN")))
        connection = ServerConnection(
            config, hooks=ServerHookChain(Hooks(on_auth_refresh=renew)), environ={"WEB_TOKEN": "wrong-token"}
        )
        with pytest.raises(ServerError, match=r"refused our token \(HTTP 401\).*Set auth.token of web") as error:
            await connection.about()
        assert "wrong-token" not in str(error.value)
        assert len(refreshed) <= len(guarded.seen) / 2
        await connection.close()


async def test_a_token_comes_from_the_secrets_of_the_trail(open_with: Opened, meaning: Trail, me: Principal) -> None:
    await meaning.secrets.put("web-token", "from-the-trail", by=me)
    async with served(Guarded(valid="from-the-trail")) as url:
        registry = await open_with()
        await registry.servers.add(web(url, Auth(type="bearer", token=FromSecret("web-token"))))
        assert [entry.name for entry in registry.entries("web")] == ["work"]
        await registry.close()


async def test_no_token_goes_to_a_server_that_needs_none() -> None:
    async def token(server: str) -> ServerToken:
        return ServerToken("precious")

    guarded = Guarded()
    async with served(guarded) as url:
        connection = ServerConnection(web(url, Auth()), hooks=ServerHookChain(Hooks(on_auth=token)))
        await connection.call_tool("work", {})
        await connection.close()
    assert set(guarded.seen) == {""}


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("huge", "sent a message of over 8,000,000 bytes"),
        ("packed", "sent a compressed answer, but an uncompressed one was requested"),
        ("fails", "answered with HTTP status 500"),
        ("page", "refused tools/call"),
    ],
)
async def test_a_bad_answer_is_a_sentence_and_the_next_call_works(mode: str, said: str) -> None:
    guarded = Guarded(mode=mode)
    async with served(guarded) as url:
        connection = ServerConnection(web(url, Auth()))
        with pytest.raises(ServerError, match=f"^web: {said}"):
            await connection.call_tool("work", {})
        guarded.mode = ""
        assert (await connection.call_tool("work", {})).content[0].text == "worked"
        await connection.close()


@pytest.mark.parametrize("inner", ["http://169.254.169.254/latest/meta-data/", "http://[::1]:1/", ""])
async def test_a_server_cannot_send_us_or_our_token_elsewhere(inner: str) -> None:
    guarded, other = Guarded(valid="precious", mode="redirect"), Guarded()
    async with served(guarded) as url, served(other) as elsewhere:
        guarded.elsewhere = inner or elsewhere
        config = web(url, Auth(type="bearer", token=FromEnv("WEB_TOKEN")))
        connection = ServerConnection(config, environ={"WEB_TOKEN": "precious"})
        with pytest.raises(ServerError, match=r"^web: ") as error:
            await connection.call_tool("work", {})
        assert "precious" not in str(error.value)
        guarded.mode = ""
        assert (await connection.call_tool("work", {})).content[0].text == "worked"
        await connection.close()
    assert other.seen == []


async def test_a_server_that_goes_away_in_the_middle_is_reported_and_found_again() -> None:
    guarded = Guarded()
    async with served(guarded) as url:
        connection = ServerConnection(web(url, Auth()))
        await connection.call_tool("work", {})
    with pytest.raises(ServerError, match="web: "):
        await connection.call_tool("work", {})
    await connection.close()


def test_a_token_does_not_show_itself() -> None:
    config = web("https://user:pass@example.com/mcp?key=hush", Auth(type="bearer", token=FromEnv("X")))
    assert "precious" not in repr(ServerToken("precious"))
    assert repr(config) == "McpServerConfig(web, http, example.com)"
