"""The model's predictions for the measured points, and their errors."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from speed.scale_model import Load, ScaleRun, ServiceTimes

STEP_SESSIONS, STEPS, CALL_STEPS, CALL_SECONDS = 16, 20, 12, 0.05
"""As in `speed.scale_steps`."""


class Reproduced(NamedTuple):
    """A point with its measured and its simulated value."""

    name: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        return self.simulated / self.measured - 1


def reproduce(times: ServiceTimes, points: dict[str, float], cores: int) -> list[Reproduced]:
    """Each measured point beside the model's."""
    return [Reproduced(name, value, simulate_point(name, times, cores)) for name, value in points.items()]


def simulate_point(name: str, times: ServiceTimes, cores: int) -> float:
    """The value of a point by its name, such as `steps/s, 4 workers`."""
    kind, _, rest = name.partition(", ")
    if kind == "wake-up ms":
        return 1_000 * wake_up(times, has_bus=rest == "NATS")
    workers = int(rest.split()[0])
    load = Load(workers=workers, sessions=STEP_SESSIONS, steps=STEPS, cores=cores)
    if kind == "calls/s":
        load = replace(load, sessions=2 * workers, steps=CALL_STEPS, call=CALL_SECONDS, concurrency=1)
    return ScaleRun(times, load).run_once().rate


def wake_up(times: ServiceTimes, *, has_bus: bool) -> float:
    """The median seconds from a write to the handler of an idle worker: its commit, the notice or half an interval of
    looks, and the claim."""
    one = sum(
        line.of(1)
        for line in (
            *(times.log_worker, times.log_server, times.log_wait),
            *(times.claim_worker, times.claim_server, times.claim_wait),
        )
    )
    return one + (times.bus if has_bus else times.interval / 2 + times.look_server + times.look_worker)
