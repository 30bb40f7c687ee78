"""Logging in to a server and out again, for the person at this machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec

from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.login.browser import LoopbackBrowser
from clew.catalog.servers.login.login_store import Login, secret_name
from clew.catalog.servers.login.vault import MemoryVault, Vault
from clew.errors import ConfigError, NotFound, ServerError

REST_SECONDS = 60.0
"""Seconds for discovery, registration and the token exchange, without the time of the person."""


async def log_in(
    config: McpServerConfig, vault: Vault, show: Callable[[str], Awaitable[None]], *, seconds: float = 300.0
) -> None:
    """Let a person agree that we use the server, and keep the tokens in the vault. `show` is given the address to open.

    An earlier login is replaced only if this one succeeds. Raises ServerError if the login is not completed within
    `seconds`, and ConfigError if the server is not configured for a login.
    """
    _check(config)
    draft, ports = MemoryVault(below=vault), _ports(config.auth, await _find(config.id, vault))
    patient = msgspec.structs.replace(config, timeout_seconds=seconds + REST_SECONDS)
    async with LoopbackBrowser(show, ports=ports, seconds=seconds) as browser:
        connection = ServerConnection(patient, vault=draft, browser=browser)
        try:
            await connection.about()
        finally:
            await connection.close()
    made = await _find(config.id, draft)
    if made is None or made.tokens is None:
        raise ServerError(config.id, "did not ask for a login", hint='Remove "auth" from its entry in .clew/mcp.json')
    await vault.keep(secret_name(config.id), msgspec.json.encode(made).decode())


async def log_out(server: str, vault: Vault) -> bool:
    """Forget the login of a server; False when there was none."""
    try:
        await vault.drop(secret_name(server))
    except NotFound:
        return False
    return True


def _check(config: McpServerConfig) -> None:
    if config.transport != "http" or config.auth.type != "oauth":
        error = ConfigError(f"server {config.id} is not set up for a login")
        error.hint = 'Give it a url and "auth": {"type": "oauth"} in .clew/mcp.json'
        raise error
    if not config.auth.asks_user:
        raise ConfigError(f"server {config.id} logs in by itself, with the credentials of its entry in .clew/mcp.json")


async def _find(server: str, vault: Vault) -> Login | None:
    try:
        return msgspec.json.decode(await vault.reveal(secret_name(server)), type=Login)
    except (NotFound, msgspec.DecodeError):
        return None


def _ports(auth: Auth, login: Login | None) -> tuple[int, ...]:
    """The port that the client was registered with, if it is known, since many servers insist on it."""
    if auth.redirect_port or auth.client_id:
        return (auth.redirect_port,)
    known = (login.client or {}).get("redirect_uris") if login is not None else None
    port = urlsplit(str(known[0])).port if known else None
    return (port, 0) if port else (0,)
