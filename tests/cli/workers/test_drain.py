"""A process after a signal: it is no longer ready, and finishes or releases its claims."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import PATIENCE, Clew
from tests.cli.workers.test_worker_processes import running, until
from tests.servers import give_key


class SlowReceiver:
    """Receives webhooks, and answers each only when the test allows it."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.has_begun = threading.Event()
        self.may_answer = threading.Event()
        own = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                own.received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                own.has_begun.set()
                own.may_answer.wait(PATIENCE)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowReceiver]:
    """A receiver of webhooks, with the settings that it needs."""
    give_key(folder)
    monkeypatch.setenv("CLEW_WEBHOOKS_ALLOW", "127.0.0.0/8")
    monkeypatch.setenv("CLEW_WEBHOOKS_TIMEOUT_SECONDS", str(PATIENCE))
    clew("secret", "put", "signing", stdin=b"key")
    made = SlowReceiver()
    yield made
    made.close()


def begin_delivery(clew: Clew, url: str, receiver: SlowReceiver) -> None:
    """Subscribe the receiver, and write records for it."""
    headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
    hook = {"url": receiver.url, "secret": "signing"}
    body = {"name": "hook", "selector": {"all_tags": ["mine"]}, "webhook": hook}
    assert httpx.post(f"{url}/subscriptions", json=body, headers=headers, timeout=PATIENCE).status_code in (200, 201)
    clew("trail", "put", "--title", "told", "--tag", "mine")
    assert receiver.has_begun.wait(PATIENCE)


def test_a_draining_process_is_not_ready_and_ends_when_its_work_is_done(
    clew: Clew, folder: Path, receiver: SlowReceiver
) -> None:
    with running("--port", "0", "--drain", str(PATIENCE)) as (process, serving):
        url = serving["url"]
        begin_delivery(clew, url, receiver)
        process.send_signal(signal.SIGTERM)
        answer = until(lambda: each if (each := httpx.get(f"{url}/ready")).status_code == 503 else None, "it drains")
        assert answer.json()["error"]["code"] == "draining"
        assert httpx.get(f"{url}/health", timeout=PATIENCE).status_code == 200
        assert clew("workers", "--json").json[0]["state"] == "draining"
        receiver.may_answer.set()
        assert process.wait(PATIENCE) == 0
    assert len(receiver.received) == 1
    assert "hook" not in clew("trail", "dead").out


@pytest.mark.parametrize("way", ["second signal", "deadline"])
def test_unfinished_work_is_released_and_done_by_the_next_process(
    clew: Clew, folder: Path, receiver: SlowReceiver, way: str
) -> None:
    with running("--port", "0", "--drain", "0.2" if way == "deadline" else str(10 * PATIENCE)) as (process, serving):
        begin_delivery(clew, serving["url"], receiver)
        process.send_signal(signal.SIGTERM)
        if way == "second signal":
            until(lambda: httpx.get(f"{serving['url']}/ready").status_code == 503, "it drains")
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    receiver.may_answer.set()
    with running("--port", "0"):
        until(lambda: len(receiver.received) == 2, "the delivery is made again")
    assert receiver.received[0] == receiver.received[1]
