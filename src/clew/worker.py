"""One worker process: the part of the work that belongs to its roles, its record on the trail, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from clew.app import LOOK_SECONDS, App
from clew.background_tasks import cancel_all, log_failure
from clew.errors import ClewError
from clew.trail.model.event import Claim

if TYPE_CHECKING:
    from clew.agents.runtime import Runtime

log = logging.getLogger(__name__)


class WorkerProcess:
    """Works on the trail of an app for some roles, while `working` is open. `tags` name abilities of this process
    alone, such as `place:shop` for the files of a checkout."""

    def __init__(self, app: App, roles: frozenset[str], tags: Sequence[str] = ()) -> None:
        from clew.agents.workers.worker_records import WorkerRecords  # for processes that work

        self.app = app
        self.roles = roles
        self.tags = tuple(tags)
        self.is_draining = False
        """Whether this process is about to end, and takes no new work."""
        self._runtime: Runtime | None = None
        self._records = WorkerRecords(app.trail, app.clock, by=app.me, roles=sorted(roles), held=self._held)

    @contextlib.asynccontextmanager
    async def working(
        self, on_delivery: Callable[[str, float], None] = lambda outcome, seconds: None
    ) -> AsyncIterator[Callable[[], None]]:
        """Do the work of the roles while the context is open. Yields a function that looks for new webhooks. The other
        work does not wait for the agents to start, and continues without them. The agents' events wait on the trail."""
        from clew.agents.workers.roles import RUNTIME_ROLES

        app, works = self.app, [self._records.run()]
        if app.config.agents and self.roles & RUNTIME_ROLES:
            works.append(self._run_agents())
        if app.config.agents and "knowledge" in self.roles:
            works.append(self._mirror_agents())
        async with contextlib.AsyncExitStack() as stack:
            refresh = await stack.enter_async_context(app.background(on_delivery, self.roles))
            if "knowledge" in self.roles:
                await stack.enter_async_context(app.keeping_fresh())
            tasks = [asyncio.create_task(work) for work in works]
            for task in tasks:
                task.add_done_callback(log_failure)
            try:
                yield refresh
            finally:
                await cancel_all(tasks)
                await self._records.withdraw()

    async def drain(self, seconds: float) -> bool:
        """Take no new work, and finish the current work. Returns False if some is left after `seconds`; the end of
        `working` then releases it."""
        self.is_draining = True
        waits = [self.app.drain_webhooks(seconds)]
        if self._runtime is not None:
            waits.append(self._runtime.drain(seconds))
        done, _ = await asyncio.gather(asyncio.gather(*waits), self._record_draining(seconds))
        return all(done)

    async def _record_draining(self, seconds: float) -> None:
        """Record on the trail that this process is draining. The record is informational only."""
        with contextlib.suppress(ClewError, TimeoutError):
            async with asyncio.timeout(seconds):
                await self._records.write("draining")

    def _held(self) -> Sequence[Claim]:
        return self._runtime.held if self._runtime is not None else ()

    async def _run_agents(self) -> None:
        app = self.app
        await app.trail.index.warm()
        await app.ownership.wait(LOOK_SECONDS)
        runtime = await app.runtime(roles=self.roles, tags=self.tags)
        async with runtime.running():
            self._runtime = runtime
            if self.is_draining:
                await runtime.drain(0.0)
            if self.tags:  # their queues exist now: a call that names one of them is not lost
                await self._records.announce(self.tags)
            await asyncio.Event().wait()

    async def _mirror_agents(self) -> None:
        """Keep the folder's agents on the trail as its files have them. Other processes may have other files."""
        app = self.app
        await app.ownership.wait(LOOK_SECONDS)
        while True:
            try:
                await app.mirror_agents()
            except ClewError as error:  # the next look may do better
                log.warning("the folder's agents were not looked at: %s", error)
            await asyncio.sleep(LOOK_SECONDS)
