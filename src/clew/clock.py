"""Time, ids and randomness. They are passed in, so that tests can control them."""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# Seeded once for each process. A system call for each id would let another thread run in between.
_random = random.Random()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def to_micros(moment: datetime) -> int:
    """The microseconds since 1970: how a trail stores a time."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(0, 0, micros)


class Clock(Protocol):
    def now(self) -> datetime:
        """The time as aware UTC."""
        ...

    def new_id(self) -> str:
        """A new unique id: 36 characters, sorting roughly by time."""
        ...


class SystemClock:
    """Reads the wall clock once and then adds the monotonic clock, so that a jump of the wall clock affects neither
    order nor expiry in a running process."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._origin = time.monotonic_ns()

    def now(self) -> datetime:
        return self._started + timedelta(0, 0, (time.monotonic_ns() - self._origin) // 1000)

    def new_id(self) -> str:
        """A version 7 UUID: 48 bits of milliseconds, 12 bits of their fraction, then 62 random bits. The ids of one
        thread sort in the order of their creation, so sorting by id also sorts by age."""
        millis, rest = divmod(time.time_ns(), 1_000_000)
        value = (millis & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | rest * 4096 // 1_000_000 << 64
        value |= 0x2 << 62 | _random.getrandbits(62)
        digits = f"{value:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class ManualClock:
    """A clock that moves only when set, for tests and replays."""

    def __init__(self, start: datetime | None = None) -> None:
        self.time = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._ids = SystemClock()

    def now(self) -> datetime:
        return self.time

    def advance(self, **amount: float) -> None:
        self.time += timedelta(**amount)

    def new_id(self) -> str:
        return self._ids.new_id()


class SteadyClock:
    """The time of a trail: it advances with a clock, never goes backwards, and is never before a stored time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._ahead = 0
        self._lock = threading.Lock()

    def observe(self, stored: int) -> None:
        """Record a stored time. `now` never returns an earlier time."""
        with self._lock:
            self._last = max(self._last, stored)

    def now(self) -> int:
        """Microseconds for order, leases and retries. When the clock is set back, the difference is added from then
        on."""
        with self._lock:
            clock = to_micros(self._clock.now())
            self._ahead = max(self._ahead, self._last - clock)
            self._last = clock + self._ahead
            return self._last

    def wall(self) -> int:
        """Microseconds of the underlying clock, for expiry, which refers to the actual time of day."""
        return to_micros(self._clock.now())
