"""The outermost layer of every request: Host check, request id, metrics, trace, and the answer to an error."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.adapters.rest.errors import RestProblem, answer_error, error_response
from clew.clock import Clock
from clew.config import ServerConfig
from clew.telemetry.metrics import Metrics
from clew.trail.work.trace_context import TraceContext, current_trace, parse_traceparent

if TYPE_CHECKING:
    from clew.telemetry.request_spans import RequestTracer

UNMATCHED = "(unmatched)"
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
MAX_CHECKED_HOSTS = 100
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_HOST = re.compile(rb"(?:\[(?P<v6>[0-9A-Fa-f:.%]{2,64})\]|(?P<name>[A-Za-z0-9._-]{1,255}))(?::\d{1,5})?")


class Door:
    """Pure ASGI middleware. A request keeps a well-formed X-Request-Id that it brings. A request with another Host is
    refused. This prevents DNS rebinding, in which a web page uses its own host name for this address."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        clock: Clock,
        server: ServerConfig,
        tracer: RequestTracer | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._tracer = tracer
        self._names = {name.lower() for name in (*LOCAL_NAMES, server.host, *server.hosts)}
        self._is_open = server.host.lower() not in LOCAL_NAMES
        self._checked_hosts: set[bytes] = set()
        # A new id for each request would cost more than all the rest of this class.
        self._process = clock.new_id()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        request_id, is_for_us, given = self._read_headers(scope)
        scope["clew.request_id"] = request_id
        started = False
        span = self._tracer.begin(given) if self._tracer is not None else None

        def mark(status: int) -> tuple[bytes, bytes]:
            nonlocal started
            started = True
            path = scope.get("clew.path", UNMATCHED)
            self._metrics.record_request(scope["method"], path, status, perf_counter() - began)
            if span is not None and self._tracer is not None:
                self._tracer.end(span, scope["method"], path, status)
            return b"x-request-id", request_id.encode()

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += (mark(message["status"]),)
            await send(message)

        scope["clew.mark"] = mark
        current_trace.set(given if span is None else span.context)  # each request has a task of its own
        try:
            if not is_for_us:
                await error_response(421, _FOREIGN)(scope, receive, send_marked)
                return
            await self._app(scope, receive, send_marked)
        except Exception as error:
            response = answer_error(error, scope, is_started=started)
            if not started:
                await response(scope, receive, send_marked)

    def _read_headers(self, scope: Scope) -> tuple[str, bool, TraceContext | None]:
        """The id of the request, whether every Host header names this server, and the trace that the request belongs
        to. Clients of HTTP/1.0 send no Host."""
        request_id, is_for_us, trace = "", True, None
        for name, value in scope["headers"]:
            if name == b"host":
                is_for_us &= value in self._checked_hosts or self._check_host(value)
            elif name == b"x-request-id" and not request_id and _REQUEST_ID.fullmatch(value):
                request_id = value.decode("ascii")
            elif name == b"traceparent":
                trace = parse_traceparent(value.decode("latin-1").strip())
        return request_id or f"{self._process}.{next(self._numbers)}", is_for_us, trace

    def _check_host(self, host: bytes) -> bool:
        """Whether a Host header names this server. If the server listens on all addresses, every IP address is
        accepted, because a DNS rebinding attack needs a name."""
        is_accepted = _is_accepted(host, self._names, any_address=self._is_open)
        if is_accepted and len(self._checked_hosts) < MAX_CHECKED_HOSTS:
            self._checked_hosts.add(host)
        return is_accepted


_FOREIGN = RestProblem(
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
