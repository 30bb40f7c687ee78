"""A cache of the newest events. Most waiting consumers do not want a new event, and can see that here without reading
the database.

On SQLite only commits of this process are here. Whoever uses it compares its `head` with that of the log.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from clew.trail.model.selector import Selector, matches_envelope

LENGTH = 1_000

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Envelope(NamedTuple):
    """The fields of an event that show without its content."""

    seq: int
    schema_name: str | None
    tags: tuple[str, ...]


def to_envelope(seq: int, schema_name: str | None, tags: str) -> Envelope:
    """The envelope of an event whose tags are JSON."""
    return Envelope(seq, schema_name, _decode_texts(tags))


class Tail:
    """All events after one and up to `head`. The writing thread adds to it, others look."""

    def __init__(self) -> None:
        self.head = -1
        self._lock = threading.Lock()
        self._events: deque[Envelope] = deque(maxlen=LENGTH)

    def add(self, after: int, rows: Sequence[Sequence[Any]]) -> list[Envelope]:
        """Add rows of a transaction, in order, which are all events after one; they, or none when there are others
        before them that are not known here."""
        events = [to_envelope(row[0], row[6], row[7]) for row in rows]
        return events if self.extend(after, events) else []

    def extend(self, after: int, events: Sequence[Envelope]) -> bool:
        """As `add`; whether nothing is missing before them. Those that are known already are left out."""
        with self._lock:
            if events[-1].seq <= self.head:
                return False
            is_whole = after == self.head
            if not is_whole:
                self._events.clear()
            self._events.extend(events)
            self.head = events[-1].seq
        return is_whole

    def may_bring(self, after: int, head: int, selector: Selector) -> bool:
        """Whether one of the events after this one and up to the head of the file may be meant."""
        with self._lock:
            if head != self.head or head - after > len(self._events):
                return head > after
            news = list(islice(reversed(self._events), max(0, head - after)))
        return is_meant(selector, news)


def is_meant(selector: Selector, events: Sequence[Envelope]) -> bool:
    """Whether a selector means one of these, as far as schema and tags settle that."""
    return any(matches_envelope(selector, each.schema_name, each.tags) for each in events)
