"""uvicorn's fast parser with limits on the size of headers and on the time that a request takes to arrive, and with one
write for each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Literal, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from clew.adapters.rest.errors import ErrorBody, RestProblem
from clew.adapters.rest.protocol import MAX_HEADERS, ArrivalLimits

Headers = Sequence[tuple[bytes, bytes]]


class GuardedProtocol(HttpToolsProtocol):
    """Limits how slowly a request may arrive. A request that arrives complete in one read needs no timer."""

    patience: ArrivalLimits
    _stage: Literal["headers", "body", "whole"] = "headers"
    _has_moved = False
    _deadline: asyncio.TimerHandle | None = None
    _size = 0  # bytes of the reads since the headers began, without the first read and the present one
    _read = 0  # size of the present read
    _idle_since: float | None = None  # when the last answer ended, None while a request is under way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._move("whole")
        self._set_deadline()
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def on_response_complete(self) -> None:
        """As in uvicorn, but with one timer per connection, because a new timer for each request would cost more than
        the rest of this class."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._wait_idle()

    def _wait_idle(self) -> None:
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_for_request(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, unless a request came since the timer was set."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return  # the end of the present answer sets the timer again
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait_for_request(left)
        else:
            super().timeout_keep_alive_handler()

    def _wait_for_request(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None

    def data_received(self, data: bytes) -> None:
        self._read = len(data)
        super().data_received(data)
        is_answered = self._stage == "whole" and self.cycle is not None and self.cycle.response_complete
        if is_answered and not self.pipeline and not self.transport.is_closing():
            self._wait_idle()  # for bytes that do not begin a request, such as the rest of a refused body
        if self._has_moved:
            self._set_deadline()
        elif self._stage == "headers":
            self._size += self._read
            if self._size > MAX_HEADERS:
                self._refuse(_HEADERS_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._move("headers")
        self._size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._size + self._read > MAX_HEADERS and self._measure_headers() > MAX_HEADERS:
            self._refuse(_HEADERS_TOO_LARGE)
            raise ValueError("the headers are too large")  # ends the parsing
        self._move("body")
        super().on_headers_complete()
        cast("dict[str, object]", self.scope)["clew.whole_answer"] = SingleWriteResponse(self.cycle)

    def on_message_complete(self) -> None:
        self._move("whole")
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(_NOT_HTTP)

    def _measure_headers(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _move(self, stage: Literal["headers", "body", "whole"]) -> None:
        self._stage, self._has_moved = stage, True

    def _set_deadline(self) -> None:
        """Start the timer for the next part of the request. Between requests, uvicorn's own keep-alive timer
        applies."""
        self._has_moved = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._stage != "whole":
            self._deadline = self.loop.call_later(getattr(self.patience, self._stage), self._give_up)

    def _give_up(self) -> None:
        """Close the connection. Send an error first, unless another response has started."""
        cycle = self.cycle
        is_silent = cycle is None or (
            cycle.response_complete if self._stage == "headers" else not cycle.response_started
        )
        self._refuse(_TOO_SLOW if self.headers is not None and is_silent else b"")

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


class SingleWriteResponse:
    """Writes a complete answer with one system call. uvicorn writes head and body separately and checks each header,
    which costs more than handling a short request."""

    __slots__ = ("_cycle",)
    _dated: ClassVar[tuple[Headers, bytes]] = ((), b"")  # the headers of every answer, and their bytes

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    @property
    def is_possible(self) -> bool:
        """Whether the connection takes an answer now."""
        return not (self._cycle.response_started or self._cycle.flow.write_paused or self._cycle.disconnected)

    def write(self, status: int, headers: Headers, body: bytes) -> None:
        """Write the answer. The caller must include the body's length in the headers. This method does not check their
        characters."""
        cycle = self._cycle
        cycle.response_started = cycle.response_complete = True
        lines = [STATUS_LINE[status], self._common_headers(), *[b"%b: %b\r\n" % pair for pair in headers]]
        lines.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        if cycle.scope["method"] != "HEAD":
            lines.append(body)
        cycle.transport.write(b"".join(lines))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def _common_headers(self) -> bytes:
        """The encoded headers of every answer. They are cached until uvicorn replaces them each second because of the
        date."""
        headers, encoded = SingleWriteResponse._dated
        if headers is not self._cycle.default_headers:
            headers = self._cycle.default_headers
            encoded = b"".join(b"%b: %b\r\n" % pair for pair in headers)
            SingleWriteResponse._dated = headers, encoded
        return encoded


def _answer(status: str, code: str, message: str, hint: str) -> bytes:
    body = msgspec.json.encode(ErrorBody(error=RestProblem(code=code, message=message, hint=hint)))
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body


_HEADERS_TOO_LARGE = _answer(
    "431 Request Header Fields Too Large",
    "headers_too_large",
    f"the headers are over the limit of {MAX_HEADERS:,} bytes",
    "Send fewer or shorter headers; long values belong into the body",
)
_TOO_SLOW = _answer(
    "408 Request Timeout",
    "request_timeout",
    "the request did not arrive in time",
    "Send the headers and then the body without long pauses",
)
_NOT_HTTP = _answer(
    "400 Bad Request",
    "malformed",
    "these bytes are not an HTTP/1.1 request",
    "Use http:// and an HTTP/1.1 client; this port does not speak TLS",
)
