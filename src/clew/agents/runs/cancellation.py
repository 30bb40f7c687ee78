"""Cancellation of runs: tasks under way in this process, and the runs that were cancelled."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from clew.access import Principal
from clew.agents.runs.requests import CALLED_TAG
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import retry_on_storage_error
from clew.trail.work.correlation import CONSUMER_TAG, find_run, run_tag

MOST_CALLED = 500
"""How many called agents are cancelled with one run."""

Result = TypeVar("Result")


class RunCancelled(Exception):
    """The run of this work was cancelled."""


class RunCancellation:
    """Cancels the work of a run in this process when any process writes a cancellation."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by
        self._under_way: defaultdict[str, set[asyncio.Task[object]]] = defaultdict(set)

    async def follow(self, after: int) -> None:
        """Watch the log until cancelled. Retries when the storage fails."""

        async def heed() -> None:
            nonlocal after
            selector = Selector(schema_name=self._flow.cancel)
            async for event in self._trail.log.follow(after, by=self._by, selector=selector):
                if event.breadcrumb is not None and (run := find_run(event.breadcrumb)):
                    for task in tuple(self._under_way.get(run, ())):
                        task.cancel()
                after = event.seq

        await retry_on_storage_error(heed, "cancellations")

    async def is_cancelled(self, run: str) -> bool:
        """Whether the run was cancelled, even if that was before this process started."""
        selector = Selector(schema_name=self._flow.cancel, all_tags=(run_tag(run),))
        return bool((await self._trail.records.list(selector, by=self._by, limit=1)).items)

    async def work(self, run: str, do: Callable[[], Awaitable[Result]]) -> Result:
        """Run `do` as part of a run and return its result. Raises RunCancelled if the run was cancelled before or is
        cancelled meanwhile."""
        task = asyncio.create_task(self._unless_cancelled(run, do))
        self._under_way[run].add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if task.cancelled() and not _is_being_cancelled():
                raise RunCancelled from None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        finally:
            self._under_way[run].discard(task)
            if not self._under_way[run]:
                self._under_way.pop(run, None)

    async def _unless_cancelled(self, run: str, do: Callable[[], Awaitable[Result]]) -> Result:
        """Checks for a cancellation before it starts; `follow` sees later ones."""
        if await self.is_cancelled(run):
            raise RunCancelled
        return await do()


async def cancel_called(trail: Trail, flow: Flow, cancellation: Breadcrumb, *, by: Principal) -> list[Draft]:
    """The drafts that cancel the runs of the agents that a cancelled run has called."""
    selector = Selector(schema_name=flow.message, all_tags=(CALLED_TAG + (find_run(cancellation) or cancellation.id),))
    called = await trail.records.list(selector, by=by, limit=MOST_CALLED)
    return [
        Draft(
            title="Cancel a run",
            schema_name=flow.cancel,
            tags=(run_tag(find_run(each) or each.id), *(tag for tag in each.tags if tag.startswith(CONSUMER_TAG))),
            context=cancellation.context,
            embed="never",
        )
        for each in called.items
    ]


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
