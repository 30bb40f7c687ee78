"""The overhead of a `get` of many routes over its slowest route."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from clew.catalog.domain import Domain
from clew.catalog.operations.answers import Item
from clew.tools import GuidedContent, Tool, ToolContext
from speed.catalog_stage import ME, Settings, open_filled
from speed.report import Finding, Promise, Row
from speed.timing import Rounds

MEASURE = "getting"
ROUTES, SLOWEST, MOST_MORE = 20, 0.05, 3.0


async def measure(settings: Settings) -> list[Finding]:
    """Twenty routes with increasing pauses, compared with the pause of the last one."""
    tools = [waiting_tool(at) for at in range(ROUTES)]
    domain = Domain(name="waiting", description="Tools that take their time.", tools=tools)
    items = [Item(route=str(domain.route_of(tool))) for tool in tools]
    more, alone = Rounds(), Rounds()
    async with open_filled(settings.scratch / "gets", [domain]) as catalog:
        handle = (await catalog.get(items, by=ME)).handle
        for _ in range(settings.rounds):
            more.begin()
            alone.begin()
            for _ in range(max(4, settings.samples // 3)):
                slowest = await time_slowest()
                began = time.perf_counter()
                answer = await catalog.get(items, by=ME, handle=handle)
                more.add(time.perf_counter() - began - slowest)
                alone.add(slowest)
                if answer.summary.success != ROUTES:
                    raise RuntimeError(f"only {answer.summary.success} of {ROUTES} routes gave something")
    return [
        Row(measure=MEASURE, records=ROUTES, contender="its slowest route alone", values=alone.spread()),
        Row(measure=MEASURE, records=ROUTES, contender=f"beyond it, a get of {ROUTES}", values=more.spread()),
        Promise(
            name=f"get of {ROUTES} beyond its slowest route, p50 ms",
            records=ROUTES,
            value=more.milliseconds(0.5),
            target=MOST_MORE,
            at_least=False,
        ),
    ]


async def time_slowest() -> float:
    """The time of the slowest route alone, including the delay of the event loop."""
    began = time.perf_counter()
    await asyncio.sleep(SLOWEST)
    return time.perf_counter() - began


def waiting_tool(at: int) -> Tool:
    seconds = SLOWEST * (at + 1) / ROUTES

    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        await asyncio.sleep(seconds)
        return GuidedContent(content=f"waited {seconds:g} s")

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return Tool(name=f"wait-{at}", description="Waits.", call=call, check=dict, schema=schema)
