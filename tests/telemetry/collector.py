"""A collector on this machine that stores its input, and a real collector that forwards to it."""

from __future__ import annotations

import gzip
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 60.0


class SeenSpan(NamedTuple):
    """A span as it arrived."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    is_error: bool
    worker: str


class Collector:
    """Keeps spans, metrics and raw bodies. While `status` is not 200 it answers with that, and keeps nothing."""

    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.answers = threading.Event()
        self.answers.set()
        self.arrived = threading.Condition()
        self.refused = 0

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        self.answers.wait(PATIENCE)
        with self.arrived:
            if self.status != 200:
                self.refused += 1
            else:
                self.headers.append(headers)
                self.raw.append(body)
                if path == "/v1/traces":
                    self.spans += _spans(ExportTraceServiceRequest.FromString(body))
                else:
                    self.metrics.append(ExportMetricsServiceRequest.FromString(body))
            self.arrived.notify_all()
        return self.status

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait until something holds, looked at whenever something arrives."""
        deadline = time.monotonic() + PATIENCE
        with self.arrived:
            while not (found := holds()):
                left = deadline - time.monotonic()
                assert left > 0, f"{what}: not within {PATIENCE} s; there are {[each.name for each in self.spans]}"
                self.arrived.wait(min(left, 1.0))
        return found

    def named(self, beginning: str) -> list[SeenSpan]:
        return [each for each in self.spans if each.name.startswith(beginning)]


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A collector, and its address."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            unpacked = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            self.send_response(collector.take(self.path, unpacked, headers))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        collector.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def relaying(to: str, folder: Path) -> Iterator[str]:
    """The address of the collector Rotel, which forwards its input. Without Rotel, the address itself."""
    found = find_spec("rotel")
    if found is None or found.origin is None:
        yield to
        return
    http, grpc = _free_port(), _free_port()
    command = [
        str(Path(found.origin).with_name("rotel-agent")), "start",
        "--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}",
        "--exporter", "otlp", "--otlp-exporter-endpoint", to, "--otlp-exporter-protocol", "http",
        "--batch-timeout", "50ms", "--pid-file", str(folder / "rotel.pid"), "--log-file", str(folder / "rotel.log"),
    ]  # fmt: skip
    with (folder / "rotel.out").open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            _wait_for_port(http, process)
            yield f"http://127.0.0.1:{http}"
        finally:
            process.terminate()


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "the collector has ended"
        assert time.monotonic() < deadline, "the collector does not listen"
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _spans(request: ExportTraceServiceRequest) -> Iterator[SeenSpan]:
    for of_process in request.resource_spans:
        resource = {each.key: each.value.string_value for each in of_process.resource.attributes}
        for scope in of_process.scope_spans:
            for span in scope.spans:
                yield SeenSpan(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    {each.key: _value(each.value) for each in span.attributes},
                    span.status.code == 2,
                    resource.get("service.instance.id", ""),
                )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
