"""Streams events across restarts and lost connections, without gaps or duplicates."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

import httpx2
import msgspec

from clew.client.connection import Connection, Parameters
from clew.errors import NotAuthenticated
from clew.trail.model.event import EventType

_log = logging.getLogger(__name__)

SILENCE_SECONDS = 15.0
"""The server sends a ping every five seconds. After three missing pings the connection is treated as dead."""

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0
REMEMBERED = 10_000


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change in the stream. `seq` is its position in the log: pass it as `after` to resume. `title` and `context`
    are None when the breadcrumb was deleted."""

    seq: int
    type: EventType
    breadcrumb_id: str
    owner_id: str
    version: int
    schema_name: str | None
    tags: tuple[str, ...]
    updated_at: datetime
    title: str | None = None
    context: dict[str, Any] | None


class StreamMessage(NamedTuple):
    """One server-sent event: the id, event and data lines."""

    id: str
    event: str
    data: bytes


async def follow(
    connection: Connection, params: Parameters, after: int | None, jitter: Callable[[], float]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield events without end. Each change comes once, in order. After a lost connection it reconnects with
    exponential backoff up to half a minute, and resumes after the last id.

    Raises errors that a retry would not solve: a refused token, a missing role, an invalid selector.
    """
    cursor, seen, failures, refused = after, _Seen(), 0, False
    while True:
        try:
            async with aclosing(_read_once(connection, params, cursor)) as messages:
                async for message in messages:
                    failures, refused = 0, False
                    cursor = int(message.id) if message.id.isdecimal() else cursor
                    event = _parse(message)
                    if event is not None and seen.is_new(event):
                        yield event
        except NotAuthenticated:
            # The connection has a new token now; if the server refuses that too, the error is permanent.
            if refused or not connection.can_renew:
                raise
            refused = True
        except httpx2.HTTPError as error:
            _log.info("lost the event stream (%s); reconnecting", type(error).__name__)
        failures += 1
        await asyncio.sleep(wait_before(failures, jitter()))


def wait_before(attempt: int, jitter: float) -> float:
    """Return the seconds to wait before a retry; `jitter` in [0, 1) spreads clients."""
    return min(FIRST_WAIT * 2.0 ** min(attempt - 1, 20), LONGEST_WAIT) * (0.5 + 0.5 * jitter)


async def _read_once(
    connection: Connection, params: Parameters, after: int | None
) -> AsyncGenerator[StreamMessage, None]:
    headers = {"accept": "text/event-stream"} | ({"last-event-id": str(after)} if after is not None else {})
    async with connection.stream("/events/stream", params=params, headers=headers, timeout=SILENCE_SECONDS) as response:
        async for message in read_messages(response.aiter_bytes()):
            yield message


async def read_messages(chunks: AsyncIterator[bytes]) -> AsyncIterator[StreamMessage]:
    """Parse the messages in a stream of chunks.

    Only a line feed ends a line, because JSON may contain other line separators.
    """
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(_field(line) for line in block.split(b"\n"))
            if b"data" in fields:
                id, event = fields.get(b"id", b""), fields.get(b"event", b"message")
                yield StreamMessage(id.decode(errors="replace"), event.decode(errors="replace"), fields[b"data"])


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


def _parse(message: StreamMessage) -> StreamEvent | None:
    """Parse the event of a message; None for a ping and for other data."""
    if message.event == "ping" or not message.id.isdecimal():
        return None
    try:
        return msgspec.convert({**msgspec.json.decode(message.data), "seq": int(message.id)}, StreamEvent)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError):
        return None


class _Seen:
    """The changes that were yielded already. The same version reported as created and as updated is one change."""

    def __init__(self) -> None:
        self._last = 0
        self._changes: OrderedDict[tuple[str, int, bool], None] = OrderedDict()

    def is_new(self, event: StreamEvent) -> bool:
        change = (event.breadcrumb_id, event.version, event.type == "breadcrumb.deleted")
        if event.seq <= self._last or change in self._changes:
            return False
        self._last = event.seq
        self._changes[change] = None
        if len(self._changes) > REMEMBERED:
            self._changes.popitem(last=False)
        return True
