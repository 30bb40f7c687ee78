"""The telemetry of one process: its metrics, and the exporter for them and for the spans of its work."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from typing import TYPE_CHECKING

from clew.clock import Clock
from clew.telemetry.metrics import Metrics
from clew.telemetry.settings import TelemetrySettings
from clew.trail.store import Trail

if TYPE_CHECKING:
    from clew.telemetry.exporter import OtlpExporter
    from clew.telemetry.request_spans import RequestTracer

MISSING = "the extra otel is not installed"
INSTALL = "pip install 'clew[otel]'"

_log = logging.getLogger(__name__)


class Telemetry:
    """Metrics of this process. With an exporter they go to a collector, and so do the spans of requests and of runs."""

    def __init__(
        self, settings: TelemetrySettings, clock: Clock, metrics: Metrics, exporter: OtlpExporter | None
    ) -> None:
        self.metrics = metrics
        self.requests: RequestTracer | None = None
        """Makes the spans of requests. None without an exporter."""
        self._settings = settings
        self._clock = clock
        self._exporter = exporter
        if exporter is not None:
            from clew.telemetry.request_spans import RequestTracer  # few processes have a collector

            self.requests = RequestTracer(clock, settings, exporter.add)
            exporter.start()

    def trace(self, trail: Trail) -> Trail:
        """A wrapper of the trail that makes spans of settled claims, or the trail itself without an exporter."""
        if self._exporter is None:
            return trail
        from clew.telemetry.run_tracer import RunTracer
        from clew.telemetry.traced_trail import TracedTrail

        return TracedTrail(trail, RunTracer(trail, self._clock, self._settings, self._exporter.add))

    async def close(self) -> None:
        """Send the pending spans and metrics. Returns after a few seconds at most, even if the collector does not
        answer."""
        if self._exporter is not None:
            await asyncio.to_thread(self._exporter.close)


def open_telemetry(settings: TelemetrySettings, clock: Clock) -> Telemetry:
    """The telemetry of a process. The caller must close it. If it cannot export, the reason is logged."""
    metrics = Metrics()
    for problem in settings.problems:
        _log.warning("telemetry: %s", problem)
    if not settings.is_on:
        return Telemetry(settings, clock, metrics, None)
    if not is_installed():
        _log.warning("telemetry is not exported: %s (%s)", MISSING, INSTALL)
        return Telemetry(settings, clock, metrics, None)
    from clew.telemetry.exporter import OtlpExporter, process_resource  # httpx2 takes a tenth of a second

    return Telemetry(settings, clock, metrics, OtlpExporter(settings, process_resource(settings), metrics, clock))


def is_installed() -> bool:
    """Whether the extra `otel` is installed."""
    try:
        return importlib.util.find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:
        return False
