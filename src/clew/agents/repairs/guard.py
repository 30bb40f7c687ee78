"""One guarded call: refused while its circuit is open, measured, logged, and counted as success or failure.

Every call that can fail (an agent's step, a tool, a model) goes through a guard. Retries are the work of the trail: a
handler that raises is claimed again by its retry policy, and becomes a dead letter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from clew.agents.repairs.circuit_breaker import Breaker
from clew.agents.repairs.failures import classify
from clew.clock import Clock
from clew.errors import BudgetExceeded, Busy, CircuitOpen, Unreachable
from clew.trail.work.claims import describe

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Guard:
    """A circuit breaker around calls by name. Safe to use from several tasks."""

    def __init__(self, clock: Clock, *, breaker: Breaker | None = None) -> None:
        self._clock = clock
        self.breaker = breaker or Breaker(clock)

    async def run(
        self,
        name: str,
        call: Callable[[], Awaitable[Result]],
        *,
        fallback: Callable[[], Awaitable[Result]] | None = None,
    ) -> Result:
        """Return the result of the call, or raise its error. While the circuit is open, return the result of `fallback`
        instead, or raise CircuitOpen if there is no fallback."""
        if not self.breaker.enter(name):
            if fallback is not None:
                return await fallback()
            raise CircuitOpen(name, self.breaker.wait(name))
        started = self._clock.now()
        error: BaseException | None = None
        try:
            return await call()
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._tell(name, (self._clock.now() - started).total_seconds(), error)

    def _tell(self, name: str, seconds: float, error: BaseException | None) -> None:
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
            self.breaker.abandoned(name)
            _log.info("%s was cancelled after %.3f s", name, seconds)
            return
        is_well = error is None or not is_fault(error)
        (self.breaker.succeeded if is_well else self.breaker.failed)(name)
        outcome = "done" if error is None else describe(error)
        _log.info("%s took %.3f s: %s", name, seconds, outcome)  # a failure has its own record


def is_fault(error: BaseException) -> bool:
    """Whether an error counts as a failure of the called tool or model. Invalid calls, denials, exceeded budgets, held
    locks and an unreachable database server do not count."""
    return not isinstance(error, BudgetExceeded | Busy | Unreachable) and classify(error) not in (
        "validation",
        "permission",
    )
