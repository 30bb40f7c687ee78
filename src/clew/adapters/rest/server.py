"""Serving the application: one process, one event loop, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from clew.adapters.rest.protocol import MAX_HEADERS, ArrivalLimits, build_protocol
from clew.background_tasks import cancel_all
from clew.errors import ConfigError

GRACE_SECONDS = 5
PATIENCE = ArrivalLimits()


class ServedApp(Protocol):
    """An ASGI application. Setting `closing` ends its streams."""

    closing: asyncio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


async def run_server(
    app: ServedApp,
    host: str,
    port: int,
    *,
    ready: Callable[[str, int], None] = lambda host, port: None,
    stop: asyncio.Event | None = None,
    force: asyncio.Event | None = None,
    patience: ArrivalLimits = PATIENCE,
) -> None:
    """Serve until `stop` is set, or until SIGINT or SIGTERM if there is no `stop`; then finish pending requests and
    return. `ready` is called with the address once connections are accepted. Port 0 selects a free port. Streams end at
    once, other requests have five seconds, or none at all with `force`. A request that does not arrive within
    `patience` is refused. Raises ConfigError when the address cannot be used.
    """
    listener = _listen(host, port)
    config = uvicorn.Config(
        app,
        http=build_protocol(patience),
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )
    server = _Server(config, app.closing, lambda: ready(host, listener.getsockname()[1]), own_signals=stop is None)
    stopping = [
        asyncio.create_task(_stop_when(event, server, force=event is force)) for event in (stop, force) if event
    ]
    try:
        await server.serve(sockets=[listener])
    finally:
        listener.close()
        await cancel_all(stopping)


class _Server(uvicorn.Server):
    """Uvicorn that ends streams before it waits for connections, and returns after a signal instead of
    raising it again: the caller has a trail to close."""

    def __init__(
        self, config: uvicorn.Config, closing: asyncio.Event, ready: Callable[[], None], *, own_signals: bool
    ) -> None:
        super().__init__(config)
        self._own_signals = own_signals
        self._closing = closing
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if not self._own_signals or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._handle) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


async def _stop_when(event: asyncio.Event, server: uvicorn.Server, *, force: bool) -> None:
    await event.wait()
    server.force_exit = force or server.force_exit
    server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
        # connections inherit it: an answer in two pieces would wait 40 ms for the acknowledgement of the first one
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot listen on {host}:{port} ({reason}); choose another server.port, or stop the program that uses it"
        ) from None
