"""A small chain of consumers for test_handler_crashes.py, and a process that runs it and can be killed at one point.

plan: one request → two drafts; act: a draft → an outside effect and a result; report: a result → a final.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Claim, Consumer, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import ClaimLoop
from tests.faults.processes import open_at

ME = Principal(owner_id="acme", agent_id="chain")
LEASE = timedelta(milliseconds=250)
RETRY = RetryPolicy(attempts=20, backoff=0.01)
STEPS = {"plan": "request.v1", "act": "draft.v1", "report": "result.v1"}
EVENTS = (("plan", "job"), ("act", "job-1"), ("act", "job-2"), ("report", "job-1"), ("report", "job-2"))
"""Every event of a run, by the step that handles it and the name of its breadcrumb."""

Point = Literal["before", "inside", "finishing", "after"]
POINTS: tuple[Point, ...] = ("before", "inside", "finishing", "after")


@dataclass(frozen=True, slots=True)
class Doom:
    """The point at which the process dies, before or after an event."""

    step: str
    name: str
    point: Point

    def strike(self, claim: Claim, point: Point) -> None:
        if (self.step, self.name, self.point) == (claim.consumer, name_of(claim), point):
            os.kill(os.getpid(), signal.SIGKILL)


NOWHERE = Doom("", "", "before")


class Outside:
    """A system that recognises a repeated effect by its key: one file for each key, made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "outside"
        self._folder.mkdir(exist_ok=True)

    def act(self, key: str, name: str) -> None:
        try:
            with (self._folder / key.replace("/", "_")).open("x") as file:
                file.write(name)
        except FileExistsError:
            return

    def effects(self) -> list[str]:
        return sorted(file.read_text() for file in self._folder.iterdir())


def consumers() -> list[Consumer]:
    return [
        Consumer(name=step, selector=Selector(schema_name=schema), retry=RETRY, start="beginning")
        for step, schema in STEPS.items()
    ]


def name_of(claim: Claim) -> str:
    assert claim.event.breadcrumb is not None
    return str(claim.event.breadcrumb.context["name"])


def record(schema_name: str, name: str) -> Draft:
    return Draft(title=f"{schema_name} {name}", schema_name=schema_name, tags=("session:one",), context={"name": name})


def work_of(step: str, outside: Outside, doom: Doom) -> Callable[[Claim], Awaitable[Sequence[Draft]]]:
    async def work(claim: Claim) -> Sequence[Draft]:
        name = name_of(claim)
        doom.strike(claim, "before")
        if step == "act":
            outside.act(claim.key, name)
        doom.strike(claim, "inside")
        match step:
            case "plan":
                return [record("draft.v1", f"{name}-{number}") for number in (1, 2)]
            case "act":
                return [record("result.v1", name)]
            case _:
                return [record("final.v1", name)]

    return work


class MortalDeliveries:
    """Deliveries that can die while an event is finished, or right after."""

    def __init__(self, trail: Trail, doom: Doom) -> None:
        self._deliveries = trail.deliveries
        self._doom = doom

    def __getattr__(self, name: str) -> Any:
        return getattr(self._deliveries, name)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        finishing = asyncio.create_task(self._finish_and_die(claim, outputs, by))
        await asyncio.sleep(0)  # the write has been sent; it may or may not be committed
        self._doom.strike(claim, "finishing")
        return await asyncio.shield(
            finishing
        )  # the process must die even if the heartbeat stops the work at this moment

    async def _finish_and_die(self, claim: Claim, outputs: Sequence[Draft], by: Principal) -> list[Breadcrumb]:
        made = await self._deliveries.finish(claim, outputs, by=by)
        self._doom.strike(claim, "after")
        return made


class MortalTrail:
    """The part of a trail that a claim loop uses."""

    def __init__(self, trail: Trail, doom: Doom) -> None:
        self.log = trail.log
        self.deliveries = MortalDeliveries(trail, doom)


async def run_chain(channel: Connection, folder: Path, doom: Doom) -> None:
    """Run the three steps until doom, or until the test ends this process."""
    trail, outside = await open_at(folder), Outside(folder)
    mortal: Any = MortalTrail(trail, doom)
    loops = [
        ClaimLoop(mortal, step, work_of(step, outside, doom), by=ME, worker_id=str(os.getpid()), lease=LEASE)
        for step in STEPS
    ]
    channel.send("ready")
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(loop.run())
