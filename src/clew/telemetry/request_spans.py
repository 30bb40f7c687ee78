"""The spans of HTTP requests. Runs that a request starts belong to its span, even if another process runs them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from clew.clock import Clock, to_micros
from clew.telemetry.metrics import METHODS
from clew.telemetry.settings import TelemetrySettings
from clew.telemetry.spans import FinishedSpan, SpanKind
from clew.trail.work.trace_context import TraceContext

PROBES = ("/health", "/ready", "/metrics")
"""Paths that machines poll. They are not traced."""


class RequestSpan(NamedTuple):
    """A request that is being answered: its place in a trace, its parent span, and its start time."""

    context: TraceContext
    parent_id: str
    began: datetime


class RequestTracer:
    """Makes one span for each request, when its answer begins."""

    def __init__(self, clock: Clock, settings: TelemetrySettings, export: Callable[[FinishedSpan], None]) -> None:
        self._clock = clock
        self._settings = settings
        self._export = export

    def begin(self, given: TraceContext | None) -> RequestSpan:
        """Start a span in the trace that a request came with, or in a new trace."""
        trace_id = secrets.token_hex(16) if given is None else given.trace_id
        is_sampled = self._settings.is_sampled(trace_id, given)
        context = TraceContext(trace_id, secrets.token_hex(8), is_sampled)
        return RequestSpan(context, "" if given is None else given.span_id, self._clock.now())

    def end(self, span: RequestSpan, method: str, path: str, status: int) -> None:
        """End a span and export it. `path` is the template of its route."""
        if not span.context.is_sampled or path in PROBES:
            return
        known = method if method in METHODS else "_OTHER"
        self._export(
            FinishedSpan(
                trace_id=span.context.trace_id,
                span_id=span.context.span_id,
                parent_id=span.parent_id,
                name=f"{known} {path}",
                kind=SpanKind.SERVER,
                start=to_micros(span.began) * 1_000,
                end=to_micros(max(span.began, self._clock.now())) * 1_000,
                attributes={
                    "http.request.method": known,
                    "http.route": path,
                    "http.response.status_code": status,
                },
                error=str(status) if status >= 500 else "",
            )
        )
