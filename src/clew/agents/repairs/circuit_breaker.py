"""Circuit breakers: after too many failures, calls of a name are refused for a while, then one probe call is
allowed."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput

State = Literal["closed", "open", "half_open"]

FAILURES = 5
COOL_DOWN = 30.0


class _Circuit(msgspec.Struct, kw_only=True):
    failures: int = 0
    opened_at: datetime | None = None
    probed_at: datetime | None = None


class Breaker:
    """One circuit for each name, in this process.

    After `failures` consecutive failures a circuit is open and rejects all calls. After `cool_down` seconds it is half
    open and lets one probe call pass: success closes it, failure opens it again. If a probe reports no outcome for
    another `cool_down`, the next call may be the probe.
    """

    def __init__(self, clock: Clock, *, failures: int = FAILURES, cool_down: float = COOL_DOWN) -> None:
        if failures < 1 or cool_down < 0:
            raise InvalidInput("breaker", "needs at least 1 failure and no negative cool_down")
        self._clock = clock
        self._limit = failures
        self._cool_down = cool_down
        self._circuits: dict[str, _Circuit] = {}

    def state(self, name: str) -> State:
        circuit = self._circuits.get(name)
        if circuit is None or circuit.opened_at is None:
            return "closed"
        return "half_open" if self._since(circuit.opened_at) >= self._cool_down else "open"

    def states(self) -> dict[str, State]:
        """All names that have failed."""
        return {name: self.state(name) for name in self._circuits}

    def wait(self, name: str) -> float:
        """Seconds until a call may pass again, 0 if it may now."""
        circuit = self._circuits.get(name)
        if circuit is None or circuit.opened_at is None:
            return 0.0
        since = max(filter(None, (circuit.opened_at, circuit.probed_at)))
        return max(0.0, self._cool_down - self._since(since))

    def enter(self, name: str) -> bool:
        """Whether a call may pass now. In the half-open state the call becomes the probe, and the caller must report
        its outcome."""
        if self.wait(name) > 0:
            return False
        if self.state(name) == "half_open":
            self._circuits[name].probed_at = self._clock.now()
        return True

    def succeeded(self, name: str) -> None:
        self._circuits.pop(name, None)

    def failed(self, name: str) -> None:
        circuit = self._circuits.setdefault(name, _Circuit())
        circuit.failures += 1
        if circuit.opened_at is not None or circuit.failures >= self._limit:
            circuit.opened_at, circuit.probed_at = self._clock.now(), None

    def abandoned(self, name: str) -> None:
        """A call ended without an outcome, such as by cancellation. Another call may be the probe."""
        circuit = self._circuits.get(name)
        if circuit is not None:
            circuit.probed_at = None

    def _since(self, moment: datetime) -> float:
        return (self._clock.now() - moment).total_seconds()
