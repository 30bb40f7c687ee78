"""OAuth on the HTTP transport: using and renewing a stored login, and making a new one with a person at a browser.
Discovery, registration, PKCE and the checks of issuer and resource are the SDK's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthClientProvider
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, PrivateAttr

import clew
from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.login.browser import Browser
from clew.catalog.servers.login.login_hosts import LoginHosts
from clew.catalog.servers.login.login_store import Login, LoginStore
from clew.errors import ConfigError, ServerError


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """The secret of the OAuth client. Its `repr` does not show it."""

    secret: str = ""
    private_key: str = ""

    def __repr__(self) -> str:
        return "Credentials(…)"


class _Metadata(OAuthClientMetadata):
    """The client metadata that we send. The SDK sets `scope` to the scopes that the server names. This class requests
    the configured scopes instead if there are any, and always adds those that an earlier call lacked."""

    _configured: str | None = PrivateAttr(default=None)
    _lacked: str | None = PrivateAttr(default=None)

    def ask_for(self, configured: str | None, lacked: str | None) -> None:
        self._configured, self._lacked = configured, lacked

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope":
            value = union_scopes(self._configured or value, self._lacked)
        super().__setattr__(name, value)


class _Provider(OAuthClientProvider):
    """The part that both kinds of login share: the client of the configuration, or the registered one."""

    def __init__(self, auth: Auth, credentials: Credentials, store: LoginStore, redirect_uri: str, **more: Any) -> None:
        self.auth = auth
        self.store = store
        self._credentials = credentials
        self._metadata = _Metadata(
            redirect_uris=[AnyUrl(redirect_uri)],
            client_name="Clew",
            software_id="clew",
            software_version=clew.__version__,
        )
        more["client_metadata_url"] = auth.client_metadata_url or None
        super().__init__(store.url, self._metadata, store, **more)

    def _client(self, login: Login) -> OAuthClientInformationFull | None:
        if not self.auth.client_id:
            return None if login.client is None else OAuthClientInformationFull.model_validate(login.client)
        return OAuthClientInformationFull(
            client_id=self.auth.client_id,
            client_secret=self._credentials.secret or None,
            redirect_uris=self._metadata.redirect_uris,
            token_endpoint_auth_method=self._method(login) if self._credentials.secret else "none",
            issuer=self.auth.issuer or None,
        )

    def _method(self, login: Login) -> str:
        """The authentication method for the client secret: the usual one unless the server supports only the other."""
        known = (login.server or {}).get("token_endpoint_auth_methods_supported")
        if self.context.oauth_metadata is not None:
            known = self.context.oauth_metadata.token_endpoint_auth_methods_supported
        basic, post = "client_secret_basic", "client_secret_post"
        return post if known and basic not in known and post in known else basic


class SavedLogin(_Provider):
    """Sends the token of the login that is stored, and renews it before or when it is refused. Requests wait for one
    another only during a renewal. It never prompts a person: `faults` records the step that the user must take."""

    def __init__(self, auth: Auth, credentials: Credentials, store: LoginStore, faults: Faults) -> None:
        super().__init__(auth, credentials, store, "http://127.0.0.1/callback")
        self._faults = faults

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        failed = 0
        async with self.context.lock:
            login = await self._load()
            if login.is_worn(self.store.now()) and self.context.can_refresh_token():
                answer = yield await self._refresh_token()
                failed = await self._take(answer)
        sent = self._show(request)
        response = yield request
        if response.status_code == 401:
            async with self.context.lock:
                await self._load()
                if self._token == sent and self.context.can_refresh_token():
                    answer = yield await self._refresh_token()
                    failed = await self._take(answer)
            if self._token and self._token != sent:
                self._show(request)
                response = yield request
        await self._judge(response, failed)

    @property
    def _token(self) -> str:
        return self.context.current_tokens.access_token if self.context.current_tokens else ""

    def _show(self, request: httpx2.Request) -> str:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return self._token

    async def _load(self) -> Login:
        login, context = await self.store.read(), self.context
        context.current_tokens = None if login.tokens is None else OAuthToken.model_validate(login.tokens)
        context.oauth_metadata = None if login.server is None else OAuthMetadata.model_validate(login.server)
        found = None if login.resource is None else ProtectedResourceMetadata.model_validate(login.resource)
        context.protected_resource_metadata = found
        context.client_info = self._client(login)
        return login

    async def _take(self, response: httpx2.Response) -> int:
        """Store new tokens. If the authorization server rejects the renewal, the login is dropped, unless another
        process has renewed it meanwhile. On a temporary error the login stays and the HTTP status is returned;
        otherwise 0."""
        if response.status_code >= 500 or response.status_code == 429:
            return response.status_code
        refused = self.context.current_tokens and self.context.current_tokens.refresh_token
        if not await self._handle_refresh_response(response):
            login = await self._load()
            if login.tokens is not None and login.tokens.get("refresh_token") == refused:
                await self.store.change(tokens=None, expires_at=None)
                await self._load()
        return 0

    async def _judge(self, response: httpx2.Response, failed: int) -> None:
        """Record the meaning of a refusal. `failed` is the HTTP status of a failed renewal, or 0."""
        hint = f"Run `clew mcp login {self.store.server}`"
        if response.status_code == 401 and failed:
            self._faults.refuse(f"the login could not be renewed (HTTP {failed})", "Try again later")
        elif response.status_code == 401:
            self._faults.refuse("the login has ended, or is not enough (HTTP 401)", hint)
        elif response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
            granted = self.context.current_tokens.scope if self.context.current_tokens else None
            lacked = extract_scope_from_www_auth(response)
            await self.store.change(wanted=union_scopes(granted, lacked) or "")
            self._faults.refuse(f'the login lacks the scope "{self._faults.plain(lacked or "")}"', hint)


class NewLogin(_Provider):
    """The complete flow, with a person's consent. It ignores stored tokens."""

    def __init__(self, auth: Auth, credentials: Credentials, store: LoginStore, browser: Browser) -> None:
        self._browser = browser
        self._address = ""
        handlers = {"redirect_handler": self._note_address, "callback_handler": self._ask}
        super().__init__(auth, credentials, store, browser.redirect_uri, **handlers)

    async def _initialize(self) -> None:
        login = await self.store.change(tokens=None, expires_at=None)
        client = self._client(login)
        is_ours = client is not None and AnyUrl(self._browser.redirect_uri) in (client.redirect_uris or ())
        self.context.client_info = client if is_ours else None
        self._metadata.ask_for(" ".join(self.auth.scopes) or None, login.wanted or None)
        self._initialized = True

    async def _perform_authorization(self) -> httpx2.Request:
        await self._check_places()
        if self.auth.client_id and self.context.client_info is not None and self._credentials.secret:
            self.context.client_info.token_endpoint_auth_method = self._method(Login(url=self.store.url))
        return await super()._perform_authorization()

    async def _check_places(self) -> None:
        """Check the login endpoints that the server names. A server that uses TLS may only name endpoints with TLS, and
        a public server may not send the browser to a private address. Raises OAuthFlowError."""
        found = self.context.oauth_metadata
        places = (str(found.authorization_endpoint), str(found.token_endpoint)) if found is not None else ()
        if self.store.url.startswith("https:") and not all(place.startswith("https:") for place in places):
            raise OAuthFlowError("The authorization server has an address without TLS")
        hosts = LoginHosts(self.store.url)
        for place in places:
            try:
                refusal = "" if hosts.is_home(place) else (await hosts.look_up(place))[1]
            except OSError:
                refusal = "one of its hosts has no address"
            if refusal:
                raise OAuthFlowError(f"The authorization server redirects to a refused address, since {refusal}")

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        await self.store.remember_places(self.context)

    async def _note_address(self, address: str) -> None:
        self._address = address

    async def _ask(self) -> AuthorizationCodeResult:
        try:
            answer = await self._browser.visit(self._address)
        except TimeoutError:
            raise ServerError(self.store.server, "the login was not approved in time") from None
        if "error" in answer:
            raise ServerError(self.store.server, f"the login was refused ({answer['error'][:60]})")
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss") or None
        )


def build_credentials_login(auth: Auth, credentials: Credentials, store: LoginStore) -> OAuthClientProvider:
    """A login without a person. Raises ConfigError for a key that cannot sign."""
    scope = " ".join(auth.scopes) or None
    if not credentials.private_key:
        return ClientCredentialsOAuthProvider(
            store.url, store, auth.client_id, credentials.secret, scope=scope, issuer=auth.issuer
        )
    signing = SignedJWTParameters(
        issuer=auth.client_id,
        subject=auth.client_id,
        signing_key=credentials.private_key,
        signing_algorithm=_algorithm(credentials.private_key, store.server),
    )
    return PrivateKeyJWTOAuthProvider(
        store.url, store, auth.client_id, signing.create_assertion_provider(), scope=scope, issuer=auth.issuer
    )


def _algorithm(pem: str, server: str) -> str:
    # imported only to sign
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        raise ConfigError(f"server {server}: auth.private_key is not an unlocked private key in PEM") from None
    match key:
        case rsa.RSAPrivateKey():
            return "RS256"
        case ec.EllipticCurvePrivateKey(curve=ec.SECP256R1()):
            return "ES256"
        case ed25519.Ed25519PrivateKey():
            return "EdDSA"
        case _:
            raise ConfigError(f"server {server}: auth.private_key must be RSA, P-256 or Ed25519")
