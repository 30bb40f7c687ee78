"""A cache of the newest events. Most waiting consumers do not want a new event, and can see that here without reading
the database.

On SQLite only commits of this process are here. A user must compare its `head` with that of the log.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from clew.trail.model.selector import Selector, matches_envelope

LENGTH = 1_000
NEARBY = 50
"""Up to this many new events are compared with a selector here. Beyond that it is cheaper to ask the database."""
MAX_SCHEMAS = 10_000

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Envelope(NamedTuple):
    """The fields of an event that are known without its content."""

    seq: int
    schema_name: str | None
    tags: tuple[str, ...]


def to_envelope(seq: int, schema_name: str | None, tags: str) -> Envelope:
    """The envelope of an event whose tags are JSON."""
    return Envelope(seq, schema_name, _decode_texts(tags))


class Tail:
    """All events from some event up to `head`, without gaps. The writing thread adds to it, other threads read."""

    def __init__(self) -> None:
        self.head = -1
        self._lock = threading.Lock()
        self._events: deque[Envelope] = deque(maxlen=LENGTH)
        self._begin = -1
        self._newest: dict[str | None, int] = {}
        """The newest event of each schema, of all events after `_begin`."""

    def add(self, after: int, rows: Sequence[Sequence[Any]]) -> list[Envelope]:
        """Add the rows of a transaction, which are all events after the event `after`, in order. Returns their
        envelopes, or none if events before them are not known here."""
        events = [to_envelope(row[0], row[6], row[7]) for row in rows]
        return events if self.extend(after, events) else []

    def extend(self, after: int, events: Sequence[Envelope]) -> bool:
        """As `add`, for envelopes. Returns whether no event is missing before them. Events that are already known are
        ignored."""
        with self._lock:
            if events[-1].seq <= self.head:
                return False
            is_whole = after == self.head
            if not is_whole:
                self._events.clear()
            if not is_whole or len(self._newest) > MAX_SCHEMAS:
                self._newest.clear()
                self._begin = events[0].seq - 1
            self._events.extend(events)
            self._newest.update((each.schema_name, each.seq) for each in events)
            self.head = events[-1].seq
        return is_whole

    def may_match_new_events(self, after: int, head: int, selector: Selector) -> bool:
        """Whether an event after `after` and up to `head`, the head of the log, may match the selector."""
        return self.pass_by(after, head, selector) < head

    def pass_by(self, after: int, head: int, selector: Selector) -> int:
        """How far a reader that has seen all events up to `after` can move without missing a match: to the event before
        the next one that may match the selector, at most to `head`. Events that are not known here may match."""
        if after >= head:
            return head
        with self._lock:
            newest = self.head
            if self._has_none(selector.schemas, after):
                return max(after, min(head, newest))
            if newest - after > len(self._events):
                return after
            news = list(islice(reversed(self._events), max(0, newest - after)))
        meant = (each.seq for each in reversed(news) if matches_envelope(selector, each.schema_name, each.tags))
        return max(after, min(head, newest, next(meant, newest + 1) - 1))

    def has_none(self, schemas: Sequence[str], after: int) -> bool:
        """Whether no event after `after` has one of these schemas. Takes the same time for any number of events."""
        with self._lock:
            return self._has_none(schemas, after)

    def _has_none(self, schemas: Sequence[str], after: int) -> bool:
        return bool(schemas) and after >= self._begin and all(self._newest.get(each, -1) <= after for each in schemas)


class EmptyLists:
    """Questions to the trail that had no answer. Until an event that may match, none needs to be asked again."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._lock = threading.Lock()
        self._as_of: dict[Hashable, int] = {}

    def has(self, question: Hashable) -> bool:
        """Whether a question had no answer at some event. Asking costs less than to read the head of the log."""
        return question in self._as_of

    def knows(self, question: Hashable, selector: Selector, head: int) -> bool:
        """Whether a question has no answer up to `head`, the head of the log."""
        as_of = self._as_of.get(question)
        if as_of is None or as_of > head:
            return False
        if head - as_of > NEARBY and not self._tail.has_none(selector.schemas, as_of):
            return False
        if self._tail.pass_by(as_of, head, selector) < head:
            return False
        self.note(question, head)
        return True

    def note(self, question: Hashable, head: int) -> None:
        """Note that a question had no answer up to `head`."""
        with self._lock:
            if len(self._as_of) >= LENGTH:
                self._as_of.clear()
            self._as_of[question] = head


def is_meant(selector: Selector, events: Sequence[Envelope]) -> bool:
    """Whether a selector may match one of these events, judged by schema and tags."""
    return any(matches_envelope(selector, each.schema_name, each.tags) for each in events)
