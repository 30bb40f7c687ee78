"""A discrete-event simulation in a page: processes are generators that sleep, take resources and wait for signals."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator
from itertools import count
from typing import Any

Process = Generator[Any, None, None]
"""Yields seconds to sleep, a Resource to take, or a Signal to wait for."""


class Simulation:
    """Runs processes in the order of simulated time, those of one moment in the order in which they were due."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Process]] = []
        self._numbers = count()

    def start(self, process: Process, after: float = 0.0) -> None:
        heapq.heappush(self._due, (self.now + after, next(self._numbers), process))

    def run(self, until: float = float("inf")) -> None:
        """Run until nothing is due, or nothing before `until`."""
        while self._due and self._due[0][0] <= until:
            self.now, _, process = heapq.heappop(self._due)
            self._resume(process)
        if until != float("inf"):
            self.now = max(self.now, until)

    def _resume(self, process: Process) -> None:
        for asked in process:
            if isinstance(asked, Resource):
                if not asked.take(process):
                    return
            elif isinstance(asked, Signal):
                if not asked.wait(process):
                    return
            else:
                self.start(process, asked)
                return


class Resource:
    """A number of units; a process that finds none free waits in a queue."""

    def __init__(self, simulation: Simulation, capacity: int = 1) -> None:
        self._simulation = simulation
        self.capacity = capacity
        self._used = 0
        self._line: deque[Process] = deque()
        self.busy = 0.0
        """Seconds of use, of all units together."""

    def take(self, process: Process) -> bool:
        if self._used < self.capacity:
            self._used += 1
            return True
        self._line.append(process)
        return False

    def release(self, held: float) -> None:
        """Give a unit back that was held for so many seconds."""
        self.busy += held
        if self._line:
            self._simulation.start(self._line.popleft())
        else:
            self._used -= 1

    def use(self, seconds: float) -> Process:
        """Hold a unit for a while."""
        yield self
        yield seconds
        self.release(seconds)


class Signal:
    """Wakes one process that waits. A signal without a waiting process is stored once."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._waiting: Process | None = None
        self._is_fired = False

    @property
    def is_awaited(self) -> bool:
        return self._waiting is not None

    def wait(self, process: Process) -> bool:
        if self._is_fired:
            self._is_fired = False
            return True
        self._waiting = process
        return False

    def fire(self) -> None:
        if self._waiting is not None:
            self._simulation.start(self._waiting)
            self._waiting = None
        else:
            self._is_fired = True
