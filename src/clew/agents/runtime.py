"""The runtime: the runners of one process, all of them or those of its roles. It holds no state of a conversation; any
number of runtimes share a trail.

Agents, tools and workflows that are written while it runs become active at once: the consumers of a definition start
right after the event that wrote it. A runtime without a model leaves the steps of agents to another process that has
one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.access import Principal
from clew.agents.folder.registry import AgentRegistry, RegistryEntry
from clew.agents.repairs.guard import Guard
from clew.agents.runs.agent_runner import AgentDeps, agent_executor
from clew.agents.runs.cancellation import RunCancellation
from clew.agents.runs.model_hosts import RENEWAL, ModelHosts
from clew.agents.runs.run_limits import RunLimits, bounded
from clew.agents.runs.tools_runner import ToolDeps, ToolsRunner, model_handlers, tools_handlers
from clew.agents.runs.workflow_runner import WorkflowDeps, workflow_executor
from clew.agents.workers.placement import PlaceWatch
from clew.agents.workers.roles import EVERY_ROLE, role_of
from clew.agents.workers.worker_names import release_dead_workers, worker_name
from clew.clock import Clock
from clew.context.definition import AgentDefinition
from clew.errors import ClewError, NotFound, StorageError
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Claim, Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow, retry_on_storage_error
from clew.trail.work.handlers import Completion, Handler, Worker, completed

_log = logging.getLogger(__name__)

CONCURRENCY = 32
"""How many events of one handler are worked on at a time."""
LINE = 1
"""A call worker claims this many more events than the pool has seats, so that the next calls are ready when a seat
becomes free."""

BACKGROUND_SHARE = 0.2
"""The share of time for handlers that can wait."""
PEER_CHECK = 1.0
"""Seconds between checks whether the processes with a model still run."""
MODELS = "models"

NeedsModel = Callable[[Event], Awaitable[bool]]
"""Whether the step of an agent waits indefinitely for a process with a model, instead of ending without an answer."""
Flush = Callable[[], Awaitable[None]]
ContextHandlers = Callable[[AgentDefinition], Sequence[Handler]]
"""The handlers that build the contexts of an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeParts:
    """The parts of a runtime."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    registry: AgentRegistry
    cancelling: RunCancellation
    guard: Guard
    hosts: ModelHosts
    agents: AgentDeps
    tools: ToolDeps
    contexts: ContextHandlers
    always: Sequence[Handler] = ()
    """Handlers that always run, independent of the defined agents."""
    unhurried: Sequence[Handler] = ()
    """Handlers that can wait: they leave most of the time to the others."""
    needs_model: NeedsModel | None = None
    complete: Completion | None = None
    flush: Flush | None = None
    """Writes the records that handlers have deferred."""
    retired: Sequence[str] = ()
    """Consumers of earlier versions, which are unregistered at the start."""
    roles: frozenset[str] = EVERY_ROLE
    """The parts of the work that this process does. It registers all consumers, and claims for those of its roles."""


@dataclass(slots=True)
class _RunningWorker:
    worker: Worker
    task: asyncio.Task[None]


class Runtime:
    """Runs the agents, tools and workflows that the trail defines. Made by `clew.app`."""

    def __init__(self, parts: RuntimeParts) -> None:
        self.parts = parts
        self._worker = worker_name()
        self._running: dict[str, _RunningWorker] = {}
        self._registered: dict[str, tuple[str, ...]] = {}
        """The consumers of each definition, including those of other roles."""
        self._is_draining = False
        self._yields = asyncio.Event()
        """Set while this process leaves the steps of agents to another process with a model."""

    @property
    def _may_yield(self) -> bool:
        """Whether this process leaves runs to another one that has a model. Without the role `agents` it never does,
        because the other process may not have the roles of this one."""
        return "agents" in self.parts.roles and not self.parts.hosts.has_model

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work while the context is open. Events written after it is entered are handled; at its end unfinished events
        are released."""
        parts = self.parts
        await release_dead_workers(parts.trail, by=parts.by)
        head = await parts.trail.log.head()
        await parts.registry.load()
        followers: list[asyncio.Task[None]] = []
        try:  # an interruption during the start leaves no worker behind either
            await self._announce()
            await self._forget(parts.retired)
            await self._start("tools", tools_handlers(parts.tools), concurrency=parts.tools.limits.tools + LINE)
            await self._start("always", parts.always)
            await self._start("unhurried", parts.unhurried, share=BACKGROUND_SHARE)
            if self._may_yield and await parts.hosts.has_peer():
                self._yields.set()
            await self._start_entries()
            followers += [
                asyncio.create_task(parts.registry.follow(head, self._changed)),
                asyncio.create_task(parts.cancelling.follow(head)),
                asyncio.create_task(self._yield_to_peers() if self._may_yield else self._renew()),
                *([asyncio.create_task(self._place_watch().run())] if "tools" in parts.roles else []),
            ]
            for task in followers:
                task.add_done_callback(_log_failure)
            yield
        finally:
            for task in followers:
                task.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
            for name in list(self._running):
                await self._halt(name)
            await self._flush()
            await parts.hosts.withdraw()

    async def drain(self, seconds: float) -> bool:
        """Stop claiming events, and wait up to `seconds` for the claimed ones. Return False if some are still
        unfinished; the end of `running` releases them."""
        self._is_draining = True
        tasks = [each.task for each in self._running.values()]
        for each in self._running.values():
            each.worker.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                with contextlib.suppress(ClewError):  # the record expires
                    await self.parts.hosts.withdraw()
                await asyncio.wait(tasks) if tasks else None
                await self._flush()
        return all(task.done() for task in tasks)

    @property
    def held(self) -> list[Claim]:
        """The claims that this process works on."""
        return [claim for each in self._running.values() for claim in each.worker.held]

    async def _announce(self) -> None:
        """Announce that this process has a model, if it runs the steps of agents."""
        if "agents" in self.parts.roles and not self._is_draining:
            await self.parts.hosts.announce()

    async def _start_entries(self) -> None:
        """Start the handlers of all definitions. Skip those of models and agents while another process runs the steps
        of agents."""
        parts = self.parts
        if not self._yields.is_set():
            handlers = self._yielding(model_handlers(parts.tools))
            await self._start(MODELS, handlers, concurrency=parts.tools.limits.models + LINE)
        known = {each.consumer.name for each in await parts.trail.deliveries.consumers(by=parts.by)}
        for entry in list(parts.registry.entries()):
            await self._begin(entry, known)

    # -- processes with a model, and those without --------------------------------------------------------

    async def _renew(self) -> None:
        """Keep the record of this process from expiring."""
        while True:
            await asyncio.sleep(RENEWAL)
            await retry_on_storage_error(self._announce, "model hosts")

    async def _yield_to_peers(self) -> None:
        """Stop the steps of agents while another process has a model, and start them again when none has."""
        while True:
            await self._yields.wait()
            for name in [MODELS, *(each.name for each in self.parts.registry.entries() if each.agent is not None)]:
                await self._halt(name)
            await self._wait_for_peers()
            self._yields.clear()
            await self._start_entries()

    async def _wait_for_peers(self) -> None:
        """Return when no other process has a model. The end of a killed process brings no event, so this polls."""
        has_peer = True

        async def look() -> None:
            nonlocal has_peer
            has_peer = await self.parts.hosts.has_peer()

        while has_peer:
            await asyncio.sleep(PEER_CHECK)
            await retry_on_storage_error(look, "model hosts")

    def _yielding(self, handlers: Sequence[Handler]) -> list[Handler]:
        """Wrap the handlers: in a process without a model they release their events if another process has a model."""
        if not self._may_yield:
            return list(handlers)
        return [replace(each, function=self._unless_peer(each)) for each in handlers]

    def _unless_peer(self, handler: Handler) -> Callable[[Event, Any], Any]:
        async def handle(event: Event, deps: Any) -> Sequence[Draft] | None:
            if await self.parts.hosts.has_peer():
                self._yields.set()
                raise NotNow(0.0)
            if self.parts.needs_model is not None and await self.parts.needs_model(event):
                raise NotNow(PEER_CHECK)
            return await handler.function(event, deps)

        return handle

    # -- definitions --------------------------------------------------------------------------------------

    async def _changed(self, before: RegistryEntry | None, after: RegistryEntry | None) -> None:
        """Apply one change of a definition: restart its handlers, and unregister the consumers that it no longer
        needs."""
        old: tuple[str, ...] = ()
        if before is not None:
            await self._halt(before.name)
            old = self._registered.pop(before.name, ())
        if after is None:
            await self._forget(old)
            return
        await self._begin(after, set())
        if (new := self._registered.get(after.name)) is not None:
            await self._forget([name for name in old if name not in new])

    async def _begin(self, entry: RegistryEntry, known: set[str]) -> None:
        if entry.name in self._running or (entry.agent is not None and self._yields.is_set()):
            return
        handlers = self._handlers(entry, entry.seq)
        if entry.seq is None and any(each.name not in known for each in handlers):
            handlers = self._handlers(entry, await self._seq_of(entry))
        await self._start(entry.name, handlers)

    def _handlers(self, entry: RegistryEntry, after: int | None) -> list[Handler]:
        if entry.workflow is not None:
            parts = self.parts
            deps = WorkflowDeps(trail=parts.trail, flow=parts.flow, by=parts.by, runs=parts.agents.runs)
            return workflow_executor(entry.workflow, deps).handlers(entry.name, after=after)
        agent = entry.agent
        assert agent is not None
        own = agent_executor(agent, self.parts.agents).handlers(entry.name, after=after, agent_id=agent.agent_id)
        contexts = [replace(self._bounded(each, agent), after=after) for each in self.parts.contexts(agent)]
        return self._yielding([*own, *contexts])

    def _bounded(self, handler: Handler, agent: AgentDefinition) -> Handler:
        """The handler that starts runs of an agent, within the limits of runs."""
        run_limits = RunLimits(self.parts.trail, self.parts.flow, by=self.parts.by)
        name = agent.agent_id
        return bounded(handler, self.parts.flow, lambda trigger: run_limits.check_agent(trigger, name), lambda _: name)

    async def _seq_of(self, entry: RegistryEntry) -> int | None:
        """The number of the event that wrote a definition that has no consumers yet. Events after it are pending."""
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

    # -- workers ------------------------------------------------------------------------------------------

    async def _start(
        self, name: str, handlers: Sequence[Handler], share: float = 1.0, concurrency: int = CONCURRENCY
    ) -> None:
        if not handlers or self._is_draining:
            return
        parts = self.parts
        complete = parts.complete
        mine = [each for each in handlers if role_of(each.name) in parts.roles]
        worker = Worker(
            parts.trail,
            mine if complete is None else [completed(each, complete) for each in mine],
            by=parts.by,
            worker_id=self._worker,
            concurrency=concurrency,
            share=share,
        )
        try:
            with contextlib.suppress(StorageError):  # the worker retries
                for each in handlers:  # also those of other roles, so that records for them wait
                    await parts.trail.deliveries.register(each.consumer, by=parts.by)
        except ClewError as error:  # one definition must not stop the others
            _log.warning("%s does not run: %s", name, error)
            return
        self._registered[name] = tuple(each.name for each in handlers)
        if not mine:
            return
        task = asyncio.create_task(worker.run())
        task.add_done_callback(_log_failure)
        self._running[name] = _RunningWorker(worker, task)

    async def _halt(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running is not None:
            running.worker.stop()
            await asyncio.gather(running.task, return_exceptions=True)

    async def _forget(self, consumers: Sequence[str]) -> None:
        for name in consumers:
            with contextlib.suppress(NotFound):  # it never was, or another runtime was faster
                await self.parts.trail.deliveries.unregister(name, by=self.parts.by)

    async def _flush(self) -> None:
        if self.parts.flush is not None:
            with contextlib.suppress(ClewError):  # the postponed work is not needed
                await self.parts.flush()

    # -- places -------------------------------------------------------------------------------------------

    def _place_watch(self) -> PlaceWatch:
        parts = self.parts
        refuse = ToolsRunner(parts.tools).refuse
        return PlaceWatch(parts.trail, parts.clock, refuse, by=parts.by, worker=self._worker)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a part of the runtime failed: %s", error)
