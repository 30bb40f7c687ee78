"""One entry of the route table, and the ASGI application built from it: authenticate, parse, call, answer.

The table is the only source for routing, role checks, metrics labels and the OpenAPI document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from clew.access import Principal
from clew.adapters.rest.auth import Keys, VerifiedCaller, bearer_token, is_bearer
from clew.adapters.rest.parsing import body_decoder, check_content_type, query_decoder, read_body
from clew.catalog.workspace.workspace import Workspace
from clew.clock import Clock
from clew.errors import ClewError, NotAuthenticated
from clew.llm.model import Models
from clew.team.router import Router
from clew.team.team import Team
from clew.telemetry.metrics import Metrics
from clew.trail.store import HygieneStats, Purged, Trail

Guard = Literal["open", "credential", "token", "stream"]
"""The authentication of a route: none, the issuing credential, a token, or a token for streams."""

JSON = b"application/json"
NOBODY = Principal(owner_id="", roles=frozenset())
_encode = msgspec.json.Encoder().encode


class Sweeper(Protocol):
    """The part of hygiene that REST uses."""

    async def run(self) -> Purged: ...

    def stats(self) -> HygieneStats: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts that routes use. `operator` is the owner that runs the server. `closing` is set when the server begins
    to stop. `refresh_webhooks` notifies the sender that subscriptions or dead letters have changed. `set_up` prepares
    the trail for an owner before its first call. `workspace` builds the workspace at the first call. `models` are those
    of the agents that run here, None if no agents run. `router` chooses the agent for a message, `team` opens the team,
    `agent` answers messages that name no agent. `is_draining` says whether this process is about to end."""

    trail: Trail
    keys: Keys
    clock: Clock
    hygiene: Sweeper
    metrics: Metrics
    operator: str
    max_body: int
    allow_networks: Sequence[str]
    refresh_webhooks: Callable[[], None]
    set_up: Callable[[str], Awaitable[None]]
    workspace: Callable[[], Awaitable[Workspace]]
    models: Models | None
    router: Router
    team: Callable[[], Awaitable[Team]] | None
    agent: str
    closing: asyncio.Event
    operations: Sequence[RestOperation]
    is_draining: Callable[[], bool]


@dataclass(slots=True)
class RestCall:
    """One request, checked and parsed."""

    services: Services
    caller: VerifiedCaller | None
    path: dict[str, str]
    headers: dict[bytes, bytes]
    query: Any
    body: Any

    @property
    def trail(self) -> Trail:
        return self.services.trail

    @property
    def by(self) -> Principal:
        """The principal of the token; on open routes one without any role."""
        return self.caller.principal if self.caller else NOBODY


class RestReply:
    """A finished answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        body: bytes,
        *,
        status: int = 200,
        media: bytes = JSON,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        length = str(len(body)).encode()
        self.status = status
        self.body = body
        self.headers = [(b"content-type", media), (b"content-length", length), *headers]

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = scope.get("clew.whole_answer")
        if whole is not None and whole.is_possible:
            self.headers.append(scope["clew.mark"](self.status))
            whole.write(self.status, self.headers, self.body)
            return
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self.body})


class EmptyReply(RestReply):
    """An answer without a body."""

    __slots__ = ()

    def __init__(self, status: int = 204) -> None:
        self.status, self.body = status, b""
        self.headers = [] if status == 204 else [(b"content-length", b"0")]


class RestAnswer(Protocol):
    """The result of a handler: a reply, or a stream."""

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def reply(value: Any, *, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> RestReply:
    """A value as JSON."""
    return RestReply(_encode(value), status=status, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """A request header that an operation reads, for the document."""

    name: str
    description: str
    pattern: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOperation:
    """One method of one path. `writes` is true if it changes the trail, `streams` if it may answer with a stream of
    events. `raises` and `refuses` list additional errors and statuses, beyond those of every operation and those that
    follow from its guard, path, parameters, body and writing; `openapi.statuses_of` adds these."""

    method: str
    path: str
    handler: Callable[[RestCall], Awaitable[RestAnswer]]
    summary: str
    group: str
    guard: Guard = "token"
    verb: str = ""
    writes: bool = False
    query: type[msgspec.Struct] | None = None
    body: Any = None
    is_body_needed: bool = True
    answer: Any = None
    status: int = 200
    media: str = "application/json"
    streams: bool = False
    headers: tuple[RequestHeader, ...] = ()
    raises: tuple[type[ClewError], ...] = ()
    refuses: tuple[int, ...] = ()


class Endpoint:
    """All operations of one path as an ASGI application. Errors leave it as exceptions."""

    def __init__(self, path: str, operations: Sequence[RestOperation], services: Services) -> None:
        self._path = path
        self._services = services
        self._methods = {each.method: _prepare(each) for each in operations}
        if "GET" in self._methods:
            self._methods["HEAD"] = self._methods["GET"]
        self._allow = ", ".join(sorted(self._methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["clew.path"] = self._path
        prepared = self._methods.get(scope["method"])
        if prepared is None:
            raise HTTPException(405, f"{self._path} has no {scope['method']}", headers={"allow": self._allow})
        operation, parse_query, parse_body = prepared
        headers = dict(scope["headers"])
        caller = _identify(operation, headers, lambda: parse_query(scope["query_string"]), self._services.keys)
        if caller is not None:
            await self._services.set_up(caller.principal.owner_id)
        query, body = parse_query(scope["query_string"]), None
        if parse_body is not None:
            if operation.is_body_needed or headers.get(b"content-length", b"0") != b"0":
                check_content_type(headers)
            content = await read_body(headers, receive, self._services.max_body)
            body = parse_body(content if content or operation.is_body_needed else b"{}")
        call = RestCall(self._services, caller, scope["path_params"], headers, query, body)
        answer = await operation.handler(call)
        await answer.send(scope, receive, send)


_Prepared = tuple[RestOperation, Callable[[bytes], Any], Callable[[bytes], Any] | None]


def _prepare(operation: RestOperation) -> _Prepared:
    parse_body = body_decoder(operation.body) if operation.body is not None else None
    return operation, query_decoder(operation.query), parse_body


def _identify(
    operation: RestOperation, headers: dict[bytes, bytes], query: Callable[[], Any], keys: Keys
) -> VerifiedCaller | None:
    """Return the authenticated caller, after a check of the permission for the operation. Raises NotAuthenticated or
    AccessDenied. Only a stream accepts a token in the query, because browsers cannot send a header there. Servers and
    browsers may log a query, so this token is short-lived and valid only for streams.
    """
    if operation.guard == "open":
        return None
    if operation.guard == "credential":
        given = headers.get(b"x-clew-credential") or bearer_token(headers.get(b"authorization", b""))
        keys.check_credential(given.decode("latin-1"))
        return None
    header = headers.get(b"authorization", b"")
    if is_bearer(header):
        caller = keys.verify_header(header)
    elif operation.guard == "stream" and (given_token := query().token):
        caller = keys.verify_for_stream(given_token)
    else:
        raise NotAuthenticated("this needs a token")
    caller.principal.require(operation.verb)
    return caller
