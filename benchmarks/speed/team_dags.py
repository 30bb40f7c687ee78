"""The makespan of plans whose tasks wait instead of working, next to the lower bound: the longest path, or all work on
four agents, whichever is longer."""

from __future__ import annotations

import random
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from speed.report import Finding, Promise, Row
from speed.step_contenders import Settings
from speed.team_crew import open_crew, plan_of, script
from speed.timing import tell

MEASURE = "makespan of plans at concurrency 4"
AGENTS = 4
MOST = 1.15
SHORTEST, LONGEST = 1.0, 5.0
"""Seconds that a task waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTask:
    """A task of a plan: how long it waits, and the earlier tasks that it needs."""

    seconds: float
    needs: tuple[int, ...] = ()


Dag = list[WaitingTask]


def layered(seed: int, layers: int = 4, width: int = 4) -> Dag:
    """Each task needs all tasks of the layer before it."""
    chance, tasks = random.Random(seed), list[WaitingTask]()
    for layer in range(layers):
        needs = tuple(range((layer - 1) * width, layer * width)) if layer else ()
        tasks += [WaitingTask(seconds=_seconds(chance), needs=needs) for _ in range(width)]
    return tasks


def irregular(seed: int, size: int = 20) -> Dag:
    """Each task needs up to three of the eight tasks before it."""
    chance, tasks = random.Random(seed), list[WaitingTask]()
    for at in range(size):
        near = range(max(0, at - 8), at)
        needs = tuple(sorted(chance.sample(near, min(len(near), chance.randint(0, 3)))))
        tasks.append(WaitingTask(seconds=_seconds(chance), needs=needs))
    return tasks


def _seconds(chance: random.Random) -> float:
    return round(chance.uniform(SHORTEST, LONGEST), 2)


def lower_bound(dag: Dag) -> float:
    """No schedule on four agents is shorter."""
    ends: list[float] = []
    for task in dag:
        ends.append(max((ends[each] for each in task.needs), default=0.0) + task.seconds)
    return max(*ends, sum(task.seconds for task in dag) / AGENTS)


def in_plan_order(dag: Dag) -> float:
    """The makespan without any overhead, if a free agent takes the first task of the plan that can start."""
    ends: dict[int, float] = {}
    now, pending = 0.0, list(range(len(dag)))
    while pending:
        running = sum(end > now for end in ends.values())
        ready = [at for at in pending if all(ends.get(each, now + 1) <= now for each in dag[at].needs)]
        for at in ready[: AGENTS - running]:
            ends[at] = now + dag[at].seconds
            pending.remove(at)
        now = min((end for end in ends.values() if end > now), default=now)
    return max(ends.values())


async def measure(settings: Settings) -> list[Finding]:
    seeds = settings.count(2, 1)
    dags = [(f"layered {seed}", layered(seed)) for seed in range(1, seeds + 1)]
    dags += [(f"irregular {seed}", irregular(seed)) for seed in range(1, seeds + 1)]
    findings: list[Finding] = []
    for name, dag in dags:
        bound, ideal = lower_bound(dag), in_plan_order(dag)
        tell(f"{MEASURE}: {name}, at least {bound:.1f} s")
        took = await carry_out(settings, name, dag)
        values = {"s": took, "bound s": bound, "without overhead s": ideal, "of bound": took / bound}
        findings += [
            Row(measure=MEASURE, records=len(dag), contender=name, values=values),
            Promise(
                name=f"makespan, {name}, of the bound",
                records=len(dag),
                value=took / bound,
                target=MOST,
                at_least=False,
            ),
        ]
    return findings


async def carry_out(settings: Settings, name: str, dag: Dag) -> float:
    """Seconds from the approval of the plan to the end of the request, with its last inspection."""
    nodes = [
        {
            "id": f"n{at}",
            "prompt": f"Write node {at}.",
            "files": [f"n{at}.py"],
            "depends_on": [f"n{each}" for each in task.needs],
        }
        for at, task in enumerate(dag)
    ]
    waits: list[list[dict[str, Any]]] = [
        [
            {"user": f"Write node {at}.", "call": {"work": {"seconds": task.seconds}}},
            {"call": {"signal": {"summary": "done"}}},
            {"say": "Done."},
        ]
        for at, task in enumerate(dag)
    ]
    async with AsyncExitStack() as stack:
        folder = settings.folder(f"dag-{name.replace(' ', '-')}")
        crew = await open_crew(folder, script(plan_of(nodes, AGENTS), *waits), stack)
        session = await crew.start(approves_plan=False, max_agents=AGENTS)
        await crew.planned(session)
        began = time.perf_counter()
        await crew.approve(session)
        await crew.end(session)
        return time.perf_counter() - began
