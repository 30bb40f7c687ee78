"""Who is well: heartbeats, latencies and error rates of everything that runs, by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput

INTERVAL = 10.0
MISSED = 3
"""Who says nothing for so many intervals is not well."""
WINDOW = 256
"""Of so many of the last calls latencies and error rate are told."""


class HealthStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How one is. Latencies are in seconds, None before the first call; `error_rate` is between 0 and 1."""

    name: str
    is_healthy: bool
    last_beat: datetime
    calls: int
    failed: int
    p50: float | None
    p95: float | None
    error_rate: float


class _Record(msgspec.Struct, kw_only=True):
    last_beat: datetime
    recent: deque[tuple[float, bool]]
    calls: int = 0
    failed: int = 0


class Health:
    """What was heard of each name in this process. A name is known from its first beat or call on."""

    def __init__(self, clock: Clock, *, interval: float = INTERVAL) -> None:
        if interval <= 0:
            raise InvalidInput("interval", "must be more than 0 seconds")
        self._clock = clock
        self.interval = interval
        self._records: dict[str, _Record] = {}

    def beat(self, name: str) -> None:
        """It is alive."""
        self._record(name).last_beat = self._clock.now()

    def done(self, name: str, seconds: float, *, ok: bool) -> None:
        """A call of it ended, which is a sign of life as well."""
        self.beat(name)
        record = self._record(name)
        record.recent.append((seconds, ok))
        record.calls += 1
        record.failed += not ok

    def forget(self, name: str) -> None:
        """It ended on purpose, and is not missed."""
        self._records.pop(name, None)

    def status(self) -> tuple[HealthStatus, ...]:
        """Everybody by name."""
        return tuple(self._status(name, record) for name, record in sorted(self._records.items()))

    def _record(self, name: str) -> _Record:
        if name not in self._records:
            self._records[name] = _Record(last_beat=self._clock.now(), recent=deque(maxlen=WINDOW))
        return self._records[name]

    def _status(self, name: str, record: _Record) -> HealthStatus:
        silence = self._clock.now() - record.last_beat
        latencies = sorted(seconds for seconds, _ in record.recent)
        failed = sum(not ok for _, ok in record.recent)
        return HealthStatus(
            name=name,
            is_healthy=silence < timedelta(seconds=MISSED * self.interval),
            last_beat=record.last_beat,
            calls=record.calls,
            failed=record.failed,
            p50=percentile(latencies, 50),
            p95=percentile(latencies, 95),
            error_rate=failed / len(record.recent) if record.recent else 0.0,
        )


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The smallest of these sorted values that at least `percent` of 100 of them do not exceed."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None
