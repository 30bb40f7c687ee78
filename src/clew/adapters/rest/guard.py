"""uvicorn's fast parser with limits on the size of headers and on the time that a request takes to arrive, and with one
write for each answer."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.adapters.rest.errors import ErrorBody, RestProblem
from clew.adapters.rest.protocol import MAX_HEADERS, ArrivalLimits


class GuardedProtocol(HttpToolsProtocol):
    """Watches how a request arrives. One that comes whole in one read costs no timer."""

    patience: ArrivalLimits
    _stage: Literal["headers", "body", "whole"] = "headers"
    _has_moved = False
    _deadline: asyncio.TimerHandle | None = None
    _size = 0  # of the reads since the headers began, without the present one and the one they began in
    _read = 0  # size of the present read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(JoiningTransport(transport, self.loop))
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._move("whole")
        self._set_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._read = len(data)
        super().data_received(data)
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
        """Wait for what is to come next; between requests uvicorn's own keep-alive does."""
        self._has_moved = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._stage != "whole":
            self._deadline = self.loop.call_later(getattr(self.patience, self._stage), self._give_up)

    def _give_up(self) -> None:
        """End the connection, with a word where no other answer is under way."""
        cycle = self.cycle
        is_silent = cycle is None or (
            cycle.response_complete if self._stage == "headers" else not cycle.response_started
        )
        self._refuse(_TOO_SLOW if self.headers is not None and is_silent else b"")

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


class JoiningTransport(asyncio.Transport):
    """Joins two writes of one turn of the event loop. uvicorn writes the head of an answer and then its body; a second
    system call costs more than the rest of a short request."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._pending: bytes | None = None
        self.is_closing = transport.is_closing  # type: ignore[method-assign]  # called for every request
        self.pause_reading = transport.pause_reading  # type: ignore[method-assign]
        self.resume_reading = transport.resume_reading  # type: ignore[method-assign]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._pending is None:
            self._pending = bytes(data)
            self._loop.call_soon(self._flush)
        else:
            joined, self._pending = self._pending + data, None
            self._transport.write(joined)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._pending = None
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._transport.write(pending)


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
