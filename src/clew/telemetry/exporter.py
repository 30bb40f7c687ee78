"""The thread that sends spans and metrics to a collector. Adding a span costs a microsecond and never waits; what does
not fit into the queue is dropped and counted."""

from __future__ import annotations

import gzip
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from importlib import metadata
from ssl import create_default_context
from typing import Any

import httpx2

from clew.agents.workers.worker_names import worker_name
from clew.clock import Clock, to_micros
from clew.secrecy import mask_secrets
from clew.telemetry.metrics import Metrics
from clew.telemetry.settings import TelemetrySettings
from clew.telemetry.spans import AttributeValue, FinishedSpan

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a collector that did not answer is asked again: doubled each time."""
FLUSH_SECONDS = 2.0
"""How long the end of a process waits for the last spans."""
_LATER = frozenset({408, 429, 502, 503, 504})
"""Answers after which the same spans may be sent again."""
_HEADERS = {"content-type": "application/x-protobuf", "user-agent": "clew"}

_log = logging.getLogger(__name__)


class OtlpExporter:
    """Sends spans in batches and metrics at intervals, from `start` to `close`."""

    def __init__(
        self, settings: TelemetrySettings, resource: Mapping[str, AttributeValue], metrics: Metrics, clock: Clock
    ) -> None:
        self._settings = settings
        self._resource = resource
        self._metrics = metrics
        self._clock = clock
        self._began = to_micros(clock.now()) * 1_000
        self._queue: deque[FinishedSpan] = deque()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._pause = FIRST_PAUSE
        self._retry_at = self._metrics_at = time.monotonic()
        self._is_down = False

    def start(self) -> None:
        self._thread.start()

    def add(self, span: FinishedSpan) -> None:
        """Queue a span, or drop it when too many wait. To be called in one thread."""
        if not self._settings.traces:
            return
        if self._closing.is_set() or len(self._queue) >= self._settings.queue:
            self._metrics.record_spans("dropped")
            return
        self._queue.append(span)
        if len(self._queue) >= self._settings.batch:
            self._wake.set()

    def close(self) -> None:
        """Send what waits, for a moment; the rest is dropped. Blocks for some seconds at most."""
        self._closing.set()
        self._wake.set()
        self._thread.join(2 * FLUSH_SECONDS)
        if self._queue:
            self._metrics.record_spans("dropped", len(self._queue))

    # -- in the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        settings = self._settings
        try:
            with httpx2.Client(**_client_options(settings)) as client:
                while not self._closing.is_set():
                    self._send_due(client)
                    self._wake.wait(settings.delay)
                    self._wake.clear()
                client.timeout = httpx2.Timeout(FLUSH_SECONDS)
                self._retry_at = self._metrics_at = 0.0
                self._send_due(client)
        except Exception as error:  # the end of telemetry is not the end of the process
            _log.warning("telemetry has stopped: %s", type(error).__name__, exc_info=error)

    def _send_due(self, client: httpx2.Client) -> None:
        from clew.telemetry.otlp import encode_metrics, encode_spans  # of the extra `otel`

        now, settings = time.monotonic(), self._settings
        if now < self._retry_at:
            return
        if settings.metrics and now >= self._metrics_at:
            body = encode_metrics(
                self._metrics.series(), self._resource, self._began, to_micros(self._clock.now()) * 1_000
            )
            if not self._post(client, settings.metrics, body):
                return
            self._metrics_at = now + settings.metrics_every
        while self._queue:
            batch = [self._queue[at] for at in range(min(settings.batch, len(self._queue)))]
            sent = self._post(client, settings.traces, encode_spans(batch, self._resource), spans=len(batch))
            if not sent:
                return
            for _ in batch:
                self._queue.popleft()

    def _post(self, client: httpx2.Client, url: str, body: bytes, spans: int = 0) -> bool:
        """Whether a body is done with: it was taken, or will never be."""
        packed = {"content-encoding": "gzip"} if self._settings.is_compressed else {}
        try:
            answer = client.post(url, content=gzip.compress(body) if packed else body, headers=packed)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return self._wait(url, str(error) or type(error).__name__)
        if answer.status_code in _LATER:
            return self._wait(url, f"it answers {answer.status_code}")
        if answer.is_success:
            self._note_answer(url)
            self._metrics.record_spans("exported", spans) if spans else None
            return True
        self._tell(url, f"refuses what is sent with {answer.status_code}")
        self._metrics.record_spans("refused", spans) if spans else None
        return True

    def _wait(self, url: str, why: str) -> bool:
        """Leave the collector alone for a while; what it would have got stays in the queue."""
        self._tell(url, f"does not answer ({why}); up to {self._settings.queue:,} spans wait")
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return False

    def _tell(self, url: str, what: str) -> None:
        """One line for each outage."""
        if not self._is_down:
            _log.warning("the telemetry collector at %s %s", mask_secrets(url), mask_secrets(what))
        self._is_down = True

    def _note_answer(self, url: str) -> None:
        if self._is_down:
            _log.warning("the telemetry collector at %s answers again", mask_secrets(url))
        self._is_down, self._pause = False, FIRST_PAUSE


async def try_collector(settings: TelemetrySettings, url: str) -> str:
    """Send an empty export; what is wrong with the answer, as the end of a sentence. Empty where nothing is."""
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
    """The attributes of this process, which all its spans and metrics have."""
    return {
        "service.version": metadata.version("clew"),
        "service.instance.id": worker_name(),
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
        **settings.resource,
    }
