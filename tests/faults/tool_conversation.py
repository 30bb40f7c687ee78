"""A conversation with three tool calls for test_conversation_crashes.py, and a process that runs it and can be killed
at one point.

look only reads, pay has an effect outside that is recognised by its key, note can be repeated; send, of the other
script, has an effect that nothing recognises.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from clew.access import Principal
from clew.agents.runs.prompts import rebuild_prompt
from clew.clock import ManualClock
from clew.context.edges import HANDLER as LINKING
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow, read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work import queue_lanes
from tests.agents.runtimes import Running, running
from tests.faults.processes import eventually, open_at

ME = Principal(owner_id="acme", agent_id="ann")
CLERK = "clerk"
PAYING: list[dict[str, Any]] = [
    {"user": "the bill", "say": "Looking.", "call": {"look": {"at": "bill"}}},
    {"expect": "the bill says 3", "say": "Paying.", "call": [{"pay": {"amount": 3}}, {"note": {"text": "paid"}}]},
    {"expect": ["paid 3", "noted"], "say": "Settled."},
]
SENDING: list[dict[str, Any]] = [
    {"user": "the letter", "call": {"send": {"what": "letter"}}},
    {"expect": "may or may not have been done", "say": "Unsure."},
]
SENT_WELL: list[dict[str, Any]] = [SENDING[0], {"expect": "sent the letter", "say": "Done."}]

Point = Literal["never", "before", "after", "inside", "stop"]


@dataclass(frozen=True, slots=True)
class Doom:
    """Where the process dies: before or after the commit of an event, or inside a tool once it has taken effect. To
    `stop` there is to end in an orderly way. Events of some schemas may be `passed` over."""

    point: Point = "never"
    event: int = 0
    tool: str = ""
    passed: tuple[str, ...] = ()

    def strikes(self, point: Point, tool: str = "") -> bool:
        return self.point == point and self.tool == tool


NOWHERE = Doom()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(trail: Trail, doom: Doom) -> None:
    """Have the process die around the transaction that brings an event. Only in a file can it."""
    if doom.point not in ("before", "after"):
        return
    queue_lanes.MAX_DEATHS = 1_000  # the event is slow, and dies with its process through no fault of its own
    engine = trail._engine  # type: ignore[attr-defined]  # no public interface offers this
    committed, last_work = engine.on_commit, engine.before_commit

    def has_come() -> bool:
        events = f"SELECT 1 FROM events WHERE seq >= ? AND schema_name NOT IN ({', '.join('?' * len(doom.passed))})"
        return engine._writer.execute(events, (doom.event, *doom.passed)).fetchone() is not None

    def before_commit() -> Any:
        if doom.point == "before" and has_come():
            die()
        return last_work()

    def on_commit(changed: list[int]) -> None:
        if doom.point == "after" and has_come():
            die()
        committed(changed)

    engine.before_commit, engine.on_commit = before_commit, on_commit


class Outside:
    """The world that tools work on: a file with a line for each effect."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "effects"

    def add(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{line}\n")

    def effects(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []


def tools_of(folder: Path, doom: Doom, stop: Callable[[], None] = lambda: None) -> list[Tool]:
    outside = Outside(folder)

    async def strike(name: str) -> None:
        if doom.strikes("inside", name):
            die()
        if doom.strikes("stop", name):
            stop()
            await asyncio.get_running_loop().create_future()

    @tool(effects=Effects(reads_only=True))
    async def look(at: str) -> str:
        """Look at something."""
        await strike("look")
        return f"the {at} says 3"

    @tool(effects=Effects(keyed=True))
    async def pay(amount: int, context: ToolContext) -> str:
        """Pay, once for each key."""
        if context.key not in outside.effects():
            outside.add(context.key)
        await strike("pay")
        return f"paid {amount}"

    @tool(effects=Effects(repeats_safely=True))
    async def note(text: str) -> str:
        """Note something; to note it again is harmless."""
        (folder / "noted").write_text(text)
        await strike("note")
        return "noted"

    @tool
    async def send(what: str) -> str:
        """Send something, which nobody can take back."""
        outside.add(what)
        await strike("send")
        return f"sent the {what}"

    return [look, pay, note, send]


class SameDay(ManualClock):
    """A clock that starts at the same moment in every life, so that every run has the same times."""

    def __init__(self) -> None:
        super().__init__()
        self._origin = time.monotonic()

    def now(self) -> datetime:
        return self.time + timedelta(seconds=time.monotonic() - self._origin)


async def prepare(folder: Path) -> int:
    """A trail that is set up and has one agent; the number of its last event. No runtime was ever here."""
    trail = await open_at(folder, clock=SameDay())
    try:
        await bootstrap(trail, ME)
        flow = await read_flow(trail, by=ME)
        trigger = {"schema_name": flow.message, "all_tags": [f"consumer:{CLERK}"]}
        definition = {"agent_id": CLERK, "system_prompt": "You settle things.", "context_trigger": trigger}
        draft = Draft(title="An agent", schema_name=flow.agent, context={**definition, "budget": {"calls": 100}})
        await trail.records.create(draft, by=ME)
        return await trail.log.head()
    finally:
        await trail.close()


async def converse(channel: Connection, folder: Path, script: list[dict[str, Any]], text: str, doom: Doom) -> None:
    """Send a message once over all lives, and print the answer when all work is done."""
    clock, stopping = SameDay(), asyncio.Event()
    trail = await open_at(folder, clock=clock)
    arm(trail, doom)
    with suppress(asyncio.CancelledError):
        async with running(trail, clock, ME, script, tools=tools_of(folder, doom, stopping.set)) as run:
            talking = asyncio.create_task(_talk(run, text))
            halting = asyncio.create_task(stopping.wait())
            await asyncio.wait([talking, halting], return_when=asyncio.FIRST_COMPLETED)
            channel.send(talking.result() if talking.done() else "stopped")
            for task in (talking, halting):
                task.cancel()
    await trail.close()


async def _talk(run: Running, text: str) -> str:
    sent = await run.talk.send(text, by=ME, agent=CLERK, key="once")
    last = (await run.rest_of(sent))[-1]
    await eventually(lambda: is_at_rest(run.trail, last.seq), "everything is at rest")
    answers = await run.written(sent.run, run.flow.answer)
    return "|".join(str(each.context["message"]) for each in answers)


async def is_at_rest(trail: Trail, answered: int) -> bool:
    """Whether no consumer has work left, and the edge handler has seen the answer."""
    states = await trail.deliveries.consumers(by=ME)
    linked = next(state.cursor for state in states if state.consumer.name == LINKING)
    return linked >= answered and not any(state.pending + state.claimed for state in states)


# -- what a conversation leaves ---------------------------------------------------------------------------


async def final_state(folder: Path) -> dict[str, Any]:
    """The comparable part of a conversation, without ids, durations, pieces of text, and budget spent on lost calls."""
    trail = await open_at(folder, clock=SameDay())
    try:
        flow = await read_flow(trail, by=ME)
        records = await read_records(trail)
        edges = {(one.source, one.type, one.target) for each in records for one in await trail.edges.of(each.id, by=ME)}
        kept = [each for each in records if each.schema_name != flow.delta]
        (budget,) = (await trail.records.list(Selector(schema_name=flow.budget), by=ME)).items
        return {
            "records": anonymous(list(in_order(kept, flow))),
            "edges": len(edges),
            "reserved": budget.context.get("reserved", {}),
            "effects": len(Outside(folder).effects()),
            "prompts": [await is_same_prompt(trail, flow, each, kept) for each in kept if is_to_model(each, flow)],
            "dead letters": await trail.dead_letters.list(by=ME),
            "damage": await trail.upkeep.check(),
        }
    finally:
        await trail.close()


async def read_records(trail: Trail) -> list[Breadcrumb]:
    """The records of the one conversation of a trail, in order."""
    page = await trail.records.list(Selector(tag_prefix="run:"), by=ME, limit=500, oldest_first=True)
    return list(page.items)


def is_to_model(record: Breadcrumb, flow: Flow) -> bool:
    return record.schema_name == flow.request and record.context["tool"] == flow.model_tool


async def is_same_prompt(trail: Trail, flow: Flow, request: Breadcrumb, records: list[Breadcrumb]) -> bool:
    """Whether the rebuilt prompt equals the prompt that the model got."""
    tag = f"request:{request.context['requestId']}"
    (response,) = [each for each in records if each.schema_name == flow.response and tag in each.tags]
    prompt = await rebuild_prompt(trail, flow, request, by=ME)
    return bool(prompt.digest == response.context["output"]["prompt_digest"])


def in_order(records: list[Breadcrumb], flow: Flow) -> Iterator[Breadcrumb]:
    """Records as they were written. Responses that came together have no order of their own."""
    for is_response, group in groupby(records, key=lambda each: each.schema_name == flow.response):
        together = list(group)
        yield from sorted(together, key=lambda each: str(each.context["tool"])) if is_response else together


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"'(execution_time|latency)_ms': [\d.]+")


def anonymous(records: list[Breadcrumb]) -> list[str]:
    """Records as text, with a number instead of each id, in the order in which they are first named."""
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found.group(), f"#{len(names)}")

    texts = [f"{one.id} {one.schema_name} v{one.version} {one.title} {one.tags} {one.context}" for one in records]
    return [_ID.sub(name, _TIME.sub("~", text)) for text in texts]
