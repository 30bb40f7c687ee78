"""Hooks of a host around the exchange with a server: give tokens, see requests and answers, collect logs, stop a long
listing, and put questions of the server to the user. All are optional; several form a chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec


class ServerToken(msgspec.Struct, frozen=True):
    """A token. Its `repr` does not show it."""

    value: str

    def __repr__(self) -> str:
        return "ServerToken(…)"


class ServerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request before it is sent: the method of the protocol and its parameters."""

    server: str
    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An answer before it is used. `result` is the protocol's own object for the method."""

    server: str
    method: str
    result: Any


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A log message of a server: untrusted data."""

    server: str
    level: str
    logger: str
    data: Any


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a server to the user: untrusted text, and the JSON Schema of a flat object that answers it; or an
    address that the user should open."""

    server: str
    message: str
    schema: dict[str, Any] = {}
    url: str = ""


class Elicited(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer. Fields of the schema that are missing in `content` get their defaults."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Async functions, each optional.

    `on_auth(server)` gives a token or None; `on_auth_refresh(server, expired)` a new one for a token that was refused,
    and is called once for each. `on_request` and `on_response` give back what is sent and used. `on_paginate(server,
    cursor)` gives False to stop before the next page. `on_elicit` gives the user's answer, or None to leave it to the
    next hook; servers are told that they may ask only where there is such a hook.
    """

    on_auth: Callable[[str], Awaitable[ServerToken | None]] | None = None
    on_auth_refresh: Callable[[str, ServerToken], Awaitable[ServerToken | None]] | None = None
    on_request: Callable[[ServerRequest], Awaitable[ServerRequest]] | None = None
    on_response: Callable[[Response], Awaitable[Response]] | None = None
    on_log: Callable[[LogLine], Awaitable[None]] | None = None
    on_paginate: Callable[[str, str], Awaitable[bool]] | None = None
    on_elicit: Callable[[Elicitation], Awaitable[Elicited | None]] | None = None


class ServerHookChain:
    """Hooks one after another: the first token counts, requests and responses go through all, every log line reaches
    all, one `False` stops a listing, and the first answer of the user counts."""

    def __init__(self, *hooks: Hooks) -> None:
        self._hooks = hooks

    @property
    def can_ask(self) -> bool:
        """Whether the user can be asked anything."""
        return any(one.on_elicit is not None for one in self._hooks)

    async def token(self, server: str) -> ServerToken | None:
        for one in self._hooks:
            if one.on_auth is not None and (token := await one.on_auth(server)) is not None:
                return token
        return None

    async def new_token(self, server: str, expired: ServerToken) -> ServerToken | None:
        for one in self._hooks:
            if one.on_auth_refresh is not None and (token := await one.on_auth_refresh(server, expired)) is not None:
                return token
        return None

    async def request(self, request: ServerRequest) -> ServerRequest:
        for one in self._hooks:
            if one.on_request is not None:
                request = await one.on_request(request)
        return request

    async def response(self, response: Response) -> Response:
        for one in self._hooks:
            if one.on_response is not None:
                response = await one.on_response(response)
        return response

    async def log(self, line: LogLine) -> None:
        for one in self._hooks:
            if one.on_log is not None:
                await one.on_log(line)

    async def goes_on(self, server: str, cursor: str) -> bool:
        for one in self._hooks:
            if one.on_paginate is not None and not await one.on_paginate(server, cursor):
                return False
        return True

    async def elicit(self, question: Elicitation) -> Elicited:
        """A question that no hook answers counts as dismissed."""
        for one in self._hooks:
            if one.on_elicit is not None and (answer := await one.on_elicit(question)) is not None:
                return answer
        return Elicited(action="cancel")
