"""The place of a run: the files that its tools work on are where one worker has them.

A run whose records carry `place:NAME` has its tools called by workers that announce this tag. Where no live worker
does, the call is refused.
"""

from __future__ import annotations

from datetime import timedelta

from clew.access import Principal
from clew.agents.workers.worker_records import has_worker
from clew.clock import Clock
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow
from clew.trail.work.correlation import PLACE_TAG

GRACE = timedelta(seconds=10)
"""A call waits for so long for a worker that starts anew."""
LOOK_SECONDS, GRACE_SECONDS = 5.0, 1.0
"""The time until the next look at a call that another worker has, and at one that waits for a worker."""
ROLE = "tools"


def find_place(record: Breadcrumb) -> str | None:
    """The place that a record names."""
    return next((tag.removeprefix(PLACE_TAG) for tag in record.tags if tag.startswith(PLACE_TAG)), None)


def places_of(tags: tuple[str, ...]) -> list[str]:
    """The places that the tags of a worker announce."""
    return [tag.removeprefix(PLACE_TAG) for tag in tags if tag.startswith(PLACE_TAG)]


def refusal(place: str) -> str:
    """The reason for which nothing is done at a place."""
    start = f"clew up --role {ROLE} --tag {PLACE_TAG}{place}"
    return f"no live worker has the place {place!r}: start one where its files are, with `{start}`"


async def require_place(trail: Trail, clock: Clock, place: str, *, by: Principal) -> None:
    """Raise InvalidInput unless a live worker has the place."""
    if not await has_worker(trail, clock, ROLE, PLACE_TAG + place, by=by):
        raise InvalidInput("place", refusal(place), hint="`clew workers` lists the tags of workers")


async def wait_for_place(trail: Trail, clock: Clock, place: str, record: Breadcrumb, *, by: Principal) -> str:
    """The reason for which a call at a place is refused. Raises NotNow while a live worker has it, and for a moment
    after the call was made."""
    if await has_worker(trail, clock, ROLE, PLACE_TAG + place, by=by):
        raise NotNow(LOOK_SECONDS)
    if clock.now() - record.created_at < GRACE:
        raise NotNow(GRACE_SECONDS)
    return refusal(place)
