"""Handlers: functions from one event to new breadcrumbs, and the worker that runs them.

A handler's outputs and its acknowledgement are one transaction. It never waits for an answer that comes as another
event. Instead it writes a request and returns (see correlation.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from clew.access import Principal
from clew.errors import ClewError, InvalidInput, NotFound
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import DEFAULT_LEASE, Claim, ClaimLimits, Consumer, Event, EventType, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import ClaimLoop, GivenUp, Refused, is_meant, retry_on_storage_error

HandlerFunction = Callable[[Event, Any], Awaitable[Sequence[Draft] | None]]
"""Takes one event and the `deps` of the worker, and returns the breadcrumbs to write."""

Completion = Callable[[Sequence[Draft]], Awaitable[Sequence[Draft]]]
"""Takes the outputs of a handler and returns all records to write in the same transaction."""

CHANGES: tuple[EventType, ...] = ("breadcrumb.created", "breadcrumb.updated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A function with the events it is for. `name` is the name of its durable consumer, so a handler with a new name
    starts as a new consumer. See `Consumer` for `after`, `ordered`, `limits` and `delay`. If the outputs cannot be
    written, Clew writes the drafts of `refused` instead and does not run the function again. If the attempts are used
    up, or too many workers died with an event, Clew writes the drafts of `given_up` and makes no dead letter. With
    `takes_gone`, it also gets events whose breadcrumb was deleted in the meantime."""

    name: str
    selector: Selector
    function: HandlerFunction
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    start: Literal["now", "beginning"] = "now"
    types: tuple[EventType, ...] = CHANGES
    after: int | None = None
    ordered: bool = True
    agent_id: str | None = None
    refused: Callable[[Event, ClewError], Sequence[Draft]] | None = None
    given_up: Callable[[Event, str], Awaitable[Sequence[Draft]]] | None = None
    limits: ClaimLimits | None = None
    takes_gone: bool = False
    delay: float = 0.0

    @property
    def consumer(self) -> Consumer:
        return Consumer(
            name=self.name,
            selector=self.selector,
            retry=self.retry,
            start=self.start,
            after=self.after,
            ordered=self.ordered,
            agent_id=self.agent_id,
            limits=self.limits,
            delay=self.delay,
        )

    def accepts(self, event: Event) -> bool:
        """Whether the event is for this handler. If the breadcrumb is gone, only a deletion can be for it, unless it
        takes gone breadcrumbs."""
        if event.type not in self.types:
            return False
        if event.breadcrumb is None and event.type != "breadcrumb.deleted" and not self.takes_gone:
            return False
        return is_meant(self.selector, event)


def handles(
    selector: Selector,
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    start: Literal["now", "beginning"] = "now",
    types: Sequence[EventType] = CHANGES,
) -> Callable[[HandlerFunction], Handler]:
    """Make a function the handler of the events that a selector matches. The default name is that of the function.
    Deletions are delivered only if `types` includes them; they have no breadcrumb, and only their schema and tags are
    compared.
    """

    def bind(function: HandlerFunction) -> Handler:
        return Handler(
            name=name or str(getattr(function, "__name__", type(function).__name__)),
            selector=selector,
            function=function,
            retry=retry or RetryPolicy(),
            start=start,
            types=tuple(types),
        )

    return bind


def completed(handler: Handler, complete: Completion) -> Handler:
    """A copy of the handler whose outputs, if there are any, go through `complete`."""

    async def handle(event: Event, deps: Any) -> Sequence[Draft]:
        outputs = await handler.function(event, deps)
        return await complete(outputs) if outputs else ()

    return replace(handler, function=handle)


class Worker:
    """Runs handlers in this process, each with up to `concurrency` events at a time.

    Events of one session come one after the other, sessions do not wait for each other, and any number of
    workers share the events of a handler. A run longer than the `deadline` of its retry policy fails. See `ClaimLoop`
    for `share`.
    """

    def __init__(
        self,
        trail: Trail,
        handlers: Sequence[Handler],
        *,
        by: Principal,
        worker_id: str,
        deps: Any = None,
        concurrency: int = 8,
        lease: timedelta = DEFAULT_LEASE,
        share: float = 1.0,
    ) -> None:
        self._trail = trail
        self._by = by
        self._deps = deps
        self._stop = asyncio.Event()
        self._is_draining = False
        self._serving = 0
        self._loops: dict[str, tuple[Handler, ClaimLoop]] = {}
        for handler in handlers:
            if handler.name in self._loops:
                raise InvalidInput("handlers", f"two are named {handler.name!r}", hint="Give one another name")
            loop = ClaimLoop(
                trail,
                handler.name,
                self._work_of(handler),
                by=by,
                worker_id=worker_id,
                concurrency=concurrency,
                lease=lease,
                share=share,
                refused=_refused(handler),
                given_up=_given_up(handler),
                attempts=handler.retry.attempts,
            )
            self._loops[handler.name] = handler, loop

    async def register(self) -> None:
        """Register the handlers' consumers. Records that are written after this returns will be handled."""
        for handler, _ in self._loops.values():
            await self._register(handler)

    async def run(self) -> None:
        """Register, then handle events until `stop` or cancellation. Unfinished events are given back.

        Storage errors are logged, and the work is retried until the storage is back. This includes the registration.
        """
        self._by.require("subscribe")
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._serve(handler, loop)) for handler, loop in self._loops.values()]
            await self._stop.wait()
            for task in tasks:
                task.cancel()

    def stop(self) -> None:
        """Make `run` give back its claims and return. A stopped worker does not run again."""
        self._stop.set()

    def drain(self) -> None:
        """Claim nothing more: `run` returns when the claims that it holds are done. A drained worker does not run
        again."""
        self._is_draining = True
        for _, loop in self._loops.values():
            loop.drain()

    @property
    def held(self) -> list[Claim]:
        """The claims that are worked on."""
        return [claim for _, loop in self._loops.values() for claim in loop.held]

    async def _serve(self, handler: Handler, loop: ClaimLoop) -> None:
        self._serving += 1
        while not self._is_draining:
            await retry_on_storage_error(lambda: self._register(handler), handler.name)
            with contextlib.suppress(NotFound):  # the consumer was unregistered: it begins anew
                await loop.run()
        self._serving -= 1
        if self._serving == 0:
            self._stop.set()

    async def _register(self, handler: Handler) -> None:
        await self._trail.deliveries.register(handler.consumer, by=self._by)

    def _work_of(self, handler: Handler) -> Callable[[Claim], Awaitable[Sequence[Draft]]]:
        async def work(claim: Claim) -> Sequence[Draft]:
            if not handler.accepts(claim.event):
                return ()
            if handler.retry.deadline is None:
                return await handler.function(claim.event, self._deps) or ()
            async with asyncio.timeout(handler.retry.deadline):
                return await handler.function(claim.event, self._deps) or ()

        return work


def _refused(handler: Handler) -> Refused | None:
    refused = handler.refused
    return None if refused is None else lambda claim, error: refused(claim.event, error)


def _given_up(handler: Handler) -> GivenUp | None:
    given_up = handler.given_up
    if given_up is None:
        return None

    async def drafts(claim: Claim, reason: str) -> Sequence[Draft]:
        return await given_up(claim.event, reason) if handler.accepts(claim.event) else ()

    return drafts
