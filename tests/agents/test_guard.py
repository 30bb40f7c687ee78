from __future__ import annotations

import asyncio
import logging

import pytest

from clew.agents.repairs.circuit_breaker import Breaker
from clew.agents.repairs.guard import Guard, is_fault
from clew.clock import ManualClock
from clew.errors import AccessDenied, BudgetExceeded, Busy, CircuitOpen, InvalidInput, ModelError, Unreachable


@pytest.fixture
def guard(clock: ManualClock) -> Guard:
    return Guard(clock, breaker=Breaker(clock, failures=2, cool_down=30))


async def broken() -> str:
    raise ConnectionResetError("gone")


async def well() -> str:
    return "here"


@pytest.mark.req("SYL-114")
async def test_an_open_circuit_is_short_cut_to_the_fallback_or_an_error(guard: Guard, clock: ManualClock) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            await guard.run("guide", broken)

    with pytest.raises(CircuitOpen, match="Try again in 30 s"):
        await guard.run("guide", well)
    assert await guard.run("guide", broken, fallback=well) == "here"
    clock.advance(seconds=30)
    assert await guard.run("guide", well) == "here"
    assert guard.breaker.state("guide") == "closed"


@pytest.mark.req("SYL-115")
@pytest.mark.req("O19")
async def test_every_call_is_measured_and_logged(
    guard: Guard, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def slow() -> None:
        clock.advance(seconds=2)

    with caplog.at_level(logging.INFO, logger="clew.agents.repairs.guard"):
        await guard.run("guide", slow)
        with pytest.raises(ConnectionResetError):
            await guard.run("guide", broken)

    assert [record.getMessage() for record in caplog.records] == [
        "guide took 2.000 s: done",
        "guide took 0.000 s: ConnectionResetError: gone",
    ]


async def test_a_wrong_question_says_nothing_against_who_was_asked(guard: Guard) -> None:
    async def refuse() -> None:
        raise InvalidInput("path", "is empty")

    for _ in range(5):
        with pytest.raises(InvalidInput):
            await guard.run("guide", refuse)

    assert guard.breaker.state("guide") == "closed"


async def test_a_probe_that_is_cancelled_makes_room_for_another(guard: Guard, clock: ManualClock) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            await guard.run("guide", broken)
    clock.advance(seconds=30)
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    probe = asyncio.create_task(guard.run("guide", hang))
    await begun.wait()
    with pytest.raises(CircuitOpen):
        await guard.run("guide", well)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe

    assert await guard.run("guide", well) == "here"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModelError("server", "503"), True),
        (TimeoutError(), True),
        (RuntimeError(), True),
        (AccessDenied("read", ["curator"]), False),
        (BudgetExceeded("a", "tokens"), False),
        (ModelError("too_long", "too long"), False),
        (Busy("somebody is writing maths.py"), False),
        (Unreachable("the server does not answer"), False),
    ],
)
def test_errors_that_count_as_failures_of_the_callee(error: Exception, expected: bool) -> None:
    assert is_fault(error) is expected
