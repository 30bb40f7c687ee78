"""A local server that replays the shapes of HTTP APIs: pages, limits, expired tokens and answers that are broken."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as the server saw it."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class Given:
    """An answer. `cut` ends the connection after so many bytes of the body; `held` sends nothing until the server
    closes."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    held: bool = False


def as_json(value: Any, status: int = 200, **headers: str) -> Given:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Given(json.dumps(value).encode(), status, {"Content-Type": "application/json", **named})


NOT_FOUND = as_json({"message": "Not Found"}, 404)
Route = Callable[[Asked], Given]


@dataclass
class Replay:
    """`routes` answer by path; before them, each answer in `script` is given once. `asked` is what was asked so far."""

    url: str = ""
    token: str = ""
    """Without this in one of its headers, a request is refused."""
    routes: dict[str, Route] = field(default_factory=dict)
    script: deque[Given] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Given:
        self.asked.append(asked)
        if self.script:
            return self.script.popleft()
        if self.token and not any(self.token in value for value in asked.headers.values()):
            return as_json({"message": f"Bad credentials in {asked.headers}"}, 401)
        route = self.routes.get(asked.path)
        return route(asked) if route else NOT_FOUND


@contextmanager
def run_replay(replay: Replay) -> Iterator[Replay]:
    """The server on a free port of the loopback, in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together: apart, the second would wait for an acknowledgement of the first

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(replay.answer(Asked(parts.path, dict(parse_qsl(parts.query)), headers)))

        def _send(self, given: Given) -> None:
            if given.held:
                replay.closing.wait(30)
                self.close_connection = True
                return
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body)))
            self.end_headers()
            self.close_connection = given.cut is not None
            try:
                self.wfile.write(given.body[: given.cut])
                self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            return None

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that hang up are what many tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    replay.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield replay
    finally:
        replay.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
