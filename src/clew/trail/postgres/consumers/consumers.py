"""Rows of `consumers`: their owner, the events they may see, and their position in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from clew.access import Principal
from clew.clock import from_micros
from clew.errors import AlreadyExists, NotFound
from clew.trail.model.consumer import StoredConsumer, decode_consumer, to_stored, with_real_start
from clew.trail.model.event import Consumer, ConsumerState
from clew.trail.postgres.consumers import shares
from clew.trail.postgres.engine import READ_HEAD
from clew.trail.postgres.log import EVENT, Row
from clew.trail.postgres.rows import SEEN
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction, pack_texts

FIND = "SELECT cid, definition, scopes, cursor FROM consumers WHERE owner_id = %s AND name = %s"
PUT = (
    "INSERT INTO consumers (owner_id, name, scopes, definition, cursor, agent_id, created_at)"
    " VALUES (%(owner)s, %(name)s, %(scopes)s::text[], %(definition)s, %(cursor)s, %(agent)s, %(now)s)"
    " ON CONFLICT (owner_id, name) DO UPDATE SET definition = excluded.definition, scopes = excluded.scopes,"
    " agent_id = excluded.agent_id"
)
SEE_AGENT = (
    "INSERT INTO agents VALUES (%s, %s, %s) ON CONFLICT (owner_id, agent_id) DO UPDATE SET seen_at = excluded.seen_at"
)
STANDING = (
    "SELECT c.cid, c.definition, c.scopes, c.cursor, l.head,"
    " (SELECT min(d.due_at) FROM deliveries d WHERE d.cid = c.cid AND d.state < 2)"
    " FROM consumers c, log l WHERE c.owner_id = %s AND c.name = %s"
)
SCAN = 500
"""The most events of the log that one transaction reads, so that other workers get their turn."""
NEWS = (
    "SELECT e.* FROM consumers c CROSS JOIN LATERAL ("
    f"{EVENT} WHERE b.seq > c.cursor AND b.audience = ANY ((SELECT audiences_of(c.owner_id, c.scopes))::integer[])"
    f" ORDER BY b.seq LIMIT {SCAN}) e WHERE c.owner_id = %(owner)s AND c.name = %(name)s ORDER BY e.seq"
)
LOCK = "pg_advisory_xact_lock{mode}(hashtextextended(%(owner)s || '/' || %(name)s, 17))"


def lock_lanes(writing: WriteTransaction, owner_id: str, name: str, *, shared: bool) -> None:
    """Lock the lanes of a consumer until the transaction ends. A transaction that adds to lanes holds the lock
    exclusively. Transactions that remove the first event of a lane share it, because no two of them hold the same
    event."""
    mode, key = "_shared" if shared else "", ("lanes", owner_id, name, shared)
    if key not in writing.memo:
        writing.send(f"SELECT {LOCK.format(mode=mode)}", {"owner": owner_id, "name": name})
        writing.memo[key] = True


def look_at(writing: WriteTransaction, name: str, by: Principal) -> QueueStanding:
    """The standing of a consumer, with the next events of the log. Raises NotFound."""
    found = writing.ask(STANDING, (by.owner_id, name))
    news = writing.rows(NEWS, {"owner": by.owner_id, "name": name})
    return _to_standing(writing, found(), name, by, writing.now, news)


def refuse_unknown(name: str) -> None:
    """Raise NotFound for a name that no consumer can have, and that PostgreSQL may not be able to hold."""
    if not name.isprintable():
        raise NotFound("consumer", name)


def put_consumer(writing: WriteTransaction, consumer: Consumer, by: Principal) -> None:
    """Write or change a consumer. Raises AlreadyExists when one of that name needs scopes that the caller lacks, and
    AccessDenied for one of Clew's own."""
    by.require_consumer(consumer.name)
    lock_lanes(writing, by.owner_id, consumer.name, shared=False)
    present = writing.row(FIND, (by.owner_id, consumer.name))
    if present is not None and not by.scopes.issuperset(present[2]):
        raise AlreadyExists("consumer", consumer.name)
    cursor = _first_cursor(writing, consumer)
    stored = with_real_start(consumer, None if present is None else decode_consumer(present[1]), cursor)
    writing.send(
        PUT,
        {
            "owner": by.owner_id,
            "name": consumer.name,
            "scopes": pack_texts(by.scopes),
            "definition": msgspec.json.encode(stored).decode(),
            "cursor": cursor,
            "agent": consumer.agent_id,
            "now": writing.now,
        },
    )
    if consumer.limits is not None and present is not None:
        shares.line_up_older(writing, present[0])


def _first_cursor(writing: WriteTransaction, consumer: Consumer) -> int:
    if consumer.start == "beginning":
        return 0
    head = int(writing.value(READ_HEAD))
    if consumer.after is None:
        return head
    floor = writing.value("SELECT value FROM meta WHERE key = 'floor'")
    return min(max(consumer.after, int(floor or 0)), head)


def note_agent(writing: WriteTransaction, owner_id: str, consumer: Consumer) -> None:
    """Remember that the agent of a consumer was seen."""
    if consumer.agent_id:
        writing.send(SEE_AGENT, (owner_id, consumer.agent_id, writing.now))


def find_consumer(reading: ReadTransaction, name: str, by: Principal) -> StoredConsumer:
    """A consumer of the caller's owner, all of whose scopes the caller holds. Raises NotFound."""
    return _to_stored(reading.row(FIND, (by.owner_id, name)), name, by)


class QueueStanding(NamedTuple):
    """A consumer, the head of the log, the time at which its first waiting or claimed event is due, and the next events
    of the log that the consumer may see."""

    stored: StoredConsumer
    head: int
    next_due: int | None
    news: Sequence[Row] = ()

    def is_idle(self, now: int) -> bool:
        """Whether there is nothing to claim and nothing to read."""
        return not self.has_new_consent and (self.next_due is None or self.next_due > now)

    @property
    def has_new_consent(self) -> bool:
        """Whether the log has events that the consumer has not read."""
        return self.upto > self.stored.cursor

    @property
    def upto(self) -> int:
        """The event up to which `news` covers the log."""
        last = self.news[-1][0] if self.news else 0
        return last if len(self.news) == SCAN else max(self.head, last)


def read_standing(reading: ReadTransaction, name: str, by: Principal, now: int) -> QueueStanding:
    """Raises NotFound as `find_consumer`."""
    return _to_standing(reading, reading.row(STANDING, (by.owner_id, name)), name, by, now, ())


def _to_standing(
    reading: ReadTransaction, row: Any, name: str, by: Principal, now: int, news: Sequence[Row]
) -> QueueStanding:
    stored = _to_stored(row, name, by)
    due, limits = row[5], stored.consumer.limits
    if limits is not None and due is not None and due <= now:
        due = shares.next_change(reading, stored.cid, limits, now)
    return QueueStanding(stored, row[4], due, news)


def _to_stored(row: Any, name: str, by: Principal) -> StoredConsumer:
    if row is None:
        raise NotFound("consumer", name)
    return to_stored(row[0], row[1], row[2], row[3], name, by)


def read_states(reading: ReadTransaction, by: Principal, name: str | None = None) -> list[ConsumerState]:
    """The consumers whose scopes the caller holds, by name."""
    rows = reading.rows(
        "SELECT cid, definition, scopes, cursor,"
        " (SELECT seen_at FROM agents a WHERE a.owner_id = c.owner_id AND a.agent_id = c.agent_id)"
        " FROM consumers c WHERE owner_id = %(owner)s AND (%(name)s::text IS NULL OR name = %(name)s) ORDER BY name",
        {"owner": by.owner_id, "name": name},
    )
    found = []
    for cid, definition, scopes, cursor, seen in rows:
        if by.scopes.issuperset(scopes):
            counts = _count(reading, cid, by.owner_id, scopes)
            consumer, seen_at = decode_consumer(definition), None if seen is None else from_micros(seen)
            found.append(ConsumerState(id=str(cid), consumer=consumer, cursor=cursor, seen_at=seen_at, **counts))
    return found


def _count(reading: ReadTransaction, cid: int, owner_id: str, scopes: list[str]) -> dict[str, Any]:
    """The numbers of pending, claimed and dead events. Events that the consumer may no longer see do not count."""
    row = reading.row(
        "SELECT count(*) FILTER (WHERE d.state IN (0, 3)), count(*) FILTER (WHERE d.state = 1),"
        " count(*) FILTER (WHERE d.state = 2) FROM deliveries d JOIN events b ON b.seq = d.seq"
        f" WHERE d.cid = %(cid)s AND {SEEN}",
        {"cid": cid, "owner": owner_id, "scopes": pack_texts(scopes)},
    )
    return dict(zip(("pending", "claimed", "dead"), row or (0, 0, 0), strict=True))
