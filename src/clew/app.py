"""The only wiring: from a `Config` to an `App` that holds an open trail and what works on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clew.access import Principal
from clew.clock import Clock, SystemClock
from clew.config import Config
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.hygiene import Hygiene
from clew.trail.store import Embedder, Trail

if TYPE_CHECKING:
    from clew.trail.webhooks import WebhookSender

log = logging.getLogger(__name__)


class App:
    """An open trail with its sweeper and the person at this machine. Made by `open_app`."""

    def __init__(self, config: Config, clock: Clock, trail: Trail, me: Principal) -> None:
        self.config = config
        self.clock = clock
        self.trail = trail
        self.me = me
        self.hygiene = Hygiene(
            trail,
            by=me,
            clock=clock,
            every=config.hygiene.every_seconds,
            idle_after=timedelta(days=config.hygiene.idle_days),
            enabled=config.hygiene.enabled,
        )

    @contextlib.asynccontextmanager
    async def background(
        self, on_delivery: Callable[[str, float], None] = lambda outcome, seconds: None
    ) -> AsyncIterator[Callable[[], None]]:
        """Warm the index, run the sweeper and the webhooks while the context is open; yields a call that looks for
        new webhooks."""
        # Making the sender takes a third of a second (httpx, certificates), which no start should wait for.
        building = asyncio.create_task(asyncio.to_thread(self._build_sender, on_delivery))

        async def send() -> None:
            await (await building).run()

        async def refresh() -> None:
            await (await building).refresh()

        tasks: set[asyncio.Task[None]] = set()

        def start(work: Coroutine[Any, Any, None]) -> None:
            """Run it, tell of its failure at once, and forget it when it has ended."""
            task = asyncio.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(_tell_of_failure)

        start(send())
        start(self.trail.index.warm())
        if self.config.hygiene.enabled:
            start(self.hygiene.run_forever())
        try:
            yield lambda: start(refresh())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(building, *tasks, return_exceptions=True)

    def _build_sender(self, on_delivery: Callable[[str, float], None]) -> WebhookSender:
        from clew.trail.webhooks import WebhookSender  # httpx is for serving processes only

        return WebhookSender(
            self.trail,
            owners=self.trail.upkeep.webhook_senders,
            clock=self.clock,
            worker_id=f"{socket.gethostname()}:{os.getpid()}",
            allow=self.config.webhooks.allow,
            timeout=self.config.webhooks.timeout_seconds,
            on_delivery=on_delivery,
        )

    async def bootstrap(self) -> None:
        """Make sure that the definitions Clew itself relies on are on the trail."""
        await bootstrap(self.trail, self.me)


def _tell_of_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background task failed: %s", error)


def build_embedder(config: Config) -> Embedder | None:
    """The embedder that the configuration names; loading its weights waits for the first text."""
    return open_embedder(config.embedder)


@contextlib.asynccontextmanager
async def open_app(
    config: Config, clock: Clock | None = None, *, scopes: frozenset[str] = frozenset()
) -> AsyncIterator[App]:
    """Open the trail of a configuration, and close it at the end. `scopes` are those of the person here."""
    clock = clock or SystemClock()
    trail = await open_trail(config.trail_url, clock, build_embedder(config), queue_limit=config.server.queue)
    try:
        yield App(config, clock, trail, Principal(owner_id=config.owner, agent_id="cli", scopes=scopes))
    finally:
        await trail.close()
