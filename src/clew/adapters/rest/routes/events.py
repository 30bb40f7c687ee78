"""Routes of events: a page of the log, and the live stream."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import RequestHeader, RestAnswer, RestCall, RestOperation, reply
from clew.adapters.rest.parsing import parse_text
from clew.adapters.rest.selector_query import SelectorQuery
from clew.adapters.rest.sse import EventStream
from clew.errors import InvalidInput
from clew.trail.model.event import Event, EventType
from clew.trail.model.selector import check_selector

MAX_SEQ = 2**63 - 1
After = Annotated[int, Meta(ge=0, le=MAX_SEQ, description="The number of the last event that is known already")]


class EventItem(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a page shows it; the stream sends `seq` as the id of its message."""

    seq: int
    type: EventType
    breadcrumb_id: str
    owner_id: str
    version: int
    schema_name: str | None
    tags: tuple[str, ...]
    updated_at: datetime
    title: str | None
    context: dict[str, Any] | None


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of events in order. The next page is `after=cursor`."""

    items: list[EventItem]
    cursor: int


class EventsQuery(SelectorQuery, frozen=True, kw_only=True):
    after: After = 0
    limit: Annotated[int, Meta(ge=1, le=1_000, description="At most this many")] = 100


class StreamQuery(SelectorQuery, frozen=True, kw_only=True):
    after: Annotated[
        After | None,
        Meta(description="Like Last-Event-ID, which takes precedence; without both, the stream starts now"),
    ] = None
    token: Annotated[str | None, Meta(description="A stream token, for clients that cannot send a header")] = None


async def list_events(call: RestCall) -> RestAnswer:
    asked: EventsQuery = call.query
    events, cursor = await call.trail.log.read(asked.after, by=call.by, selector=asked.selector(), limit=asked.limit)
    return reply(EventPage(items=[_item(each) for each in events], cursor=cursor))


async def stream(call: RestCall) -> RestAnswer:
    asked: StreamQuery = call.query
    assert call.caller is not None  # the guard of this route lets nobody else in
    # Checked before the answer begins: a selector that is refused is an error, not a broken stream.
    selector = check_selector(asked.selector())
    after = resume_at(call)
    if after is None:
        after = await call.trail.log.head()
    return EventStream(
        log=call.trail.log,
        by=call.by,
        selector=selector,
        after=after,
        lasts=call.services.keys.remaining(call.caller),
        closing=call.services.closing,
    )


def resume_at(call: RestCall) -> int | None:
    """The number of the last event that the caller has seen: from the header, else from the query."""
    last: str | None = parse_text(call.headers, "last-event-id")
    if not last:
        after: int | None = call.query.after if call.query is not None else None
        return after
    if not (last.isascii() and last.isdigit() and len(last) < 19):
        raise InvalidInput("Last-Event-ID", "must be the id of an event, a number")
    return int(last)


def _item(event: Event) -> EventItem:
    return EventItem(
        seq=event.seq,
        type=event.type,
        breadcrumb_id=event.breadcrumb_id,
        owner_id=event.owner_id,
        version=event.version,
        schema_name=event.schema_name,
        tags=event.tags,
        updated_at=event.at,
        title=event.breadcrumb.title if event.breadcrumb else None,
        context=event.breadcrumb.context if event.breadcrumb else None,
    )


OPERATIONS = (
    RestOperation(
        method="GET",
        path="/events",
        handler=list_events,
        summary="Read a page of the event log",
        group="events",
        verb="subscribe",
        query=EventsQuery,
        answer=EventPage,
    ),
    RestOperation(
        method="GET",
        path="/events/stream",
        handler=stream,
        summary="Follow events live, as server-sent events, resuming where a reader left off",
        group="events",
        guard="stream",
        verb="subscribe",
        query=StreamQuery,
        media="text/event-stream",
        headers=(RequestHeader(name="Last-Event-ID", description="The id of the last message that was received"),),
    ),
)
