"""Helpers for tests of handlers: a handler that records its events, a running worker, and waits for its work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Consumer, ConsumerState, Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker, handles

ANN = Principal(owner_id="ann")
NOTES = Selector(schema_name="note.v1")
LONG = timedelta(seconds=30)
PATIENCE = 60.0
"""Seconds after which a wait in a test has failed."""
PAUSE = 0.005
"""Seconds between two checks of a wait. A busy loop would slow down the work that it waits for."""


def note(text: str = "hello", *tags: str) -> Draft:
    return Draft(title="Note", schema_name="note.v1", tags=tags, context={"text": text})


def text_of(event: Event) -> str:
    assert event.breadcrumb is not None
    return str(event.breadcrumb.context["text"])


class Calls:
    """A handler function that records its events and then calls a function of the test."""

    def __init__(self, act: Callable[[Event], Any] = lambda event: None) -> None:
        self._act = act
        self.events: list[Event] = []
        self.queue: asyncio.Queue[Event] = asyncio.Queue()

    async def __call__(self, event: Event, deps: Any) -> Sequence[Draft] | None:
        self.events.append(event)
        self.queue.put_nowait(event)
        result = self._act(event)
        return await result if asyncio.iscoroutine(result) else result

    async def next(self) -> Event:
        async with asyncio.timeout(PATIENCE):
            return await self.queue.get()


def handler_of(function: Any, selector: Selector = NOTES, **options: Any) -> Handler:
    return handles(selector, **{"name": "reader", **options})(function)


@asynccontextmanager
async def run_worker(trail: Trail, *handlers: Handler, worker_id: str = "w1", **options: Any) -> AsyncIterator[Worker]:
    worker = Worker(trail, handlers, by=ANN, worker_id=worker_id, **options)
    await worker.register()
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(PATIENCE):
            await running


async def until(
    trail: Trail, holds: Callable[[ConsumerState], bool], name: str = "reader", by: Principal = ANN
) -> ConsumerState:
    async with asyncio.timeout(PATIENCE):
        while True:
            for state in await trail.deliveries.consumers(by=by):
                if state.consumer.name == name and holds(state):
                    return state
            await asyncio.sleep(PAUSE)


async def settled(trail: Trail, name: str = "reader") -> ConsumerState:
    """The consumer, after it has read all events and has no work left."""
    head = await trail.log.head()
    return await until(trail, lambda state: state.cursor >= head and state.pending + state.claimed == 0, name)


async def texts(trail: Trail, schema_name: str) -> list[str]:
    page = await trail.records.list(Selector(schema_name=schema_name), by=ANN, limit=1000, oldest_first=True)
    return [str(found.context["text"]) for found in page.items]


async def pass_time(trail: Trail, clock: ManualClock, **amount: float) -> None:
    """Move the clock when no work is under way, and let the workers read it."""
    await until(trail, lambda state: state.claimed == 0)
    clock.advance(**amount)
    await look_again(trail)


async def look_again(trail: Trail) -> None:
    """Let every worker check for due events now: after a change of consumers, a worker may wait for an outdated
    time."""
    passing = Consumer(name=f"passing-{uuid4()}", selector=Selector(schema_name="passing.v1"))
    await trail.deliveries.register(passing, by=ANN)
    await trail.deliveries.unregister(passing.name, by=ANN)


def fail_with(error: BaseException) -> Callable[[Event], Any]:
    def act(event: Event) -> None:
        raise error

    return act
