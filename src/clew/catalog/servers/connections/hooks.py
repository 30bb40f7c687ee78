"""Hooks of a host around the exchange with a server: give tokens, see requests and answers, collect logs, stop a long
listing, and put questions of the server to the user. All are optional; several form a chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import msgspec

from clew.tools.hook_chain import Hook, HookChain, HookData, HookFunction

POINTS = ("auth", "request", "response", "log", "paginate", "elicit")


class ServerToken(msgspec.Struct, frozen=True):
    """A token. Its `repr` does not show it."""

    value: str

    def __repr__(self) -> str:
        return "ServerToken(…)"


class ServerRequest(HookData, frozen=True, kw_only=True):
    """A request before it is sent: the method of the protocol and its parameters."""

    server: str
    method: str
    params: dict[str, Any]


class Response(HookData, frozen=True, kw_only=True):
    """An answer before it is used. `result` is the protocol's own object for the method."""

    server: str
    method: str
    result: Any


class LogLine(HookData, frozen=True, kw_only=True):
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

    `on_auth(server)` returns a token or None. `on_auth_refresh(server, expired)` returns a new token for a refused one,
    and is called once per refused token. `on_request` and `on_response` return the request to send and the response to
    use. `on_paginate(server, cursor)` returns False to stop before the next page. `on_elicit` returns the user's
    answer, or None to pass the question to the next hook. The client announces support for questions only if such a
    hook exists.
    """

    on_auth: Callable[[str], Awaitable[ServerToken | None]] | None = None
    on_auth_refresh: Callable[[str, ServerToken], Awaitable[ServerToken | None]] | None = None
    on_request: Callable[[ServerRequest], Awaitable[ServerRequest]] | None = None
    on_response: Callable[[Response], Awaitable[Response]] | None = None
    on_log: Callable[[LogLine], Awaitable[None]] | None = None
    on_paginate: Callable[[str, str], Awaitable[bool]] | None = None
    on_elicit: Callable[[Elicitation], Awaitable[Elicited | None]] | None = None


class _TokenWanted(HookData, frozen=True, kw_only=True):
    server: str
    expired: ServerToken | None
    token: ServerToken | None = None

    @property
    def is_settled(self) -> bool:
        return self.token is not None


class _NextPage(HookData, frozen=True, kw_only=True):
    server: str
    cursor: str
    is_wanted: bool = True

    @property
    def is_settled(self) -> bool:
        return not self.is_wanted


class _UserAsked(HookData, frozen=True, kw_only=True):
    question: Elicitation
    answer: Elicited | None = None

    @property
    def is_settled(self) -> bool:
        return self.answer is not None


class ServerHookChain:
    """The hooks of a host, one after another: the first token counts, requests and responses go through all, every log
    line reaches all, one `False` stops a listing, and the first answer of the user counts."""

    def __init__(self, *hooks: Hooks) -> None:
        self.replace(hooks)

    def replace(self, hooks: Iterable[Hooks]) -> None:
        """Use these hooks from now on, and no others."""
        found = [
            Hook(name=f"host-{at}", point=point, function=function, required=point != "log")
            for at, each in enumerate(hooks)
            for point, function in _functions(each).items()
        ]
        self._chain = HookChain(found, points=POINTS)

    @property
    def can_ask(self) -> bool:
        """Whether the user can be asked anything."""
        return self._chain.has("elicit")

    async def token(self, server: str, expired: ServerToken | None = None) -> ServerToken | None:
        """Return a token, or one instead of an expired token; None if no hook has any."""
        return (await self._chain.run("auth", _TokenWanted(server=server, expired=expired))).token

    async def request(self, request: ServerRequest) -> ServerRequest:
        """Return the request after all hooks have changed it."""
        return await self._chain.run("request", request)

    async def response(self, response: Response) -> Response:
        """Return the response after all hooks have changed it."""
        return await self._chain.run("response", response)

    async def log(self, line: LogLine) -> None:
        """Give a log line to every hook."""
        await self._chain.run("log", line)

    async def goes_on(self, server: str, cursor: str) -> bool:
        """Whether the next page of a listing is wanted."""
        return (await self._chain.run("paginate", _NextPage(server=server, cursor=cursor))).is_wanted

    async def elicit(self, question: Elicitation) -> Elicited:
        """Return the user's answer. A question that no hook answers is treated as dismissed."""
        return (await self._chain.run("elicit", _UserAsked(question=question))).answer or Elicited(action="cancel")


def _functions(hooks: Hooks) -> dict[str, HookFunction]:
    """The functions of a host by point, as the chain calls them."""
    found: dict[str, HookFunction] = {}
    if hooks.on_auth is not None or hooks.on_auth_refresh is not None:
        found["auth"] = _give_token(hooks)
    if hooks.on_request is not None:
        found["request"] = hooks.on_request
    if hooks.on_response is not None:
        found["response"] = hooks.on_response
    if (on_log := hooks.on_log) is not None:

        async def log(line: LogLine) -> LogLine:
            await on_log(line)
            return line

        found["log"] = log
    if (on_paginate := hooks.on_paginate) is not None:

        async def paginate(page: _NextPage) -> _NextPage:
            return msgspec.structs.replace(page, is_wanted=bool(await on_paginate(page.server, page.cursor)))

        found["paginate"] = paginate
    if (on_elicit := hooks.on_elicit) is not None:

        async def elicit(asked: _UserAsked) -> _UserAsked:
            return msgspec.structs.replace(asked, answer=await on_elicit(asked.question))

        found["elicit"] = elicit
    return found


def _give_token(hooks: Hooks) -> HookFunction:
    async def give(wanted: _TokenWanted) -> _TokenWanted:
        token = None
        if wanted.expired is None and hooks.on_auth is not None:
            token = await hooks.on_auth(wanted.server)
        elif wanted.expired is not None and hooks.on_auth_refresh is not None:
            token = await hooks.on_auth_refresh(wanted.server, wanted.expired)
        return msgspec.structs.replace(wanted, token=token)

    return give
