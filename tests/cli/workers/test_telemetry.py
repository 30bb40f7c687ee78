"""Traces and metrics at an OpenTelemetry collector: a chat is one trace over all workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from clew.telemetry import exporting, telemetry
from clew.telemetry.otlp import root_span_id_of
from tests.cli.conftest import PATIENCE, Clew
from tests.cli.workers.test_worker_processes import running, until
from tests.consent import trust_all
from tests.servers import give_key

EXPORTS = ("/v1/traces", "/v1/metrics")
SETTINGS = """
models.default = "lab:small"
[providers.lab]
base_url = "{url}/v1"
"""


class Collector:
    """A receiver of OTLP over HTTP that keeps everything. As a model it refuses."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []
        """The instance of each span, and the span."""
        self.metrics: list[Any] = []
        self.bodies: list[bytes] = []
        own = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body, is_export = self.rfile.read(int(self.headers["content-length"])), self.path in EXPORTS
                if is_export:
                    own.take(self.path, body)
                self.send_response(200 if is_export else 400)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path == "/v1/traces":
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                instance = next(
                    each.value.string_value for each in sent.resource.attributes if each.key == "service.instance.id"
                )
                self.spans += [(instance, span) for scope in sent.scope_spans for span in scope.spans]
        else:
            for metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics += [metric for scope in metrics.scope_metrics for metric in scope.metrics]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    yield made
    made.close()


@pytest.mark.req("RCR-54")
@pytest.mark.req("RCR-29")
def test_a_chat_is_one_trace_over_all_workers(clew: Clew, folder: Path, collector: Collector) -> None:
    give_key(folder)
    clew("trail", "put", "--title", "here")
    (folder / "config.toml").write_text(SETTINGS.format(url=collector.url))
    trust_all(folder)
    server, worker = ("--role", "server,context", "--port", "0"), ("--role", "agents,tools")
    with running(*server) as (_, serving), running(*worker):
        headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
        body = {"message": "What did we decide about plums?", "wait": 0}
        sent = httpx.post(f"{serving['url']}/chat", json=body, headers=headers, timeout=PATIENCE).json()
        trace = UUID(sent["run"]).bytes

        def found() -> list[tuple[str, Any]] | None:
            spans = [(instance, span) for instance, span in collector.spans if span.trace_id == trace]
            return spans if len({instance for instance, _ in spans}) == 2 else None

        spans = until(found, "spans of both processes")
        until(
            lambda: {"clew.event.duration", "http.server.request.duration"} <= {m.name for m in collector.metrics},
            "metrics",
        )
    root = root_span_id_of(sent["run"]).to_bytes(8, "big")
    (first,) = [span for _, span in spans if not span.parent_span_id]
    assert (first.name, first.span_id) == ("message", root)
    assert {span.parent_span_id for _, span in spans if span is not first} == {root}
    assert not any(b"plums" in each for each in collector.bodies), "content leaves the process"


async def test_without_a_collector_nothing_is_exported_and_the_sdk_is_not_loaded() -> None:
    before = telemetry()
    for environ in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}):
        async with exporting(environ, ["all"]):
            assert telemetry() is before


async def test_a_collector_that_is_away_costs_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with exporting({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, ["all"]):
        with telemetry().handling("consumer", None, {}) as step:
            step.end_as("failed", ValueError("text"))
        telemetry().begin_run("not a uuid", {})
    assert "text" not in caplog.text
