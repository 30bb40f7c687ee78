"""The health of agents: whether their workers are alive, and the latency and error rate of their newest calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

import msgspec

INTERVAL = timedelta(seconds=30)
"""A worker of an agent asks the trail for events at least this often."""
MISSED = 3
"""An agent is unhealthy when its workers were silent for this many intervals."""
WINDOW = 256
"""Latencies and error rate are those of this many newest calls."""


class CallStats(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies in seconds, None without a call; `error_rate` is between 0 and 1."""

    calls: int = 0
    p50: float | None = None
    p95: float | None = None
    error_rate: float = 0.0


def measure(calls: Sequence[tuple[float, bool]]) -> CallStats:
    """The statistics of calls. Each call is a pair of its duration in seconds and whether it succeeded."""
    latencies = sorted(seconds for seconds, _ in calls)
    failed = sum(not is_well for _, is_well in calls)
    return CallStats(
        calls=len(calls),
        p50=percentile(latencies, 50),
        p95=percentile(latencies, 95),
        error_rate=failed / len(calls) if calls else 0.0,
    )


def is_healthy(last_seen: datetime | None, now: datetime) -> bool:
    """Whether a worker of an agent was seen within the last intervals."""
    return last_seen is not None and now - last_seen < MISSED * INTERVAL


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """A percentile of sorted values: the smallest value that `percent` per cent of them do not exceed."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None
