"""The result of a login to a server: tokens, the registered client, and the address for renewal. It is one secret of
the trail, read for each request, so that all processes of a folder share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from clew.catalog.servers.login.vault import Vault
from clew.errors import NotFound

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

EARLY_SECONDS = 10.0
"""Seconds before expiry at which a token is renewed."""

_CLIENT = {"client_id", "client_secret", "client_secret_expires_at", "redirect_uris", "token_endpoint_auth_method"}
_CLIENT |= {"grant_types", "scope", "issuer"}
_SERVER = {"issuer", "authorization_endpoint", "token_endpoint", "token_endpoint_auth_methods_supported"}
_RESOURCE = {"resource", "authorization_servers"}


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A login to the server at `url`. `wanted` are scopes that a call lacked; the next login requests them. The `repr`
    shows no secrets."""

    url: str
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    wanted: str = ""

    def __repr__(self) -> str:
        return "Login(…)"

    def is_worn(self, now: float) -> bool:
        """Whether its access token has expired or is about to."""
        return self.expires_at is not None and now >= self.expires_at - EARLY_SECONDS


def secret_name(server: str) -> str:
    return f"mcp-oauth-{server}"


class LoginStore:
    """The login of one server in a vault. It is also the storage that the SDK's providers write to."""

    def __init__(self, server: str, url: str, vault: Vault, now: Callable[[], float]) -> None:
        self.server = server
        self.url = url
        self.now = now
        self._vault = vault

    async def read(self) -> Login:
        """The stored login; an empty one if there is none or it is for another address, so that no other server gets
        its tokens."""
        empty = Login(url=self.url)
        try:
            login = msgspec.json.decode(await self._vault.reveal(secret_name(self.server)), type=Login)
        except (NotFound, msgspec.DecodeError):
            return empty
        return login if login.url == self.url else empty

    async def change(self, **fields: Any) -> Login:
        """Replace some fields of the stored login."""
        login = msgspec.structs.replace(await self.read(), **fields)
        await self._vault.keep(secret_name(self.server), msgspec.json.encode(login).decode())
        return login

    async def remember_places(self, context: OAuthContext) -> None:
        """Store the endpoints that issued the tokens, so that any process can renew them without discovery."""
        server, resource = context.oauth_metadata, context.protected_resource_metadata
        await self.change(
            server=server and server.model_dump(mode="json", include=_SERVER, exclude_none=True),
            resource=resource and resource.model_dump(mode="json", include=_RESOURCE, exclude_none=True),
            wanted="",
        )

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken  # loaded with the SDK

        login = await self.read()
        return None if login.tokens is None else OAuthToken.model_validate(login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at = None if tokens.expires_in is None else self.now() + tokens.expires_in
        await self.change(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=expires_at)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        login = await self.read()
        return None if login.client is None else OAuthClientInformationFull.model_validate(login.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self.change(client=client_info.model_dump(mode="json", include=_CLIENT, exclude_none=True))
