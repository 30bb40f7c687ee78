"""Exports traces and metrics to an OpenTelemetry collector by OTLP over HTTP. Needs the extra `otel`.

The standard variables apply: `OTEL_EXPORTER_OTLP_ENDPOINT` switches it on, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`
and the others mean what they mean elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextvars import ContextVar
from hashlib import blake2b
from importlib.metadata import version
from time import perf_counter
from uuid import UUID

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from clew.telemetry import Attributes, StepSpan, using

FLUSH_SECONDS = 5.0
FAILED = "failed"
_log = logging.getLogger(__name__)
_chosen_ids: ContextVar[tuple[int, int] | None] = ContextVar("chosen_ids", default=None)


def trace_id_of(root: str) -> int:
    """The trace of the run that a record began: the id of the record itself where that is a UUID."""
    try:
        return UUID(root).int or 1
    except ValueError:
        return _digest(root, 16)


def root_span_id_of(root: str) -> int:
    return _digest(root, 8)


def _digest(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest(), "big") or 1


class RunIds(RandomIdGenerator):
    """Random ids, and those of a run for its first span."""

    def generate_trace_id(self) -> int:
        chosen = _chosen_ids.get()
        return super().generate_trace_id() if chosen is None else chosen[0]

    def generate_span_id(self) -> int:
        chosen = _chosen_ids.get()
        return super().generate_span_id() if chosen is None else chosen[1]


class OtlpTelemetry:
    """See `clew.telemetry.Telemetry`. Spans and numbers are sent by threads of the SDK, in batches."""

    def __init__(self, roles: Sequence[str]) -> None:
        resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME") or "clew",
                "service.version": version("clew"),
                "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
                "clew.roles": ",".join(roles),
            }
        )
        self._spans = TracerProvider(resource=resource, id_generator=RunIds(), shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._numbers = MeterProvider(
            [PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource, shutdown_on_exit=False
        )
        self._tracer = self._spans.get_tracer("clew", version("clew"))
        meter = self._numbers.get_meter("clew", version("clew"))
        self._events = meter.create_histogram("clew.event.duration", "s", "Seconds that handling one event took")
        self._requests = meter.create_histogram(
            "http.server.request.duration", "s", "Seconds to the start of an answer"
        )
        self._deliveries = meter.create_histogram("clew.webhook.duration", "s", "Seconds of one webhook attempt")

    def begin_run(self, root: str, attributes: Attributes) -> None:
        token = _chosen_ids.set((trace_id_of(root), root_span_id_of(root)))
        try:
            self._tracer.start_span("message", Context(), SpanKind.PRODUCER, dict(attributes)).end()
        finally:
            _chosen_ids.reset(token)

    @contextlib.contextmanager
    def handling(self, consumer: str, root: str | None, attributes: Attributes) -> Iterator[StepSpan]:
        step, began = StepSpan(), perf_counter()
        with self._tracer.start_as_current_span(
            consumer,
            self._within(root),
            SpanKind.CONSUMER,
            {"messaging.consumer.group.name": consumer, **attributes},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield step
            finally:
                span.set_attribute("clew.outcome", step.outcome)
                if step.outcome == FAILED:
                    span.set_status(Status(StatusCode.ERROR, step.error))
                labels = {"consumer": consumer, "outcome": step.outcome}
                self._events.record(perf_counter() - began, labels)

    def _within(self, root: str | None) -> Context:
        """The context of a run, as if another process had begun it. Its traces are kept or dropped as a whole."""
        if root is None:
            return Context()
        trace_id = trace_id_of(root)
        decision = self._spans.sampler.should_sample(None, trace_id, "message").decision
        is_kept = decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if is_kept else TraceFlags.DEFAULT)
        parent = SpanContext(trace_id, root_span_id_of(root), is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(parent), Context())

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        labels: dict[str, str | int] = {
            "http.request.method": method,
            "http.route": path,
            "http.response.status_code": status,
        }
        self._requests.record(seconds, labels)

    def record_delivery(self, outcome: str, seconds: float) -> None:
        self._deliveries.record(seconds, {"outcome": outcome})

    def close(self) -> None:
        """Send what is left."""
        self._spans.shutdown()
        self._numbers.shutdown()


@contextlib.asynccontextmanager
async def exporting(roles: Sequence[str]) -> AsyncIterator[None]:
    """Export what this process does within the block, and send the rest at its end for a few seconds at most."""
    chosen = OtlpTelemetry(roles)
    with using(chosen):
        yield
    try:
        async with asyncio.timeout(FLUSH_SECONDS):
            await asyncio.to_thread(chosen.close)
    except TimeoutError:
        _log.warning("the last traces and metrics were not sent: the collector does not answer")
