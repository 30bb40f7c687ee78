"""Server-sent events: a reader with a cursor on the log. Nothing is queued; a slow reader delays itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from clew.access import Principal
from clew.trail.model.event import Event, sse_payload
from clew.trail.model.selector import Selector
from clew.trail.store import Log

PING_SECONDS = 5.0
RECONNECT_MS = 1_000
BATCH = 64

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Streams the events after a cursor until the reader disconnects, its token expires, the server closes, or
    `is_last` is true for an event. `failure` is called before each ping; if it returns a value, that is sent as the
    event `failed` and the stream ends. The first message is a ping whose id is the cursor, so that a reader can resume
    even before the first event. Pings follow every five seconds, and advance the id past events that the reader may not
    see or did not select.
    """

    log: Log
    by: Principal
    selector: Selector
    after: int
    lasts: timedelta
    closing: asyncio.Event
    is_last: Callable[[Event], bool] = lambda event: False
    payload: Callable[[Event], Awaitable[dict[str, Any]]] | None = None
    failure: Callable[[int], Awaitable[dict[str, Any] | None]] | None = None

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_disconnected(receive))
        closing = asyncio.create_task(self.closing.wait())
        tasks = (writing, leaving, closing)
        try:
            seconds = max(0.0, self.lasts.total_seconds())
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            reason = b"the server is closing" if closing.done() else b"the token has expired"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if leaving.cancelled():
            if not writing.cancelled():
                writing.result()
                reason = b"that was all"
            await send({"type": "http.response.body", "body": b": " + reason + b"\n\n"})

    async def _write(self, send: Send) -> None:
        """Send the events on the log, then wait for more, up to the last event."""
        after, clock = self.after, asyncio.get_running_loop().time
        await _chunk(send, b"retry: %d\n" % RECONNECT_MS + _ping(after))
        next_ping = clock() + PING_SECONDS
        while True:
            events, after = await self.log.read(after, by=self.by, selector=self.selector, limit=BATCH)
            last = next((at for at, event in enumerate(events) if self.is_last(event)), None)
            if events:
                shown = events if last is None else events[: last + 1]
                await _chunk(send, b"".join([await self._message(event) for event in shown]))
            if last is not None:
                return
            if clock() >= next_ping:
                if (failed := await self.failure(after) if self.failure is not None else None) is not None:
                    await _chunk(send, b"id: %d\nevent: failed\ndata: %b\n\n" % (after, _encode(failed)))
                    return
                await _chunk(send, _ping(after))
                next_ping = clock() + PING_SECONDS
            if len(events) < BATCH:
                await self.log.wait(after, max(0.0, next_ping - clock()), selector=self.selector)

    async def _message(self, event: Event) -> bytes:
        payload = sse_payload(event) if self.payload is None else await self.payload(event)
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.type.encode(), _encode(payload))


def _ping(cursor: int) -> bytes:
    return b"id: %d\nevent: ping\ndata: {}\n\n" % cursor


async def _chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
