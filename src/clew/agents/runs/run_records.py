"""The records of runs, read incrementally: a worker reads each record of a run once, and then only new ones.

The trail alone holds the state of a run. This is a cache that any worker can rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.skills.lru_cache import LruCache
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag

MAX_AGE = timedelta(minutes=10)
"""After this time a run is read anew, so that records which somebody deleted or changed leave the copy."""
MAX_BYTES = 32_000_000
_PAGE = 500
_RECORD_BYTES = 2_000
"""About what a record takes in memory beside its content."""

Records = Mapping[str, Breadcrumb]
"""Records by id, oldest first."""


class _Copy:
    """The records of one run up to a place in the listing."""

    def __init__(self, read_at: datetime) -> None:
        self.read_at = read_at
        self.records: dict[str, Breadcrumb] = {}
        self.end: str | None = None
        self.size = 0

    def add(self, record: Breadcrumb) -> None:
        if record.id not in self.records:
            self.size += _RECORD_BYTES + len(msgspec.json.encode(record.context))
        self.records[record.id] = record


class RunRecords:
    """Copies of the runs that this process works on, together at most `limit` bytes."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock, *, by: Principal, limit: int = MAX_BYTES) -> None:
        self._trail = trail
        self._flow = flow
        self._clock = clock
        self._by = by
        self._copies: LruCache[str, _Copy] = LruCache(limit, lambda copy: copy.size)

    async def read(self, run: str) -> Records:
        """All records of a run in the order in which they were written. The caller must not change the mapping."""
        copy = self._copies.find(run)
        if copy is None or self._clock.now() - copy.read_at > MAX_AGE:
            copy = _Copy(self._clock.now())
        await _extend(copy, self._trail, self._flow, run, by=self._by)
        self._copies.keep(run, copy)
        return copy.records

    def forget(self, run: str) -> None:
        """Drop the copy of a run, which has ended."""
        self._copies.drop(run)


async def read_run(trail: Trail, flow: Flow, run: str, *, by: Principal) -> Records:
    """The records of a run in the order in which they were written, read from the trail."""
    if not run:
        return {}
    copy = _Copy(datetime.min)
    await _extend(copy, trail, flow, run, by=by)
    return copy.records


async def _extend(copy: _Copy, trail: Trail, flow: Flow, run: str, *, by: Principal) -> None:
    """Read the records that were written after the end of a copy."""
    schemas = (flow.message, flow.context, flow.request, flow.response, flow.answer, flow.cancel)
    selector = Selector(schema_names=schemas, all_tags=(run_tag(run),))
    has_more = True
    while has_more:
        page = await trail.records.list(selector, by=by, limit=_PAGE, cursor=copy.end, oldest_first=True)
        for record in page.items:
            copy.add(record)
        copy.end, has_more = page.end, page.cursor is not None
