from __future__ import annotations

import pytest

from clew.agents.repairs.circuit_breaker import Breaker
from clew.clock import ManualClock
from clew.errors import InvalidInput


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    return Breaker(clock, failures=3, cool_down=30)


def fail(breaker: Breaker, times: int, name: str = "librarian") -> None:
    for _ in range(times):
        assert breaker.enter(name)
        breaker.failed(name)


@pytest.mark.req("SYL-114")
def test_it_opens_half_opens_after_the_cool_down_and_closes_on_success(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 2)
    assert breaker.state("librarian") == "closed"
    fail(breaker, 1)
    assert (breaker.state("librarian"), breaker.enter("librarian"), breaker.wait("librarian")) == ("open", False, 30)

    clock.advance(seconds=29.9)
    assert not breaker.enter("librarian")
    clock.advance(seconds=0.1)
    assert breaker.state("librarian") == "half_open"
    assert breaker.enter("librarian")
    breaker.succeeded("librarian")

    assert breaker.state("librarian") == "closed"
    fail(breaker, 2)
    assert breaker.state("librarian") == "closed"


@pytest.mark.req("SYL-114")
def test_a_failing_probe_opens_it_again_for_a_whole_cool_down(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 3)
    clock.advance(seconds=30)
    fail(breaker, 1)

    assert breaker.state("librarian") == "open"
    clock.advance(seconds=29)
    assert not breaker.enter("librarian")
    clock.advance(seconds=1)
    assert breaker.enter("librarian")


def test_only_one_probe_passes_and_a_lost_probe_does_not_block_forever(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 3)
    clock.advance(seconds=30)

    assert breaker.enter("librarian")
    assert not breaker.enter("librarian")
    breaker.abandoned("librarian")
    assert breaker.enter("librarian")
    clock.advance(seconds=30)
    assert breaker.enter("librarian")


def test_each_name_has_a_circuit_of_its_own(breaker: Breaker) -> None:
    fail(breaker, 3)

    assert breaker.enter("guide")
    breaker.abandoned("guide")
    breaker.succeeded("guide")
    assert breaker.states() == {"librarian": "open"}


def test_a_success_resets_the_count(breaker: Breaker) -> None:
    for _ in range(10):
        fail(breaker, 2)
        breaker.succeeded("librarian")

    assert breaker.state("librarian") == "closed"


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"cool_down": -1}])
def test_invalid_settings_are_refused(clock: ManualClock, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Breaker(clock, **wrong)
