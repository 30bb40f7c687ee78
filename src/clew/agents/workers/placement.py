"""The place of a run: the machine that has the files on which the tools of the run work.

The tools of a run whose records carry `worker-place:NAME` are called by workers that announce `place:NAME`. Each place
has a queue. The worker that claims a call there either makes or refuses it, so a call is never both made and refused. A
place that no worker ever had has no queue, and its calls are refused at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from clew.access import Principal
from clew.agents.runs.call_limits import RUNNER
from clew.agents.workers.worker_records import WorkerStatus, has_worker, list_workers
from clew.clock import Clock
from clew.errors import InvalidInput, LeaseLost, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Claim, Event
from clew.trail.store import Trail
from clew.trail.work.claims import retry_on_storage_error
from clew.trail.work.correlation import PLACE_TAG

WORKER_TAG = "place:"
"""The tag that a worker announces. Records have another tag, `PLACE_TAG`, which only Clew sets."""
GRACE = 45.0
"""Seconds that calls wait for a worker to restart, counted from when their place was first seen without one. A worker
whose clock was changed gives its next sign of life sooner."""
LOOK_SECONDS = 5.0
"""The time between two looks at the queues of places that have no worker."""
NEWEST = 2**62
"""A start position after the last event of the log. The trail stores the number of that event instead."""
ROLE = "tools"
_MARK = f"{RUNNER}@"
_BATCH = 100

Refuse = Callable[[Event, str, str], Awaitable[Sequence[Draft]]]
"""Returns the records that refuse a call. The arguments are the event, the place and the reason."""


def find_place(record: Breadcrumb) -> str | None:
    """The place that a record names."""
    return next((tag.removeprefix(PLACE_TAG) for tag in record.tags if tag.startswith(PLACE_TAG)), None)


def places_of(tags: Iterable[str]) -> list[str]:
    """The places that the tags of a worker announce."""
    return [tag.removeprefix(WORKER_TAG) for tag in tags if tag.startswith(WORKER_TAG)]


def queue_of(place: str) -> str:
    """The consumer of the calls at a place."""
    return _MARK + place


def is_queue_of_place(consumer: str) -> bool:
    return consumer.startswith(_MARK)


def refusal(place: str) -> str:
    """The reason why calls at a place are refused."""
    start = f"clew up --role {ROLE} --tag {WORKER_TAG}{place}"
    return f"no live worker has the place {place!r}: start one where its files are, with `{start}`"


async def require_place(trail: Trail, clock: Clock, place: str, *, by: Principal) -> None:
    """Raise InvalidInput unless a live worker has the place."""
    if not await has_worker(trail, clock, ROLE, WORKER_TAG + place, by=by):
        raise InvalidInput("place", refusal(place), hint="`clew workers` lists the tags of workers")


async def is_queued(trail: Trail, place: str, event: Event, *, by: Principal) -> bool:
    """Whether the queue of a place has or had an event, that is, whether the queue started before the event."""
    for each in await trail.deliveries.consumers(by=by):
        if each.consumer.name == queue_of(place):
            return each.consumer.after is None or event.seq > each.consumer.after
    return False


class PlaceWatch:
    """Refuses the calls of places that have had no live worker for a while."""

    def __init__(self, trail: Trail, clock: Clock, refuse: Refuse, *, by: Principal, worker: str) -> None:
        self._trail = trail
        self._clock = clock
        self._refuse = refuse
        self._by = by
        self._worker = worker
        self._since: dict[str, float] = {}
        """The monotonic time when each place was first seen without a worker; the wall clock may jump."""

    async def run(self) -> None:
        """Check the places at intervals, until cancelled. After a storage failure, try again."""
        while True:
            await retry_on_storage_error(self.look, "places")
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Refuse the calls that have waited too long for a worker."""
        queues = await self._queues()
        alone = set(queues) - await self._live() if queues else set()
        now = time.monotonic()
        self._since = {place: self._since.get(place, now) for place in alone}
        for place, since in tuple(self._since.items()):
            if now - since >= GRACE:
                for queue in queues[place]:
                    await self._refuse_all(queue, place)

    async def _queues(self) -> dict[str, list[str]]:
        """The places that workers have or had, and the consumers of each that may have events."""
        found: dict[str, list[str]] = {}
        states = await self._trail.deliveries.consumers(by=self._by)
        if not any(is_queue_of_place(each.consumer.name) for each in states):
            return found
        head = await self._trail.log.head()
        for each in states:
            name = each.consumer.name
            if is_queue_of_place(name) and (each.pending + each.claimed or each.cursor < head):
                found.setdefault(name.removeprefix(_MARK).removesuffix("/permissions"), []).append(name)
        return found

    async def _live(self) -> set[str]:
        """The places that live workers have. A draining worker counts, because it finishes its claimed calls."""
        workers = await list_workers(self._trail, self._clock, by=self._by)
        return {place for each in workers if ROLE in each.roles for place in _places(each)}

    async def _refuse_all(self, queue: str, place: str) -> None:
        with contextlib.suppress(NotFound):  # the queue is gone
            while claims := await self._trail.deliveries.claim(
                queue, by=self._by, worker=self._worker, limit=_BATCH, with_refused=True
            ):
                is_alone = place not in await self._live()
                for claim in claims:
                    with contextlib.suppress(LeaseLost):
                        await (self._end(claim, place) if is_alone else self._give_back(claim))
                if not is_alone:
                    return

    async def _end(self, claim: Claim, place: str) -> None:
        drafts = await self._refuse(claim.event, place, refusal(place))
        await self._trail.deliveries.finish(claim, drafts, by=self._by)

    async def _give_back(self, claim: Claim) -> None:
        await self._trail.deliveries.release(claim, by=self._by)


def _places(status: WorkerStatus) -> list[str]:
    return places_of(status.tags)
