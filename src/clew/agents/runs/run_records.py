"""The records of runs, read incrementally: a worker reads each record of a run once, and then only changes.

The trail alone holds the state of a run. The copies here are a cache that any worker can rebuild. Events of the log
update the cache, so that a deleted record leaves it before the next prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from clew.access import Principal
from clew.agents.runs.requests import TURN_TAG
from clew.clock import Clock
from clew.errors import NotFound
from clew.skills.lru_cache import LruCache
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request_id, run_tag

MAX_AGE = timedelta(minutes=10)
"""After this time a run is read again from the trail, so that expired records leave the cache."""
MAX_BYTES = 32_000_000
_PAGE = 500
_MAX_EVENTS = 5_000
"""If the log has more new events than this, the run is read again from the trail, which is cheaper."""
_KEPT_FIELDS = ("request_id", "requestId", "tool", "status")
"""Fields of a tool response that do not come from the tool."""
_RECORD_BYTES = 2_000
"""The approximate memory of a record in bytes, without its content."""

DELETED = "(This text was deleted.)"
"""The text that a model reads in place of a deleted one."""

Records = Mapping[str, Breadcrumb]
"""Records by id, oldest first."""


class _Copy:
    """The records of one run as of an event of the log."""

    def __init__(self, read_at: datetime, seq: int) -> None:
        self.read_at = read_at
        self.seq = seq
        self.records: dict[str, Breadcrumb] = {}
        self.size = 0

    def put(self, record: Breadcrumb) -> None:
        self.remove(record.id, is_replaced=True)
        self.size += _size_of(record)
        self.records[record.id] = record

    def remove(self, id: str, *, is_replaced: bool = False) -> None:
        """Remove a record. With `is_replaced` it keeps its position, for the record that replaces it."""
        if (known := self.records.get(id)) is not None:
            self.size -= _size_of(known)
            if not is_replaced:
                del self.records[id]

    def forget_content(self, id: str) -> None:
        """Remove a deleted record. A tool response keeps its place without content, because its turn waits for it."""
        known = self.records.get(id)
        if known is None or not _is_of_turn(known):
            self.remove(id)
            return
        context = {key: known.context[key] for key in _KEPT_FIELDS if key in known.context}
        context |= {key: DELETED for key in ("output", "error") if key in known.context}
        self.put(msgspec.structs.replace(known, context=context))


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
        if copy is None or not await self._update(copy, run):
            copy = await _read_copy(self._trail, self._flow, run, self._clock.now(), by=self._by)
        self._copies.keep(run, copy)
        return copy.records

    async def _update(self, copy: _Copy, run: str) -> bool:
        """Apply the events since the last read. Return False if the run must be read again from the trail."""
        head = await self._trail.log.head()
        if self._clock.now() - copy.read_at > MAX_AGE or not 0 <= head - copy.seq <= _MAX_EVENTS:
            return False
        selector = _selector(self._flow, run)
        while copy.seq < head:
            events, copy.seq = await self._trail.log.read(copy.seq, by=self._by, selector=selector, limit=_PAGE)
            for event in events:
                if event.breadcrumb is not None:
                    copy.put(event.breadcrumb)
                else:
                    copy.forget_content(event.breadcrumb_id)
        return True

    def forget(self, run: str) -> None:
        """Drop the copy of a run, which has ended."""
        self._copies.drop(run)


async def read_run(trail: Trail, flow: Flow, run: str, *, by: Principal) -> Records:
    """The records of a run in the order in which they were written, read from the trail."""
    return (await _read_copy(trail, flow, run, datetime.min, by=by)).records if run else {}


async def _read_copy(trail: Trail, flow: Flow, run: str, now: datetime, *, by: Principal) -> _Copy:
    copy = _Copy(now, await trail.log.head())  # events of the time of reading are applied again, which changes nothing
    cursor, has_more = None, True
    while has_more:
        page = await trail.records.list(_selector(flow, run), by=by, limit=_PAGE, cursor=cursor, oldest_first=True)
        for record in page.items:
            copy.put(record)
        cursor, has_more = page.end, page.cursor is not None
    await _add_deleted_responses(copy, trail, flow, run, by)
    return copy


async def _add_deleted_responses(copy: _Copy, trail: Trail, flow: Flow, run: str, by: Principal) -> None:
    """Add an empty response for each deleted response that a turn waits for. Deleted responses are found only in the
    log."""
    waiting = _waiting_requests(flow, copy.records)
    if not waiting:
        return
    selector = Selector(schema_name=flow.response, all_tags=(run_tag(run),))
    try:
        seq = await trail.log.creation_of(next(iter(waiting.values())).id, by=by)
    except NotFound:  # deleted since it was listed; the next update of the copy learns of it
        return
    head = await trail.log.head()  # newer than the list: a response that was deleted in between is found as well
    while seq < head:
        events, seq = await trail.log.read(seq, by=by, selector=selector, limit=_PAGE)
        for event in events:
            request = waiting.get(next((tag for tag in event.tags if tag.startswith(REQUEST_TAG)), ""))
            if event.type == "breadcrumb.deleted" and request is not None:
                copy.put(_empty_response(event, request))


def _waiting_requests(flow: Flow, records: Records) -> dict[str, Breadcrumb]:
    """The tool requests of turns that have no response, keyed by the tag that the response would have; oldest first."""
    waiting = {
        f"{REQUEST_TAG}{find_request_id(each) or each.id}": each
        for each in records.values()
        if each.schema_name == flow.request and _is_of_turn(each)
    }
    for each in records.values():
        if each.schema_name == flow.response:
            waiting.pop(f"{REQUEST_TAG}{find_request_id(each)}", None)
    return waiting


def _empty_response(event: Event, request: Breadcrumb) -> Breadcrumb:
    """A response as `forget_content` leaves it."""
    context = {
        "request_id": find_request_id(request) or request.id,
        "tool": request.context.get("tool"),
        "status": "success",
        "output": DELETED,
    }
    return msgspec.structs.replace(
        request, id=event.breadcrumb_id, schema_name=event.schema_name, tags=event.tags, context=context
    )


def _is_of_turn(record: Breadcrumb) -> bool:
    return any(tag.startswith(TURN_TAG) for tag in record.tags)


def _selector(flow: Flow, run: str) -> Selector:
    schemas = (flow.message, flow.context, flow.request, flow.response, flow.answer, flow.cancel)
    return Selector(schema_names=schemas, all_tags=(run_tag(run),))


def _size_of(record: Breadcrumb) -> int:
    return _RECORD_BYTES + len(msgspec.json.encode(record.context))
