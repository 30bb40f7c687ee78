"""Logging in to a server with OAuth: the flow, tokens that expire or are revoked, and where they must not show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthMetadata

from clew.access import Principal
from clew.catalog.servers import Hooks, McpServerConfig, ServerRegistry, ServerToken, open_registry
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.login.auth_settings import Auth, parse_auth, written_auth
from clew.catalog.servers.login.login import log_in, log_out
from clew.catalog.servers.login.login_store import Login, LoginStore, secret_name
from clew.catalog.servers.login.oauth import Credentials, NewLogin
from clew.catalog.servers.login.vault import MemoryVault, TrailVault
from clew.catalog.servers.value_references import FromEnv, FromSecret
from clew.clock import ManualClock
from clew.errors import ClewError, ConfigError, NotFound, ServerError
from clew.trail.store import Trail

from .conftest import PATIENCE, Opened
from .fixtures.authority import Authority, running_authority

BROWSER_LOGS = ("httpx", "httpcore")
"""The HTTP client of the simulated browser; Clew's own client is separate."""


@pytest.fixture
def authority() -> Iterator[Authority]:
    with running_authority() as one:
        yield one


def config_of(authority: Authority, **more: Any) -> McpServerConfig:
    auth = Auth(type="oauth", **more)
    return McpServerConfig(id="notes", transport="http", url=authority.url, auth=auth, timeout_seconds=PATIENCE)


async def agree(address: str) -> None:
    """The actions of a person at a browser."""
    async with httpx.AsyncClient(follow_redirects=True) as browser:
        answer = await browser.get(address)
    assert "close this window" in answer.text


async def called(connection: ServerConnection) -> str:
    return str((await connection.call_tool("work", {})).content[0].text)


@pytest.fixture
async def logged_in(authority: Authority, meaning: Trail, me: Principal) -> McpServerConfig:
    config = config_of(authority)
    await log_in(config, TrailVault(meaning, me), agree, seconds=PATIENCE)
    return config


def connect(config: McpServerConfig, trail: Trail, by: Principal, **more: Any) -> ServerConnection:
    return ServerConnection(config, vault=TrailVault(trail, by), **more)


@pytest.mark.req("PLA-24")
async def test_a_login_is_made_once_and_used_by_every_connection(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig, open_with: Opened
) -> None:
    assert await meaning.secrets.names(by=me) == ["mcp-oauth-notes"]
    registry: ServerRegistry = await open_with()
    await registry.servers.add(logged_in)
    assert [entry.name for entry in registry.entries("notes")] == ["work"]
    results = await asyncio.gather(*(registry.tools.execute("notes", "work", {}) for _ in range(5)))
    assert [result.content[0].text for result in results] == ["worked"] * 5
    assert [each["grant_type"] for each in authority.said] == ["authorization_code"]
    assert authority.asked_scopes == ["notes"]
    (client,) = authority.registered.values()
    assert (client["client_name"], client["application_type"]) == ("Clew", "native")


@pytest.mark.req("PLA-24")
async def test_without_a_login_a_call_names_the_command_and_asks_nobody(
    authority: Authority, meaning: Trail, me: Principal
) -> None:
    connection = connect(config_of(authority), meaning, me)
    for _ in range(3):
        with pytest.raises(ServerError) as error:
            await connection.call_tool("work", {})
        assert str(error.value) == "notes: needs a login. Run `clew mcp login notes`"
    assert (authority.refused, authority.registered, connection.starts) == (0, {}, 0)
    await connection.close()


@pytest.mark.req("PLA-24")
async def test_a_token_that_was_refused_is_renewed_once_for_all_calls(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    connection = connect(logged_in, meaning, me)
    assert await called(connection) == "worked"
    authority.expire()
    assert await asyncio.gather(*(called(connection) for _ in range(5))) == ["worked"] * 5
    assert [each["grant_type"] for each in authority.said] == ["authorization_code", "refresh_token"]
    assert authority.said[-1]["resource"] == authority.url
    await connection.close()


async def test_a_token_that_is_about_to_expire_is_renewed_before_it_is_used(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    refused, soon = authority.refused, ManualClock(datetime.now(UTC) + timedelta(seconds=authority.expires_in - 5))
    connection = connect(logged_in, meaning, me, clock=soon)
    assert await called(connection) == "worked"
    assert authority.refused == refused
    assert "refresh_token" in [each["grant_type"] for each in authority.said]
    await connection.close()


async def test_a_token_that_another_process_renewed_is_used(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    first, second = connect(logged_in, meaning, me), connect(logged_in, meaning, me)
    assert [await called(first), await called(second)] == ["worked"] * 2
    authority.expire()
    assert [await called(first), await called(second)] == ["worked"] * 2
    assert [each["grant_type"] for each in authority.said] == ["authorization_code", "refresh_token"]
    await first.close()
    await second.close()


@pytest.mark.req("PLA-24")
async def test_a_revoked_login_is_reported_with_the_command_and_a_new_one_works_at_once(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    connection = connect(logged_in, meaning, me)
    assert await called(connection) == "worked"
    authority.revoke()
    with pytest.raises(ServerError, match=r"^notes: the login has ended.*Run `clew mcp login notes`$"):
        await called(connection)
    late = connect(logged_in, meaning, me)
    with pytest.raises(ServerError, match=r"^notes: needs a login.*Run `clew mcp login notes`$"):
        await called(late)
    await log_in(logged_in, TrailVault(meaning, me), agree, seconds=PATIENCE)
    assert [await called(connection), await called(late)] == ["worked"] * 2
    assert len(authority.registered) == 1
    await connection.close()
    await late.close()


async def test_a_revoked_login_is_reported_when_a_connection_is_opened(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    authority.revoke()
    connection = connect(logged_in, meaning, me)
    with pytest.raises(ServerError, match=r"^notes: the login has ended.*Run `clew mcp login notes`$"):
        await called(connection)
    await connection.close()


async def test_a_login_outlives_an_authorization_server_that_fails(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    authority.expire()
    authority.broken = 503
    connection = connect(logged_in, meaning, me)
    with pytest.raises(ServerError, match=r"^notes: the login could not be renewed \(HTTP 503\). Try again later"):
        await called(connection)
    authority.broken = 0
    assert await called(connection) == "worked"
    await connection.close()


async def test_a_scope_that_a_call_lacked_is_asked_for_at_the_next_login(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    authority.lacks = "notes:write"
    connection = connect(logged_in, meaning, me)
    with pytest.raises(ServerError, match=r'the login lacks the scope "notes:write". Run `clew mcp login notes`'):
        await called(connection)
    await log_in(logged_in, TrailVault(meaning, me), agree, seconds=PATIENCE)
    assert set(authority.asked_scopes[-1].split()) == {"notes", "notes:write"}
    assert await called(connection) == "worked"
    await connection.close()


async def test_scopes_of_the_configuration_are_asked_for_instead_of_those_of_the_server(
    authority: Authority, meaning: Trail, me: Principal
) -> None:
    config = config_of(authority, scopes=("read", "list"))
    await log_in(config, TrailVault(meaning, me), agree, seconds=PATIENCE)
    assert authority.asked_scopes == ["read list"]


async def test_a_login_goes_to_no_other_address(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig
) -> None:
    moved = msgspec.structs.replace(logged_in, url=f"{authority.base}/other/mcp")
    connection = connect(moved, meaning, me)
    with pytest.raises(ServerError, match="needs a login"):
        await called(connection)
    await connection.close()


@pytest.mark.parametrize(
    ("refusal", "broken", "said"),
    [
        ("access_denied", 0, r"the login was refused \(access_denied\)"),
        ("", 500, r"the login failed: Token exchange failed \(500\)"),
    ],
)
async def test_a_login_that_fails_leaves_the_earlier_one(
    authority: Authority,
    meaning: Trail,
    me: Principal,
    logged_in: McpServerConfig,
    refusal: str,
    broken: int,
    said: str,
) -> None:
    authority.refusal, authority.broken = refusal, broken
    with pytest.raises(ServerError, match=said):
        await log_in(logged_in, TrailVault(meaning, me), agree, seconds=PATIENCE)
    authority.refusal, authority.broken = "", 0
    connection = connect(logged_in, meaning, me)
    assert await called(connection) == "worked"
    await connection.close()


async def test_an_answer_without_the_state_is_refused(authority: Authority, meaning: Trail, me: Principal) -> None:
    said: list[int] = []

    async def attack_then_agree(address: str) -> None:
        callback = httpx.URL(address).params["redirect_uri"]
        async with httpx.AsyncClient(verify=False) as attacker:
            paths = ("?code=evil&state=guess", "?code=evil", "", "/../x?state=")
            answers = [await attacker.get(f"{callback}{path}") for path in paths]
            answers.append(await attacker.post(callback, params={"code": "evil"}))
        said.extend(each.status_code for each in answers)
        await agree(address)

    await log_in(config_of(authority), TrailVault(meaning, me), attack_then_agree, seconds=PATIENCE)
    assert said == [400] * 5
    assert "evil" not in [each.get("code") for each in authority.said]


async def test_a_login_without_approval_ends(authority: Authority, meaning: Trail, me: Principal) -> None:
    async def look_away(address: str) -> None:
        return None

    with pytest.raises(ServerError, match=r"^notes: the login was not approved in time"):
        await log_in(config_of(authority), TrailVault(meaning, me), look_away, seconds=0.05)
    assert await meaning.secrets.names(by=me) == []


async def test_a_server_that_wants_no_login_is_reported(meaning: Trail, me: Principal, sdk_url: str) -> None:
    config = McpServerConfig(
        id="open", transport="http", url=sdk_url, auth=Auth(type="oauth"), timeout_seconds=PATIENCE
    )
    with pytest.raises(ServerError, match=r'^open: did not ask for a login. Remove "auth" from'):
        await log_in(config, TrailVault(meaning, me), agree, seconds=PATIENCE)


async def test_a_server_with_tls_cannot_lead_a_login_to_where_there_is_none() -> None:
    class Unused:
        redirect_uri = "http://127.0.0.1:1/callback"

        async def visit(self, address: str) -> dict[str, str]:
            raise AssertionError("nobody is asked")

    store = LoginStore("notes", "https://notes.example.com/mcp", MemoryVault(), lambda: 0.0)
    login = NewLogin(Auth(type="oauth"), Credentials(), store, Unused())
    plain = "http://notes.example.com"
    login.context.oauth_metadata = OAuthMetadata.model_validate(
        {"issuer": plain, "authorization_endpoint": f"{plain}/a", "token_endpoint": f"{plain}/t"}
    )
    with pytest.raises(OAuthFlowError, match="without TLS"):
        await login._perform_authorization()


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        (Auth(), "is not set up for a login"),
        (Auth(type="oauth", grant="client_credentials"), "logs in by itself"),
    ],
)
async def test_a_server_that_is_not_set_up_for_a_login_is_refused(auth: Auth, said: str) -> None:
    config = McpServerConfig(id="other", transport="http", url="http://127.0.0.1:1/mcp", auth=auth)
    with pytest.raises(ConfigError, match=said):
        await log_in(config, MemoryVault(), agree, seconds=PATIENCE)


async def test_the_token_of_a_hook_comes_before_a_login(authority: Authority, meaning: Trail, me: Principal) -> None:
    async def token(server: str) -> ServerToken:
        return ServerToken("from-the-hook")

    registry = await open_registry(meaning, [config_of(authority)], by=me, hooks=[Hooks(on_auth=token)])
    with pytest.raises(ServerError, match=r"refused our token \(HTTP 401\)"):
        await registry.connection("notes").about()
    assert authority.registered == {}
    await registry.close()


@pytest.mark.req("PLA-24")
async def test_tokens_are_in_no_record_file_log_or_repr(
    authority: Authority,
    meaning: Trail,
    me: Principal,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    config, vault, told = config_of(authority), TrailVault(meaning, me), []
    await log_in(config, vault, agree, seconds=PATIENCE)
    registry = await open_registry(meaning, [config], by=me)
    await registry.refresh("notes")
    for turn in (authority.expire, authority.revoke):
        turn()
        try:
            told.append(str(await registry.tools.execute("notes", "work", {})))
        except ClewError as error:
            told += [str(error), repr(error)]
    authority.broken = 400
    with pytest.raises(ServerError) as failed:
        await log_in(config, vault, agree, seconds=PATIENCE)
    authority.broken = 0
    await log_in(config, vault, agree, seconds=PATIENCE)
    login = msgspec.json.decode(await meaning.secrets.reveal(secret_name("notes"), by=me), type=Login)
    told += [
        str(failed.value),
        repr(login),
        repr(config),
        repr(registry),
        repr(vault),
        repr(registry.connection("notes")),
    ]
    await registry.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    logged = "\n".join(each.getMessage() for each in caplog.records if each.name.split(".")[0] not in BROWSER_LOGS)
    assert len(authority.issued) >= 10
    for secret in authority.issued:
        assert secret not in logged
        assert secret not in "\n".join(told)
        assert secret.encode() not in kept


async def test_logging_out_and_removing_a_server_forget_the_login(
    authority: Authority, meaning: Trail, me: Principal, logged_in: McpServerConfig, open_with: Opened
) -> None:
    assert await log_out("notes", TrailVault(meaning, me)) is True
    assert await log_out("notes", TrailVault(meaning, me)) is False
    await log_in(logged_in, TrailVault(meaning, me), agree, seconds=PATIENCE)
    registry = await open_with(logged_in)
    await registry.servers.remove("notes")
    assert await meaning.secrets.names(by=me) == []
    with pytest.raises(NotFound):
        await TrailVault(meaning, me).reveal("mcp-oauth-notes")


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        ({"type": "oauth", "client_secret": "hush"}, r"auth\.client_secret has the value itself"),
        ({"type": "oauth", "grant": "magic"}, r"auth\.grant 'magic' is unknown.*authorization_code"),
        ({"type": "oauth", "scopes": "a b"}, r"scopes: must be a list, not text"),
        ({"type": "oauth", "redirect_port": 70_000}, "must be from 0 to 65535"),
        ({"type": "oauth", "client_metadata_url": "http://x/y"}, "must begin with https://"),
        ({"type": "oauth", "issuer": "x"}, r"auth\.issuer must begin with"),
        ({"type": "oauth", "grant": "client_credentials"}, r"needs auth\.client_id"),
        ({"type": "oauth", "grant": "client_credentials", "client_id": "a"}, r"needs auth\.issuer"),
        (
            {"type": "oauth", "grant": "client_credentials", "client_id": "a", "issuer": "https://x"},
            r"needs auth\.client_secret or auth\.private_key",
        ),
    ],
)
def test_settings_that_cannot_be_are_named(auth: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        parse_auth(auth, "server x")
    assert "hush" not in str(error.value)


def test_settings_are_written_as_they_were_read() -> None:
    given = {
        "type": "oauth",
        "client_id": "a",
        "client_secret": {"$env": "S"},
        "issuer": "https://auth.example.com",
        "scopes": ["read"],
        "grant": "client_credentials",
    }
    auth = parse_auth(given, "server x")
    assert (auth.client_secret, auth.asks_user) == (FromEnv("S"), False)
    assert msgspec.json.decode(msgspec.json.encode(written_auth(auth))) == given
    key = Auth(type="oauth", private_key=FromSecret("k"))
    assert written_auth(key)["private_key"] == {"$secret": "k"}


async def test_a_key_that_cannot_sign_is_refused_without_showing_it() -> None:
    auth = Auth(type="oauth", grant="client_credentials", client_id="a", issuer="https://x", private_key=FromEnv("KEY"))
    config = McpServerConfig(id="keyed", transport="http", url="http://127.0.0.1:1/mcp", auth=auth)
    connection = ServerConnection(config, environ={"KEY": "not-a-key"})
    with pytest.raises(ServerError, match=r"auth\.private_key is not an unlocked private key") as error:
        await connection.about()
    assert "not-a-key" not in str(error.value)
    assert "hush" not in repr(Credentials(secret="hush"))
    await connection.close()
