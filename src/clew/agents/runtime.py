"""The runtime: all runners in one process. It holds no state of a conversation; any number of runtimes share a trail.

Agents, tools and workflows that are written while it runs work at once: the consumers of a definition begin right after
the event that brought it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from clew.access import Principal
from clew.agents.folder.registry import Entry, Registry
from clew.agents.repairs.guard import Guard
from clew.agents.runs.agent_runner import AgentDeps, agent_executor
from clew.agents.runs.cancellation import Cancelling
from clew.agents.runs.run_limits import Beginnings, bounded
from clew.agents.runs.tools_runner import ToolDeps, tools_handlers
from clew.agents.runs.workers import free_the_dead, worker_name
from clew.agents.runs.workflow_runner import WorkflowDeps, workflow_executor
from clew.clock import Clock
from clew.context.definition import AgentDefinition
from clew.errors import ClewError, NotFound, StorageError
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Handler, Worker

_log = logging.getLogger(__name__)

CONCURRENCY = 32
"""How many events of one handler are worked on at a time."""
CALLS = 128
"""How many calls of models, and of tools, run or wait for a seat; see `clew.agents.runs.concurrency_limits`."""

UNHURRIED = 0.2
"""The part of the time that handlers work which can wait."""

ContextHandlers = Callable[[AgentDefinition], Sequence[Handler]]
"""What puts together the contexts of an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a runtime is made of."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    registry: Registry
    cancelling: Cancelling
    guard: Guard
    agents: AgentDeps
    tools: ToolDeps
    contexts: ContextHandlers
    always: Sequence[Handler] = ()
    """Handlers that run whatever agents there are."""
    unhurried: Sequence[Handler] = ()
    """Such that can wait: they leave most of the time to the others."""


@dataclass(slots=True)
class _Running:
    worker: Worker
    task: asyncio.Task[None]
    consumers: tuple[str, ...] = field(default=())


class Runtime:
    """Runs what the trail defines. Made by `clew.app`."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._worker = worker_name()
        self._running: dict[str, _Running] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work while the context is open. What is written once it is entered will be handled; at its end unfinished
        events are given back."""
        parts = self.parts
        await free_the_dead(parts.trail, by=parts.by)
        head = await parts.trail.log.head()
        await parts.registry.load()
        followers: list[asyncio.Task[None]] = []
        try:  # who is interrupted while it begins leaves no worker behind either
            await self._start("tools", tools_handlers(parts.tools), concurrency=CALLS)
            await self._start("always", parts.always)
            await self._start("unhurried", parts.unhurried, share=UNHURRIED)
            known = {each.consumer.name for each in await parts.trail.deliveries.consumers(by=parts.by)}
            for entry in list(parts.registry.entries()):
                await self._begin(entry, known)
            followers += [
                asyncio.create_task(parts.registry.follow(head, self._changed)),
                asyncio.create_task(parts.cancelling.follow(head)),
                asyncio.create_task(self._beat()),
            ]
            for task in followers:
                task.add_done_callback(_tell_of_failure)
            yield
        finally:
            for task in followers:
                task.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
            for name in list(self._running):
                await self._halt(name)

    async def _beat(self) -> None:
        """Say again and again which agents are at work here; one whose worker has ended falls silent."""
        health = self.parts.guard.health
        while True:
            for name, running in self._running.items():
                if not running.task.done():
                    health.beat(name)
            await asyncio.sleep(health.interval)

    async def _changed(self, before: Entry | None, after: Entry | None) -> None:
        """Follow one change of a definition. What it has no use for any more is forgotten."""
        stopped = await self._halt(before.name) if before is not None else ()
        if after is None:
            await self._forget(stopped)
            return
        await self._begin(after, set())
        if (running := self._running.get(after.name)) is not None:
            await self._forget([name for name in stopped if name not in running.consumers])

    async def _begin(self, entry: Entry, known: set[str]) -> None:
        handlers = self._handlers(entry, entry.seq)
        if entry.seq is None and any(each.name not in known for each in handlers):
            handlers = self._handlers(entry, await self._seq_of(entry))
        await self._start(entry.name, handlers)

    def _handlers(self, entry: Entry, after: int | None) -> list[Handler]:
        if entry.workflow is not None:
            deps = WorkflowDeps(trail=self.parts.trail, flow=self.parts.flow, by=self.parts.by)
            return workflow_executor(entry.workflow, deps).handlers(entry.name, after=after)
        agent = entry.agent
        assert agent is not None
        own = agent_executor(agent, self.parts.agents).handlers(entry.name, after=after, agent_id=agent.agent_id)
        contexts = [replace(self._bounded(each, agent), after=after) for each in self.parts.contexts(agent)]
        return [*own, *contexts]

    def _bounded(self, handler: Handler, agent: AgentDefinition) -> Handler:
        """The handler that begins runs of an agent, for what may begin one."""
        beginnings = Beginnings(self.parts.trail, self.parts.flow, by=self.parts.by)
        name = agent.agent_id
        return bounded(handler, self.parts.flow, lambda trigger: beginnings.judge_agent(trigger, name), lambda _: name)

    async def _seq_of(self, entry: Entry) -> int | None:
        """The event that brought a definition which nobody has worked for yet: what came after it waits."""
        schema = self.parts.flow.workflow if entry.workflow is not None else self.parts.flow.agent
        after, head = 0, await self.parts.trail.log.head()
        while after < head:
            events, after = await self.parts.trail.log.read(
                after, by=self.parts.by, selector=Selector(schema_name=schema)
            )
            for event in events:
                if event.breadcrumb_id == entry.record_id:
                    return event.seq
        return None

    async def _start(
        self, name: str, handlers: Sequence[Handler], share: float = 1.0, concurrency: int = CONCURRENCY
    ) -> None:
        if not handlers:
            return
        parts = self.parts
        worker = Worker(
            parts.trail,
            handlers,
            by=parts.by,
            worker_id=self._worker,
            concurrency=concurrency,
            share=share,
        )
        try:
            with contextlib.suppress(StorageError):  # which the worker waits out
                await worker.register()
        except ClewError as error:  # one definition must not keep the others from their work
            _log.warning("%s does not run: %s", name, error)
            return
        task = asyncio.create_task(worker.run())
        task.add_done_callback(_tell_of_failure)
        self._running[name] = _Running(worker, task, tuple(each.name for each in handlers))

    async def _halt(self, name: str) -> tuple[str, ...]:
        running = self._running.pop(name, None)
        if running is None:
            return ()
        running.worker.stop()
        await asyncio.gather(running.task, return_exceptions=True)
        return running.consumers

    async def _forget(self, consumers: Sequence[str]) -> None:
        for name in consumers:
            with contextlib.suppress(NotFound):  # another runtime was as quick
                await self.parts.trail.deliveries.unregister(name, by=self.parts.by)


def _tell_of_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a part of the runtime failed: %s", error)
