"""MCP over streamable HTTP in the REST server, with the same tokens and principals.

The stateless era needs no session. A session of the handshake era belongs to the principal that opened it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from clew.access import Principal
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.adapters.mcp.server import Context, build_server
from clew.adapters.rest.auth import Keys
from clew.adapters.rest.errors import RestProblem, error_response
from clew.errors import NotAuthenticated

PATH = "/mcp"
_NAMES = ("127.0.0.1", "localhost", "[::1]")
LOCAL_HOSTS = tuple(f"{name}{port}" for name in _NAMES for port in ("", ":*"))
LOCAL_ORIGINS = tuple(f"http://{host}" for host in LOCAL_HOSTS)
MAX_SESSIONS = 1_000
MAX_SESSIONS_EACH = 50
"""The limit for open sessions of one principal, so that none can use up all."""

_PRINCIPAL = "clew.principal"


def build_mcp_app(
    catalog: CatalogInterface,
    keys: Keys,
    *,
    hosts: Sequence[str] = LOCAL_HOSTS,
    origins: Sequence[str] = LOCAL_ORIGINS,
    max_body: int = DEFAULT_MAX_REQUEST_BODY_SIZE,
) -> McpApp:
    """Build an ASGI application over a catalog, for the route /mcp. It serves while its context manager `running` is
    open."""
    server = build_server(catalog, principal_of)
    return McpApp(server, keys, hosts=hosts, origins=origins, max_body=max_body)


def principal_of(context: Context) -> Principal:
    """Return the principal of a request's token."""
    assert context.request is not None, "every request over HTTP has one"
    principal: Principal = context.request.scope[_PRINCIPAL]
    return principal


class McpApp:
    """Checks the token, then hands the request to the session manager.

    `hosts` and `origins` are the accepted Host and Origin headers, `:*` for any port. They prevent DNS rebinding by
    pages of other sites.
    """

    def __init__(
        self, server: Server[Any], keys: Keys, *, hosts: Sequence[str], origins: Sequence[str], max_body: int
    ) -> None:
        self._keys = keys
        self._is_open = False
        self._manager = _Sessions(
            app=server,
            security_settings=TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=list(origins)),
            max_request_body_size=max_body,
            max_sessions=MAX_SESSIONS,
        )

    @contextlib.asynccontextmanager
    async def running(self, closing: asyncio.Event | None = None) -> AsyncIterator[None]:
        """Serve while the context is open, once only. When `closing` is set, sessions and their streams end at once."""
        ready, stop = asyncio.Event(), closing or asyncio.Event()
        # A separate task: the manager must be entered and left in one task, and may be left before the context is.
        task = asyncio.create_task(self._run(ready, stop))
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            waiting.cancel()
            stop.set()
            await task

    async def _run(self, ready: asyncio.Event, stop: asyncio.Event) -> None:
        async with self._manager.run():
            self._is_open = True
            ready.set()
            await stop.wait()
            self._is_open = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["clew.path"] = PATH  # the label in the metrics of the REST server
        # The parser leaves whitespace around header values, and the SDK compares them exactly.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]

        async def send_own(message: Message) -> None:
            # All responses of the SDK share one list of headers; code that adds a header needs a copy.
            if message["type"] == "http.response.start":
                message = {**message, "headers": list(message["headers"])}
            await send(message)

        refusal = self._refuse(scope)
        try:
            await (refusal or self._manager.handle_request)(scope, receive, send_own)
        except _TooManySessions:
            await _too_many_sessions()(scope, receive, send_own)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the response to a refused request; else store the principal in the scope and return None."""
        if not self._is_open:
            return error_response(
                503, RestProblem(code="closing", message="the server is stopping", hint="Try again soon")
            )
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        has_token = kind.lower() == "bearer"
        try:
            if not has_token:
                raise NotAuthenticated("this needs a token")
            caller = self._keys.verify(token.strip())
        except NotAuthenticated as error:
            problem = RestProblem(code="not_authenticated", message=error.message, hint=error.hint)
            challenge = 'Bearer error="invalid_token"' if has_token else "Bearer"
            return error_response(401, problem, {"www-authenticate": challenge})
        scope[_PRINCIPAL] = caller.principal
        scope["user"] = _session_owner(caller.principal)
        return None


class _TooManySessions(Exception):
    """A principal has reached its limit of open sessions."""


class _Sessions(StreamableHTTPSessionManager):
    """The sessions of all principals, with a limit for each."""

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Check the limit of a principal before a session is created. Raises _TooManySessions."""
        if sum(owner == requestor for owner in self._session_owners.values()) >= MAX_SESSIONS_EACH:
            raise _TooManySessions
        return super()._admit_session(requestor)


def _too_many_sessions() -> Response:
    message = f"you have {MAX_SESSIONS_EACH} open sessions, which is the limit"
    hint = "End one with DELETE, or use the protocol 2026-07-28, which needs none"
    return error_response(429, RestProblem(code="too_many_sessions", message=message, hint=hint))


def _session_owner(principal: Principal) -> AuthenticatedUser:
    """Convert the principal for the session manager, without the token."""
    whole = msgspec.json.encode(principal, order="deterministic").decode()
    return AuthenticatedUser(AccessToken(token="", client_id=principal.owner_id, scopes=[], subject=whole))
