"""The values that start a server, with every reference resolved. They live only as long as the start."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.hooks import ServerToken
from clew.catalog.servers.value_references import Reveal, Value, resolve


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """The command, environment, address, headers and client credentials, with references resolved. `secrets` are the
    values that came from a reference."""

    command: tuple[str, ...]
    env: dict[str, str]
    url: str
    headers: dict[str, str]
    client_secret: str
    private_key: str
    secrets: frozenset[str]

    def __repr__(self) -> str:
        return "Values(…)"


async def resolve_values(config: McpServerConfig, environ: Mapping[str, str], reveal: Reveal) -> Values:
    """Raises ConfigError for a variable or secret that is not set."""
    place = f"server {config.id}"
    secrets: set[str] = set()

    async def look_up(value: Value, where: str) -> str:
        found = await resolve(value, f"{place}: {where}", environ, reveal)
        if found != value or where.startswith("headers."):
            secrets.add(found)
        return found

    auth = config.auth
    return Values(
        command=tuple([await look_up(part, "args") for part in config.command]),
        env={key: await look_up(value, f"env.{key}") for key, value in config.env.items()},
        url=await look_up(config.url, "url"),
        headers={key: await look_up(value, f"headers.{key}") for key, value in config.extra_headers.items()},
        client_secret=await look_up(auth.client_secret or "", "auth.client_secret"),
        private_key=await look_up(auth.private_key or "", "auth.private_key"),
        secrets=frozenset(secrets),
    )


async def resolve_token(config: McpServerConfig, environ: Mapping[str, str], reveal: Reveal) -> ServerToken | None:
    """Raises ConfigError for a variable or secret that is not set."""
    if config.auth.type == "none" or config.auth.token is None:
        return None
    return ServerToken(await resolve(config.auth.token, f"server {config.id}: auth.token", environ, reveal))
