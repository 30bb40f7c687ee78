"""A conversation with three tool calls for test_crash_anywhere.py, and a process that has it and can be made to die at
one point.

look only reads, pay has an effect outside that is recognised by its key, note can be repeated; send, of the other
script, has an effect that nothing recognises.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from clew.access import Principal
from clew.clock import SystemClock
from clew.context.edges import HANDLER as LINKING
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.bootstrap import bootstrap
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.correlation import run_tag
from clew.trail.flow import Flow, read_flow
from clew.trail.selector import Selector
from clew.trail.store import Trail
from tests.agents.running import Running, running
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
    `stop` there is to end in an orderly way."""

    point: Point = "never"
    event: int = 0
    tool: str = ""

    def strikes(self, point: Point, tool: str = "") -> bool:
        return self.point == point and self.tool == tool


NOWHERE = Doom()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(trail: Trail, doom: Doom) -> None:
    """Have the process die around the transaction that brings an event."""
    engine = trail._engine  # type: ignore[attr-defined]  # the product has no door for this
    committed, last_work = engine.on_commit, engine.before_commit

    def has_come() -> bool:
        return bool(engine._writer.execute("SELECT coalesce(max(seq), 0) FROM events").get >= doom.event)

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


async def prepare(folder: Path) -> int:
    """A trail that is set up and has one agent; the number of its last event. No runtime was ever here."""
    trail = await open_at(folder)
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
    """Say something once, whatever became of the lives before, and say the answer when everything is at rest."""
    trail = await open_at(folder)
    arm(trail, doom)
    stopping = asyncio.Event()
    with suppress(asyncio.CancelledError):
        async with running(trail, SystemClock(), ME, script, tools=tools_of(folder, doom, stopping.set)) as run:
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
    """Whether no consumer has anything to do, and what links breadcrumbs has seen the answer."""
    states = await trail.deliveries.consumers(by=ME)
    linked = next(state.cursor for state in states if state.consumer.name == LINKING)
    return linked >= answered and not any(state.pending + state.claimed for state in states)


# -- what a conversation leaves ---------------------------------------------------------------------------


async def final_state(folder: Path) -> dict[str, Any]:
    """All that matters of a conversation, without what differs from run to run: ids, times, and pieces of text."""
    trail = await open_at(folder)
    try:
        flow = await read_flow(trail, by=ME)
        page = await trail.records.list(Selector(tag_prefix="run:"), by=ME, limit=500, oldest_first=True)
        run = next(each for each in page.items if each.schema_name == flow.message).id
        mine = [each for each in page.items if run_tag(run) in each.tags]
        (budget,) = (await trail.records.list(Selector(schema_name=flow.budget), by=ME)).items
        usage = (await trail.records.list(Selector(schema_name=flow.usage), by=ME)).items
        edges = {(each.source, each.type, each.target) for one in mine for each in await trail.edges.of(one.id, by=ME)}
        kept = list(in_order([each for each in mine if each.schema_name != flow.delta], flow))
        return {
            "records": anonymous(kept),
            "usage": sorted((each.context["input_tokens"], each.context["output_tokens"]) for each in usage),
            "edges": len(edges),
            "reserved": budget.context.get("reserved", {}),
            "effects": len(Outside(folder).effects()),
            "dead letters": await trail.dead_letters.list(by=ME),
            "damage": await trail.upkeep.check(),
        }
    finally:
        await trail.close()


def in_order(records: list[Breadcrumb], flow: Flow) -> Iterator[Breadcrumb]:
    """Records as they were written. Responses that came together have no order of their own."""
    for is_response, group in groupby(records, key=lambda each: each.schema_name == flow.response):
        yield from sorted(group, key=lambda each: str(each.context["tool"])) if is_response else group


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?|('(execution_time|latency)_ms': )[\d.]+")


def anonymous(records: list[Breadcrumb]) -> list[str]:
    """Records as text, with a number instead of each id, in the order in which they are first named."""
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found.group(), f"#{len(names)}")

    texts = [f"{one.id} {one.schema_name} v{one.version} {one.title} {one.tags} {one.context}" for one in records]
    return [_ID.sub(name, _TIME.sub("~", text)) for text in texts]


async def read_sent(folder: Path) -> tuple[Flow, list[Breadcrumb]]:
    """The names and the records of the one conversation of a folder."""
    trail = await open_at(folder)
    try:
        flow = await read_flow(trail, by=ME)
        page = await trail.records.list(Selector(tag_prefix="run:"), by=ME, limit=500, oldest_first=True)
        return flow, list(page.items)
    finally:
        await trail.close()


