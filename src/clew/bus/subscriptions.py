"""Finds the agents whose subscriptions match a record, among the consumers of its owner."""

from __future__ import annotations

import asyncio
import time

from clew.access import Principal
from clew.background_tasks import cancel_all, log_failure
from clew.errors import ClewError
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import Selector, matches
from clew.trail.store import Deliveries

FRESH_SECONDS = 5.0
MAX_OWNERS = 1_000


class AgentSubscriptions:
    """The selectors of agents, at most a few seconds old. If a new subscription is missed, its agent waits for one
    poll."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._known: dict[str, tuple[float, tuple[tuple[str, Selector], ...]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def find_agents(self, record: Breadcrumb) -> list[str]:
        """The agents whose subscriptions match a record, each once."""
        read_at, selectors = self._known.get(record.owner_id, (-FRESH_SECONDS, ()))
        if time.monotonic() - read_at >= FRESH_SECONDS and record.owner_id not in self._tasks:
            self._start(record.owner_id)
        return list({agent: None for agent, selector in selectors if matches(selector, record)})

    def _start(self, owner_id: str) -> None:
        task = asyncio.create_task(self._read(owner_id))
        self._tasks[owner_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(owner_id, None))
        task.add_done_callback(log_failure)

    async def _read(self, owner_id: str) -> None:
        try:
            states = await self._deliveries.consumers(by=Principal(owner_id=owner_id))
        except ClewError:  # the next record asks again
            return
        if len(self._known) >= MAX_OWNERS:
            self._known.clear()
        found = tuple((each.consumer.agent_id, each.consumer.selector) for each in states if each.consumer.agent_id)
        self._known[owner_id] = time.monotonic(), found

    async def close(self) -> None:
        await cancel_all(self._tasks.values())
