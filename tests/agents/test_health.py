from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.repairs.health import WINDOW, Health, percentile
from clew.clock import ManualClock
from clew.errors import InvalidInput


@pytest.mark.req("SYL-115")
def test_a_silent_agent_is_unhealthy_within_three_intervals(clock: ManualClock) -> None:
    health = Health(clock, interval=10)
    health.beat("quiet")
    health.beat("lively")
    for _ in range(3):
        assert all(each.is_healthy for each in health.status())
        clock.advance(seconds=10)
        health.beat("lively")

    assert {each.name: each.is_healthy for each in health.status()} == {"lively": True, "quiet": False}
    health.beat("quiet")
    assert all(each.is_healthy for each in health.status())


@pytest.mark.req("SYL-115")
def test_the_status_shows_latencies_and_the_error_rate(clock: ManualClock) -> None:
    health = Health(clock)
    for at in range(1, 101):
        health.done("librarian", at / 100, ok=at % 4 != 0)

    [status] = health.status()

    assert (status.p50, status.p95) == (0.50, 0.95)
    assert (status.calls, status.failed, status.error_rate) == (100, 25, 0.25)


def test_only_the_last_calls_count_for_latencies_and_error_rate(clock: ManualClock) -> None:
    health = Health(clock)
    for _ in range(WINDOW):
        health.done("a", 9.0, ok=False)
    for _ in range(WINDOW):
        health.done("a", 1.0, ok=True)

    [status] = health.status()

    assert (status.p95, status.error_rate, status.calls) == (1.0, 0.0, 2 * WINDOW)


def test_who_has_only_beaten_has_no_latency_and_who_ended_is_not_missed(clock: ManualClock) -> None:
    health = Health(clock)
    health.beat("a")
    health.beat("b")
    health.forget("b")
    health.forget("c")

    [status] = health.status()

    assert (status.name, status.p50, status.p95, status.error_rate) == ("a", None, None, 0.0)


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], percent: float) -> None:
    ordered = sorted(values)

    found = percentile(ordered, percent)

    assert found in ordered
    assert sum(value <= found for value in ordered) >= len(ordered) * percent / 100


def test_an_interval_must_be_more_than_nothing(clock: ManualClock) -> None:
    with pytest.raises(InvalidInput):
        Health(clock, interval=0)
