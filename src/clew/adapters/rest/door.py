"""What surrounds every request: the check of its Host, its id, its metrics, and the answer to an unforeseen failure."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address
from itertools import count
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.adapters.rest.errors import Problem, answer_unknown_failure, error_response
from clew.adapters.rest.metrics import Metrics
from clew.clock import Clock
from clew.config import ServerConfig

UNMATCHED = "(unmatched)"
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_HOST = re.compile(rb"(?:\[(?P<v6>[0-9A-Fa-f:.%]{2,64})\]|(?P<name>[A-Za-z0-9._-]{1,255}))(?::\d{1,5})?")


class Door:
    """Pure ASGI middleware. A request keeps the X-Request-Id that it brings when that is well-formed. A request to
    another host is refused: a web page whose name an attacker points at this address sends its own name."""

    def __init__(self, app: ASGIApp, metrics: Metrics, clock: Clock, server: ServerConfig) -> None:
        self._app = app
        self._metrics = metrics
        self._names = {name.lower() for name in (*LOCAL_NAMES, server.host, *server.hosts)}
        self._is_open = server.host.lower() not in LOCAL_NAMES
        # A new id for each request would cost more than all the rest of this class.
        self._process = clock.new_id()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        request_id = self._request_id(scope)
        scope["clew.request_id"] = request_id
        started = False

        async def send_marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] += (
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                )
                path = scope.get("clew.path", UNMATCHED)
                self._metrics.record_request(scope["method"], path, message["status"], perf_counter() - began)
            await send(message)

        try:
            if not self._is_for_us(scope):
                await error_response(421, _FOREIGN)(scope, receive, send_marked)
                return
            await self._app(scope, receive, send_marked)
        except Exception as error:
            response = answer_unknown_failure(error, request_id)
            if not started:
                await response(scope, receive, send_marked)

    def _is_for_us(self, scope: Scope) -> bool:
        """Whether the Host header names this server. On an open address every IP address does: a page is reached by its
        name. Clients of HTTP/1.0 send none."""
        given = [value for name, value in scope["headers"] if name == b"host"]
        return all(_is_accepted(value, self._names, any_address=self._is_open) for value in given)

    def _request_id(self, scope: Scope) -> str:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                return str(value, "ascii")
        return f"{self._process}.{next(self._numbers)}"


_FOREIGN = Problem(
    code="foreign_host",
    message="the Host header names another server",
    hint="Use the address that `clew up` prints, or add the name to server.hosts",
)


def _is_accepted(host: bytes, names: Collection[str], *, any_address: bool) -> bool:
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = (found["v6"] or found["name"]).decode("ascii").lower()
    return name in names or (any_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
