"""Traces and metrics of a process. Without an exporter nothing is kept: `otlp` sends them to a collector.

A run and all that follows from it is one trace, whichever processes do its steps: ids are derived from the id of the
record that began it. Spans carry names and numbers, never the content of records.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Protocol

_log = logging.getLogger(__name__)

Attributes = Mapping[str, str | int]


class StepSpan:
    """One handled event while it is handled: its outcome, and the type of the error that ended it."""

    __slots__ = ("error", "outcome")

    def __init__(self) -> None:
        self.outcome = "done"
        self.error = ""

    def end_as(self, outcome: str, error: BaseException | None = None) -> None:
        self.outcome = outcome
        self.error = "" if error is None else type(error).__name__


class Telemetry(Protocol):
    """Hears what a process does. No call waits or raises."""

    def begin_run(self, root: str, attributes: Attributes) -> None:
        """A message was written that begins a run; `root` is its id."""
        ...

    def handling(
        self, consumer: str, root: str | None, attributes: Attributes
    ) -> contextlib.AbstractContextManager[StepSpan]:
        """An event is handled within the block, as a part of the run that `root` began."""
        ...

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None: ...

    def record_delivery(self, outcome: str, seconds: float) -> None: ...


class NoTelemetry:
    """See `Telemetry`. Keeps nothing."""

    def begin_run(self, root: str, attributes: Attributes) -> None:
        return

    @contextlib.contextmanager
    def handling(self, consumer: str, root: str | None, attributes: Attributes) -> Iterator[StepSpan]:
        yield StepSpan()

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        return

    def record_delivery(self, outcome: str, seconds: float) -> None:
        return


_present: Telemetry = NoTelemetry()


def telemetry() -> Telemetry:
    """The telemetry of this process."""
    return _present


@contextlib.contextmanager
def using(chosen: Telemetry) -> Iterator[None]:
    """Within the block, let another one hear what this process does."""
    global _present
    before, _present = _present, chosen
    try:
        yield
    finally:
        _present = before


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a collector."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    return environ.get("OTEL_SDK_DISABLED", "").lower() != "true" and any(environ.get(name) for name in names)


@contextlib.asynccontextmanager
async def exporting(environ: Mapping[str, str], roles: Sequence[str]) -> AsyncIterator[None]:
    """Export what this process does within the block, where the environment names a collector."""
    if not is_wanted(environ):
        yield
        return
    try:
        from clew.telemetry import otlp  # takes a fifth of a second to import, and needs an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        _log.warning("traces and metrics are not exported: pip install 'clew[otel]'")
        yield
        return
    async with otlp.exporting(roles):
        yield
