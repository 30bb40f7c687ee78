from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.repairs.health import INTERVAL, MISSED, CallStats, is_healthy, measure, percentile
from clew.clock import ManualClock


@pytest.mark.req("SYL-115")
def test_a_silent_agent_is_unhealthy_within_three_intervals(clock: ManualClock) -> None:
    seen = clock.now()
    assert is_healthy(seen, seen + MISSED * INTERVAL - timedelta(seconds=1))
    assert not is_healthy(seen, seen + MISSED * INTERVAL)
    assert not is_healthy(None, seen)


@pytest.mark.req("SYL-115")
def test_latencies_and_the_error_rate_are_those_of_the_calls() -> None:
    stats = measure([(at / 100, at % 4 != 0) for at in range(1, 101)])
    assert stats == CallStats(calls=100, p50=0.50, p95=0.95, error_rate=0.25)
    assert measure([]) == CallStats()


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], percent: float) -> None:
    ordered = sorted(values)

    found = percentile(ordered, percent)

    assert found in ordered
    assert sum(value <= found for value in ordered) >= len(ordered) * percent / 100
