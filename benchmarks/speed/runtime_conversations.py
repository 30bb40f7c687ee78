"""Many scripted conversations at once in one process: whether each has all its events, and how evenly they progress."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from statistics import mean, median

from clew.llm.embedders import open_embedder
from clew.trail.model.selector import Selector
from speed.report import Finding, Promise, Row
from speed.step_contenders import Settings
from speed.step_conversation import ME, Talking, open_talking
from speed.step_payload import Step
from speed.timing import tell

MEASURE = "conversations side by side in one process"
CONVERSATIONS, CALLS = 100, 3
LEAST_SHARE = 0.5
PAGE = 1_000


async def measure(settings: Settings) -> list[Finding]:
    number = settings.count(CONVERSATIONS, 5)
    tell(f"{MEASURE}: {number}")
    async with AsyncExitStack() as stack:
        folder = settings.folder("conversations")
        talking = await open_talking(folder, Step(), CALLS, stack, open_embedder("wordllama"))
        await talking.hold()  # warms up
        before = await talking.trail.log.head()
        began = time.perf_counter()
        times = await asyncio.gather(*(hold(talking, began) for _ in range(number)))
        seconds = time.perf_counter() - began
        runs = await read_runs(talking, before)
        dead = await talking.trail.dead_letters.list(by=ME)
    whole = sum(is_whole(talking, run) for run in runs.values())
    return report(number, seconds, times, runs, whole if not dead else 0)


async def hold(talking: Talking, began: float) -> float:
    """Seconds until the answer."""
    await talking.hold()
    return time.perf_counter() - began


async def read_runs(talking: Talking, after: int) -> dict[str, list[tuple[int, str]]]:
    """The events of each session in order: number and schema."""
    runs: dict[str, list[tuple[int, str]]] = {}
    head = await talking.trail.log.head()
    flow = talking.talk.flow
    kinds = Selector(schema_names=(flow.message, flow.context, flow.request, flow.response, flow.answer))
    while after < head:
        events, after = await talking.trail.log.read(after, by=ME, selector=kinds, limit=PAGE)
        for event in events:
            if event.breadcrumb is not None and event.breadcrumb.session is not None:
                runs.setdefault(event.breadcrumb.session, []).append((event.seq, str(event.schema_name)))
    return runs


def is_whole(talking: Talking, run: list[tuple[int, str]]) -> bool:
    """One message, context and answer; a request and a response for each tool call and each call of the model."""
    flow, calls = talking.talk.flow, 2 * CALLS + 1
    expected = {flow.message: 1, flow.context: 1, flow.request: calls, flow.response: calls, flow.answer: 1}
    return Counter(schema for _, schema in run) == Counter(expected)


def evenness(runs: dict[str, list[tuple[int, str]]]) -> float:
    """The progress of the slowest conversation, as a share of the mean, when half of all steps are done."""
    numbers = sorted(seq for run in runs.values() for seq, _ in run)
    middle = numbers[len(numbers) // 2]
    taken = [sum(seq <= middle for seq, _ in run) for run in runs.values()]
    return min(taken) / mean(taken)


def report(
    number: int, seconds: float, times: list[float], runs: dict[str, list[tuple[int, str]]], whole: int
) -> list[Finding]:
    events, share = sum(map(len, runs.values())), evenness(runs)
    values = {
        "s": seconds,
        "events/s": events / seconds,
        "first done s": min(times),
        "median s": median(times),
        "last s": max(times),
        "furthest behind, of mean": share,
    }
    return [
        Row(measure=MEASURE, records=number, contender="clew", values=values),
        Promise(name="conversations with all their events", records=number, value=whole / number, target=1.0),
        Promise(name="steps of the furthest behind, of mean", records=number, value=share, target=LEAST_SHARE),
    ]
