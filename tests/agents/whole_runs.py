"""Helpers for tests of whole runs: an agent, and waits until an event has been handled."""

from __future__ import annotations

from typing import Any

from clew.agents.conversations.steps import Answered, Step
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Breadcrumb
from tests.agents.runtimes import Running
from tests.faults.processes import eventually
from tests.handlers import look_again

CLERK = "clerk"


async def hire(run: Running, name: str = CLERK, **more: Any) -> Breadcrumb:
    """An agent that answers only the messages addressed to it."""
    trigger = {"schema_name": run.flow.message, "all_tags": [f"consumer:{name}"]}
    sources = {"session": {"enabled": False}, "semantic": {"enabled": False}, "graph": {"enabled": False}}
    given = {"system_prompt": "You work.", "context_trigger": trigger, "context_sources": sources, **more}
    return await run.define(run.flow.agent, agent_id=name, **given)


def answer_of(steps: list[Step]) -> Answered:
    (found,) = [step for step in steps if isinstance(step, Answered)]
    return found


async def is_done_with(run: Running, consumer: str, record: Breadcrumb) -> None:
    """Return as soon as a consumer has handled the event of a new record."""
    events, _ = await run.trail.log.read(0, by=run.me, limit=10_000)
    seq = next(each.seq for each in events if each.breadcrumb_id == record.id)

    async def is_past() -> bool:
        states = await run.trail.deliveries.consumers(by=run.me)
        state = next(each for each in states if each.consumer.name == consumer)
        return state.cursor >= seq and state.pending + state.claimed == 0

    await eventually(is_past, f"{consumer} is done with {record.title}")


async def let_time_pass(run: Running, clock: ManualClock) -> None:
    """Advance the clock while nothing is under way, by less than a lease, so that new claims keep their lease."""
    states = await run.trail.deliveries.consumers(by=run.me)
    if not any(each.claimed for each in states):
        clock.advance(seconds=10)
        await look_again(run.trail)
