"""A model of workers on one PostgreSQL with one ordered log, to run in the simulation.

A worker has one core at most, for two threads. One claims: it takes what is due, as much as it has room for, and starts
a handler for each, which may wait for a model. The other commits: it takes all that the handlers have written, locks
the log, writes, flushes and unlocks. Committed events are due at once. The worker that committed them claims again;
others notice them at their next poll or from the bus.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from speed.simulation import Process, Resource, Signal, Simulation

GROUP = 256
"""The most writes of one commit, as in the log writer of the trail."""


class Line(NamedTuple):
    """Seconds for a batch: those of any batch, and those for each of its events."""

    fixed: float
    each: float

    def of(self, count: int) -> float:
        return self.fixed + self.each * count


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTimes:
    """The times of the parts of a step. All are measured (`speed.scale_calibration`)."""

    claim_worker: Line
    claim_server: Line
    claim_wait: Line
    log_worker: Line
    log_server: Line
    log_wait: Line
    """The part of a commit that uses no processor: flush and wake-ups of threads."""
    look_worker: float
    look_server: float
    interval: float
    """Seconds between two looks of a process at the end of the log."""
    bus: float
    """Seconds that a notice takes over the bus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The simulated system: a machine, workers and sessions. A session thinks, and then takes a turn of some steps;
    without `think` it takes one turn."""

    workers: int
    sessions: int
    steps: int
    cores: int
    """Of the server, which the workers share when `is_one_machine`."""
    call: float = 0.0
    """Mean seconds of the model call of a step."""
    is_call_fixed: bool = True
    calls_of: int = 1
    """One of this number of steps waits for a model."""
    think: float | None = None
    concurrency: int = 32
    is_one_machine: bool = True
    round_trip: float = 0.0
    """Seconds that the network adds to a claim and to a commit."""
    has_bus: bool = False
    logs: int = 1
    """Independent logs, as sharding by owner would give."""


class Outcome(NamedTuple):
    """The results of the measured part of the run."""

    steps: int
    seconds: float
    waits: list[float]
    """Seconds that each measured step took beside its model call."""
    use: dict[str, float]
    """The share of the time in which a resource was in use."""
    commits: int
    backlog: int
    """Events that were due at the end."""

    @property
    def rate(self) -> float:
        return self.steps / self.seconds


class _Session:
    __slots__ = ("left", "log", "since")

    def __init__(self, log: _Log) -> None:
        self.log = log
        self.left = 0
        self.since = 0.0


class _Log:
    """A log with its lock, and the events that are due on it."""

    def __init__(self, simulation: Simulation) -> None:
        self.lock = Resource(simulation)
        self.due: deque[_Session] = deque()
        self.workers: list[_Worker] = []
        self.head = 0


class _Worker:
    def __init__(self, run: ScaleRun, log: _Log, core: Resource) -> None:
        self.log = log
        self.core = core
        self.interpreter = Resource(run.simulation)
        self.news = Signal(run.simulation)
        self.has_writes = Signal(run.simulation)
        self.writes: deque[_Session] = deque()
        self.running = 0
        self.seen = 0


class ScaleRun:
    """One run of a load."""

    def __init__(self, times: ServiceTimes, load: Load, seed: int = 7) -> None:
        self._times = times
        self._load = load
        self._random = random.Random(seed)
        self.simulation = simulation = Simulation()
        self._server = Resource(simulation, load.cores)
        self._logs = [_Log(simulation) for _ in range(load.logs)]
        self._workers: list[_Worker] = []
        for number in range(load.workers):
            log = self._logs[number % load.logs]
            core = self._server if load.is_one_machine else Resource(simulation)
            worker = _Worker(self, log, core)
            log.workers.append(worker)
            self._workers.append(worker)
            simulation.start(self._claim(worker))
            simulation.start(self._commit(worker))
            simulation.start(self._look(worker), self._random.uniform(0, times.interval))
        self._steps, self._commits, self._unfinished = 0, 0, load.sessions
        self._ended = 0.0
        self._waits: list[float] = []

    # -- runs ---------------------------------------------------------------------------------------------

    def run_once(self) -> Outcome:
        """Each session takes one turn, as in `make bench-scale`."""
        for number in range(self._load.sessions):
            session = _Session(self._logs[number % self._load.logs])
            self._ask(session)
        while self._unfinished:
            self.simulation.run(self.simulation.now + 0.1)
        return self._outcome(self._ended)

    def run_for(self, warm_up: float, seconds: float) -> Outcome:
        """Sessions arrive, think and continue; measured after the warm-up."""
        assert self._load.think is not None
        for number in range(self._load.sessions):
            session = _Session(self._logs[number % self._load.logs])
            self.simulation.start(self._think(session), self._random.uniform(0, self._load.think))
        self.simulation.run(warm_up)
        self._steps = self._commits = 0
        self._waits.clear()
        for resource in self._resources():
            resource.busy = 0.0
        self.simulation.run(warm_up + seconds)
        return self._outcome(seconds)

    def _resources(self) -> list[Resource]:
        return [self._server, *(log.lock for log in self._logs), *(each.interpreter for each in self._workers)]

    def _outcome(self, seconds: float) -> Outcome:
        def share(resources: list[Resource]) -> float:
            return sum(each.busy / each.capacity for each in resources) / len(resources) / seconds

        use = {
            "server": share([self._server]),
            "workers": share([each.interpreter for each in self._workers]),
            "log": share([log.lock for log in self._logs]),
        }
        backlog = sum(len(log.due) for log in self._logs)
        return Outcome(self._steps, seconds, self._waits, use, self._commits, backlog)

    # -- sessions -----------------------------------------------------------------------------------------

    def _think(self, session: _Session) -> Process:
        self._ask(session)
        yield from ()

    def _ask(self, session: _Session) -> None:
        """Begin a turn: its message is written by one of the workers' machines, as a step is."""
        session.left, session.since = self._load.steps, self.simulation.now
        self._write(self._random.choice(session.log.workers), session)

    def _write(self, worker: _Worker, session: _Session) -> None:
        worker.writes.append(session)
        worker.has_writes.fire()

    def _committed(self, session: _Session) -> None:
        if session.left:
            session.log.due.append(session)
            return
        self._unfinished -= 1
        self._ended = self.simulation.now
        if self._load.think is not None:
            self.simulation.start(self._think(session), self._random.expovariate(1 / self._load.think))

    # -- threads of a worker ------------------------------------------------------------------------------

    def _busy(self, worker: _Worker, seconds: float) -> Process:
        yield worker.interpreter
        yield worker.core
        yield seconds
        worker.core.release(seconds)
        worker.interpreter.release(seconds)

    def _claim(self, worker: _Worker) -> Process:
        times, load, log = self._times, self._load, worker.log
        while True:
            yield worker.news
            while worker.running < load.concurrency:
                worker.seen = log.head
                room = load.concurrency - worker.running
                count = min(len(log.due), room)
                yield load.round_trip + times.claim_wait.of(count)
                yield from self._server.use(times.claim_server.of(count))
                taken = [log.due.popleft() for _ in range(min(count, len(log.due)))]
                yield from self._busy(worker, times.claim_worker.fixed)
                for session in taken:  # the first ones are written while the next ones begin
                    worker.running += 1
                    yield from self._busy(worker, times.claim_worker.each)
                    self.simulation.start(self._handle(worker, session))
                if count < room:
                    break

    def _handle(self, worker: _Worker, session: _Session) -> Process:
        session.left -= 1
        call = 0.0
        if self._load.call and session.left % self._load.calls_of == 0:
            mean = self._load.call
            call = mean if self._load.is_call_fixed else self._random.expovariate(1 / mean)
            yield call
        session.since += call
        self._write(worker, session)

    def _commit(self, worker: _Worker) -> Process:
        times, load, log = self._times, self._load, worker.log
        while True:
            if not worker.writes:
                yield worker.has_writes
                continue
            group = [worker.writes.popleft() for _ in range(min(GROUP, len(worker.writes)))]
            count = len(group)
            yield from self._busy(worker, times.log_worker.of(count))
            yield log.lock
            began = self.simulation.now
            yield from self._server.use(times.log_server.of(count))
            yield load.round_trip + times.log_wait.of(count)
            log.lock.release(self.simulation.now - began)
            log.head += count
            self._commits += 1
            now = self.simulation.now
            for session in group:
                if session.left < load.steps:  # a step, not the message of a turn
                    worker.running -= 1
                    self._steps += 1
                    self._waits.append(now - session.since)
                session.since = now
                self._committed(session)
            worker.news.fire()
            if load.has_bus:
                for other in log.workers:
                    if other is not worker and other.news.is_awaited:
                        self.simulation.start(self._notify(other), times.bus)

    def _notify(self, worker: _Worker) -> Process:
        worker.news.fire()
        yield from ()

    def _look(self, worker: _Worker) -> Process:
        """Look at the end of the log from time to time, while nothing is under way."""
        times = self._times
        while True:
            if worker.news.is_awaited:
                yield from self._server.use(times.look_server)
                yield from self._busy(worker, times.look_worker)
                if worker.log.head > worker.seen and worker.news.is_awaited:
                    worker.news.fire()
            yield times.interval
