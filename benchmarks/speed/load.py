"""A lean HTTP client for load: keep-alive connections over bare asyncio transports, the same for every server."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from speed.processes import Server

CONNECTIONS = 16
PATIENCE = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The time of a load of requests, and the bodies of the answers in the order of the requests."""

    seconds: float
    latencies: list[float]
    bodies: list[bytes]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds


class Connection(asyncio.Protocol):
    """One request at a time; an answer must have its length in the headers."""

    def __init__(self) -> None:
        self._buffer = b""
        self._needed = 0
        self._waiter: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed:
            head = self._buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            length = _LENGTH.search(self._buffer, 0, head + 2)
            self._needed = head + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) >= self._needed and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._buffer)
            self._buffer, self._needed = b"", 0

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error or ConnectionError("the server closed the connection"))

    async def ask(self, request: bytes) -> bytes:
        """The whole answer to a request."""
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiter

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def send_all(server: Server, requests: Sequence[bytes], connections: int = CONNECTIONS) -> Outcome:
    """Send every request once, as fast as the server answers. Raises RuntimeError when one is not answered with 2xx."""
    loop = asyncio.get_running_loop()
    opened = [(await loop.create_connection(Connection, server.host, server.port))[1] for _ in range(connections)]
    latencies, bodies = [0.0] * len(requests), [b""] * len(requests)
    numbers = iter(range(len(requests)))
    began = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for connection in opened:
                group.create_task(_send_some(connection, requests, numbers, latencies, bodies))
        return Outcome(time.perf_counter() - began, latencies, bodies)
    finally:
        for connection in opened:
            connection.close()


async def _send_some(
    connection: Connection,
    requests: Sequence[bytes],
    numbers: Iterator[int],
    latencies: list[float],
    bodies: list[bytes],
) -> None:
    for number in numbers:
        began = time.perf_counter()
        answer = await connection.ask(requests[number])
        latencies[number] = time.perf_counter() - began
        if answer[9:10] != b"2":
            raise RuntimeError(f"a request was refused: {answer[:500]!r}")
        bodies[number] = answer.partition(b"\r\n\r\n")[2]


def build_request(method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: keep-alive"]
    lines += [f"authorization: Bearer {token}"] if token else []
    lines += ["content-type: application/json", f"content-length: {len(body)}"] if body else []
    return "\r\n".join((*lines, "", "")).encode() + body
