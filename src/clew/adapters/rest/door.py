"""What surrounds every request: its id, its metrics, and the answer when something unforeseen happens."""

from __future__ import annotations

import re
from itertools import count
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.adapters.rest.errors import answer_unknown_failure
from clew.adapters.rest.metrics import Metrics
from clew.clock import Clock

UNMATCHED = "(unmatched)"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class Door:
    """Pure ASGI middleware. A request keeps the X-Request-Id that it brings when that is well-formed."""

    def __init__(self, app: ASGIApp, metrics: Metrics, clock: Clock) -> None:
        self._app = app
        self._metrics = metrics
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
            await self._app(scope, receive, send_marked)
        except Exception as error:
            response = answer_unknown_failure(error, request_id)
            if not started:
                await response(scope, receive, send_marked)

    def _request_id(self, scope: Scope) -> str:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                return str(value, "ascii")
        return f"{self._process}.{next(self._numbers)}"
