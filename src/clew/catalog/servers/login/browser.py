"""Login in a browser: an address to open, and the redirect back to a local port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from clew.errors import ConfigError

HOST = "127.0.0.1"
PATH = "/callback"
MAX_HEAD = 16_000
READ_SECONDS = 10.0

_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {size}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
)
_DONE = b"<!doctype html><title>Clew</title><p>Clew has its answer. You can close this window.</p>"
_WRONG = b"<!doctype html><title>Clew</title><p>This is not the answer that Clew waits for.</p>"


class Browser(Protocol):
    """Shows an address to a person."""

    @property
    def redirect_uri(self) -> str:
        """The address to which the authorization server sends the answer."""
        ...

    async def visit(self, address: str) -> Mapping[str, str]:
        """Show an address, wait for the redirect, and return its parameters. Raises TimeoutError."""
        ...


class LoopbackBrowser:
    """Listens on a local port while the block runs. `show` gets the address to open. `ports` are tried in turn; if all
    fail, the last error is raised. Requests without this login's state are rejected."""

    def __init__(
        self, show: Callable[[str], Awaitable[None]], *, ports: tuple[int, ...] = (0,), seconds: float
    ) -> None:
        self._show = show
        self._seconds = seconds
        self._listening = _listen(ports)
        self._answer: asyncio.Future[Mapping[str, str]] | None = None
        self._state = ""
        self._server: asyncio.Server | None = None

    @property
    def redirect_uri(self) -> str:
        return f"http://{HOST}:{self._listening.getsockname()[1]}{PATH}"

    async def __aenter__(self) -> LoopbackBrowser:
        self._server = await asyncio.start_server(self._serve, sock=self._listening, limit=MAX_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self._listening.close()

    async def visit(self, address: str) -> Mapping[str, str]:
        self._state = dict(parse_qsl(urlsplit(address).query)).get("state", "")
        self._answer = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(self._seconds):
            await self._show(address)
            return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                answer = self._parse(head)
                body, status = (_DONE, "200 OK") if answer is not None else (_WRONG, "400 Bad Request")
                writer.write(_PAGE.format(status=status, size=len(body)).encode() + body)
                await writer.drain()
            if answer is not None and self._answer is not None and not self._answer.done():
                self._answer.set_result(answer)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client did not speak HTTP, or disconnected
        finally:
            writer.close()

    def _parse(self, head: bytes) -> Mapping[str, str] | None:
        """The parameters of a request that belongs to this login."""
        method, _, rest = head.decode("latin-1").partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        given = dict(parse_qsl(target.query))
        is_ours = method == "GET" and target.path == PATH and self._state and given.get("state") == self._state
        return given if is_ours else None


def _listen(ports: tuple[int, ...]) -> socket.socket:
    for port in ports[:-1]:
        try:
            return socket.create_server((HOST, port))
        except OSError:
            continue
    try:
        return socket.create_server((HOST, ports[-1]))
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise ConfigError(f"cannot listen on {HOST}:{ports[-1]} for the answer ({reason})") from None
