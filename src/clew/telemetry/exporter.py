"""The threads that send spans and metrics to a collector, one for each address: neither waits for the other. Adding a
span costs a microsecond and never waits. Spans that do not fit into the queue are dropped and counted."""

from __future__ import annotations

import gzip
import logging
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from importlib import metadata
from ssl import create_default_context
from typing import Any, Literal

import httpx2

from clew.agents.workers.worker_names import worker_name
from clew.clock import Clock, to_micros
from clew.secrecy import mask_secrets
from clew.telemetry.metrics import Metrics
from clew.telemetry.settings import TelemetrySettings
from clew.telemetry.spans import AttributeValue, FinishedSpan

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before the next request to a collector that did not answer. They double each time."""
FLUSH_SECONDS = 2.0
"""How long the end of a process waits for the last spans."""
_LATER = frozenset({408, 429, 502, 503, 504})
"""Answers after which the same spans may be sent again."""
_HEADERS = {"content-type": "application/x-protobuf", "user-agent": "clew"}

Outcome = Literal["exported", "refused"]

_log = logging.getLogger(__name__)


class OtlpExporter:
    """Sends spans in batches and metrics at intervals, from `start` to `close`."""

    def __init__(
        self, settings: TelemetrySettings, resource: Mapping[str, AttributeValue], metrics: Metrics, clock: Clock
    ) -> None:
        self._spans = _SpanSender(settings, resource, metrics) if settings.traces else None
        numbers = _MetricsSender(settings, resource, metrics, clock) if settings.metrics else None
        self._senders = [each for each in (self._spans, numbers) if each is not None]

    def start(self) -> None:
        for sender in self._senders:
            sender.start()

    def add(self, span: FinishedSpan) -> None:
        """Queue a span, or drop it when too many wait. To be called in one thread."""
        if self._spans is not None:
            self._spans.add(span)

    def close(self) -> None:
        """Try for a moment to send the pending spans and metrics; the rest is dropped. Blocks for some seconds at
        most."""
        for sender in self._senders:
            sender.end()
        deadline = time.monotonic() + 2 * FLUSH_SECONDS
        for sender in self._senders:
            sender.join(deadline - time.monotonic())


class _Sender(ABC):
    """A thread that sends to one address, and leaves it alone for a while when it does not answer."""

    def __init__(self, settings: TelemetrySettings, url: str, every: float) -> None:
        self._settings = settings
        self._url = url
        self._every = every
        self._wake, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._pause = FIRST_PAUSE
        self._is_down = False

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._closing.set()
        self._wake.set()

    def join(self, seconds: float) -> None:
        self._thread.join(max(0.0, seconds))

    @abstractmethod
    def _send_due(self, client: httpx2.Client) -> bool:
        """Send the pending data; False if it must be sent again later."""

    @abstractmethod
    def _waiting(self) -> str:
        """The end of a message: the data that waits while the address does not answer."""

    def _run(self) -> None:
        try:
            with httpx2.Client(**_client_options(self._settings)) as client:
                while not self._closing.is_set():
                    if self._send_due(client):
                        self._wake.wait(self._every)
                        self._wake.clear()
                    else:
                        self._closing.wait(self._pause)
                        self._pause = min(2 * self._pause, LONGEST_PAUSE)
                client.timeout = httpx2.Timeout(FLUSH_SECONDS)
                self._send_due(client)
        except Exception as error:  # the end of telemetry is not the end of the process
            _log.warning("telemetry has stopped: %s", type(error).__name__, exc_info=error)

    def _post(self, client: httpx2.Client, body: bytes) -> Outcome | None:
        """The outcome for a body; None if it has to be sent again."""
        packed = {"content-encoding": "gzip"} if self._settings.is_compressed else {}
        try:
            answer = client.post(self._url, content=gzip.compress(body) if packed else body, headers=packed)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            self._log_outage(f"does not answer ({str(error) or type(error).__name__}); {self._waiting()}")
            return None
        if answer.status_code in _LATER:
            self._log_outage(f"does not answer (it answers {answer.status_code}); {self._waiting()}")
            return None
        self._pause = FIRST_PAUSE
        if answer.is_success:
            if self._is_down:
                _log.warning("the telemetry collector at %s answers again", mask_secrets(self._url))
            self._is_down = False
            return "exported"
        self._log_outage(f"refuses the data with status {answer.status_code}")
        return "refused"

    def _log_outage(self, what: str) -> None:
        """Log an outage, once."""
        if not self._is_down:
            _log.warning("the telemetry collector at %s %s", mask_secrets(self._url), mask_secrets(what))
        self._is_down = True


class _SpanSender(_Sender):
    """Sends the spans of a queue."""

    def __init__(self, settings: TelemetrySettings, resource: Mapping[str, AttributeValue], metrics: Metrics) -> None:
        super().__init__(settings, settings.traces, settings.delay)
        self._resource = resource
        self._metrics = metrics
        self._queue: deque[FinishedSpan] = deque()

    def add(self, span: FinishedSpan) -> None:
        if self._closing.is_set() or len(self._queue) >= self._settings.queue:
            self._metrics.record_spans("dropped")
            return
        self._queue.append(span)
        if len(self._queue) >= self._settings.batch:
            self._wake.set()

    def join(self, seconds: float) -> None:
        super().join(seconds)
        if self._queue:
            self._metrics.record_spans("dropped", len(self._queue))

    def _send_due(self, client: httpx2.Client) -> bool:
        from clew.telemetry.otlp import encode_spans  # of the extra `otel`

        while self._queue:
            batch = [self._queue[at] for at in range(min(self._settings.batch, len(self._queue)))]
            outcome = self._post(client, encode_spans(batch, self._resource))
            if outcome is None:
                return False
            self._metrics.record_spans(outcome, len(batch))
            for _ in batch:
                self._queue.popleft()
        return True

    def _waiting(self) -> str:
        return f"up to {self._settings.queue:,} spans wait"


class _MetricsSender(_Sender):
    """Sends the numbers of the process as they are."""

    def __init__(
        self, settings: TelemetrySettings, resource: Mapping[str, AttributeValue], metrics: Metrics, clock: Clock
    ) -> None:
        super().__init__(settings, settings.metrics, settings.metrics_every)
        self._resource = resource
        self._metrics = metrics
        self._clock = clock
        self._began = self._now()

    def _now(self) -> int:
        return to_micros(self._clock.now()) * 1_000

    def _send_due(self, client: httpx2.Client) -> bool:
        from clew.telemetry.otlp import encode_metrics  # of the extra `otel`

        body = encode_metrics(self._metrics.series(), self._resource, self._began, self._now())
        return self._post(client, body) is not None

    def _waiting(self) -> str:
        return "metrics are sent when it does"


async def try_collector(settings: TelemetrySettings, url: str) -> str:
    """Send an empty export. Returns the problem with the answer as the end of a sentence, or an empty text if there is
    none."""
    try:
        async with httpx2.AsyncClient(**_client_options(settings)) as client:
            answer = await client.post(url, content=b"")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return f"does not answer ({str(error) or type(error).__name__})"
    return "" if answer.is_success else f"answers {answer.status_code}"


def _client_options(settings: TelemetrySettings) -> dict[str, Any]:
    return {
        "headers": {**_HEADERS, **settings.headers},
        "timeout": settings.timeout,
        "verify": create_default_context(cafile=settings.certificate) if settings.certificate else True,
    }


def process_resource(settings: TelemetrySettings) -> dict[str, AttributeValue]:
    """The attributes of this process for all its spans and metrics."""
    return {
        "service.version": metadata.version("clew"),
        "service.instance.id": worker_name(),
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
        **settings.resource,
    }
