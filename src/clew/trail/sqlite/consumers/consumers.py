"""Rows of `consumers`: their owner, the events they may see, and their position in the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from clew.access import Principal
from clew.clock import from_micros
from clew.errors import AlreadyExists, LeaseLost, NotFound
from clew.sqlite_file import Sql
from clew.trail.model.consumer import StoredConsumer, decode_consumer, to_stored, with_real_start
from clew.trail.model.event import Claim, Consumer, ConsumerState
from clew.trail.sqlite.consumers import shares
from clew.trail.sqlite.engine import Writing
from clew.trail.sqlite.log import read_head
from clew.trail.sqlite.rows import Audiences, in_list

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def put_consumer(writing: Writing, consumer: Consumer, by: Principal) -> None:
    """Write or change a consumer. Raises AlreadyExists when one of that name needs scopes that the caller lacks, and
    AccessDenied for one of Clew's own."""
    by.require_consumer(consumer.name)
    present = writing.execute(
        "SELECT scopes, definition FROM consumers WHERE owner_id = ? AND name = ?", (by.owner_id, consumer.name)
    ).fetchone()
    if present is not None and not by.scopes.issuperset(_decode_texts(present[0])):
        raise AlreadyExists("consumer", consumer.name)
    cursor = _first_cursor(writing, consumer)
    stored = with_real_start(consumer, None if present is None else decode_consumer(present[1]), cursor)
    writing.known.pop((StoredConsumer, by.owner_id, consumer.name), None)
    writing.execute(
        "INSERT INTO consumers (owner_id, name, scopes, definition, cursor, agent_id, created_at)"
        " VALUES (:owner, :name, :scopes, :definition, :cursor, :agent, :now)"
        " ON CONFLICT (owner_id, name) DO UPDATE SET"
        " definition = :definition, scopes = :scopes, agent_id = :agent",
        {
            "owner": by.owner_id,
            "name": consumer.name,
            "scopes": msgspec.json.encode(sorted(by.scopes)).decode(),
            "definition": msgspec.json.encode(stored).decode(),
            "cursor": cursor,
            "agent": consumer.agent_id,
            "now": writing.now,
        },
    )
    if consumer.limits is not None:
        shares.line_up_older(writing, find_consumer(writing, consumer.name, by).cid)


def _first_cursor(writing: Writing, consumer: Consumer) -> int:
    if consumer.start == "beginning":
        return 0
    head = read_head(writing.connection)
    if consumer.after is None:
        return head
    floor = writing.execute("SELECT value FROM meta WHERE key = 'floor'").get
    return min(max(consumer.after, int(floor or 0)), head)


def note_agent(writing: Writing, owner_id: str, consumer: Consumer, *, every: int = 0) -> None:
    """Remember that the agent of a consumer was seen, unless that was noted less than `every` microseconds ago."""
    if not consumer.agent_id:
        return
    key = ("seen", owner_id, consumer.agent_id)
    noted: int | None = writing.known.get(key)
    if noted is not None and writing.now - noted < every:
        return
    writing.known[key] = writing.now
    writing.execute(
        "INSERT INTO agents VALUES (?, ?, ?) ON CONFLICT (owner_id, agent_id) DO UPDATE SET seen_at = excluded.seen_at",
        (owner_id, consumer.agent_id, writing.now),
    )


def find_consumer(writing: Writing, name: str, by: Principal) -> StoredConsumer:
    """A consumer of the caller's owner, all of whose scopes the caller holds. Raises NotFound."""
    key = (StoredConsumer, by.owner_id, name)
    found: StoredConsumer | None = writing.known.get(key)
    if found is None or not by.scopes.issuperset(found.scopes):
        row = writing.execute(
            "SELECT cid, definition, scopes, cursor FROM consumers WHERE owner_id = ? AND name = ?",
            (by.owner_id, name),
        ).fetchone()
        found = writing.known[key] = _to_stored(row, name, by)
    return found


class Held(NamedTuple):
    """A claim that still holds. `is_followed` is true if other events of its lane wait behind it."""

    stored: StoredConsumer
    lane: str
    first_at: int
    is_followed: bool


def find_held(writing: Writing, claim: Claim, by: Principal) -> Held:
    """Read a claim that still holds. Raises NotFound as `find_consumer`, and LeaseLost if the claim no longer
    holds."""
    stored = find_consumer(writing, claim.consumer, by)
    row = writing.execute(
        "SELECT token, lane, first_at,"
        " EXISTS (SELECT 1 FROM deliveries n WHERE n.cid = d.cid AND n.lane = d.lane AND n.state = 3)"
        " FROM deliveries d WHERE cid = ? AND seq = ? AND state = 1",
        (stored.cid, claim.event.seq),
    ).fetchone()
    if row is None or row[0] != claim.token:
        raise LeaseLost(claim.consumer, claim.event.seq)
    return Held(stored, row[1], row[2], bool(row[3]))


def move_cursor(writing: Writing, stored: StoredConsumer, cursor: int) -> StoredConsumer:
    """Remember that a consumer has seen all events up to this one."""
    writing.execute("UPDATE consumers SET cursor = ? WHERE cid = ?", (cursor, stored.cid))
    moved = msgspec.structs.replace(stored, cursor=cursor)
    writing.known[StoredConsumer, stored.owner_id, stored.consumer.name] = moved
    return moved


def _to_stored(row: Any, name: str, by: Principal) -> StoredConsumer:
    if row is None:
        raise NotFound("consumer", name)
    return to_stored(row[0], row[1], _decode_texts(row[2]), row[3], name, by)


class Standing(NamedTuple):
    """A consumer, with the values that decide whether it is worthwhile to look for events."""

    stored: StoredConsumer
    head: int
    next_due: int | None


def read_standing(connection: Sql, name: str, by: Principal, now: int) -> Standing:
    """Read the standing of a consumer in a single statement, because this runs once per event. Raises NotFound as
    `find_consumer`."""
    row = connection.execute(
        "SELECT cid, definition, scopes, cursor, (SELECT max(seq) FROM events),"
        " (SELECT min(due_at) FROM deliveries d WHERE d.cid = consumers.cid AND d.state < 2)"
        " FROM consumers WHERE owner_id = ? AND name = ?",
        (by.owner_id, name),
    ).fetchone()
    stored, due = _to_stored(row, name, by), row[5]
    if stored.consumer.limits is not None and due is not None and due <= now:
        due = shares.next_change(connection, stored.cid, stored.consumer.limits, now)
    return Standing(stored, row[4] or 0, due)


def read_states(connection: Sql, audiences: Audiences, by: Principal, name: str | None = None) -> list[ConsumerState]:
    """The consumers whose scopes the caller holds, by name."""
    rows = connection.execute(
        "SELECT cid, definition, scopes, cursor,"
        " (SELECT seen_at FROM agents a WHERE a.owner_id = c.owner_id AND a.agent_id = c.agent_id)"
        " FROM consumers c WHERE owner_id = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY name",
        (by.owner_id, name),
    ).fetchall()
    found = []
    for cid, definition, scopes, cursor, seen in rows:
        if by.scopes.issuperset(held := frozenset(_decode_texts(scopes))):
            visible = audiences.visible(connection, by.owner_id, held)
            counts = _count(connection, cid, visible)
            consumer, seen_at = decode_consumer(definition), None if seen is None else from_micros(seen)
            found.append(ConsumerState(id=str(cid), consumer=consumer, cursor=cursor, seen_at=seen_at, **counts))
    return found


def find_same(connection: Sql, audiences: Audiences, by: Principal, consumer: Consumer) -> ConsumerState | None:
    """The state of the consumer if it is registered with the same definition and scopes, so that registering it again
    would change nothing. None if not."""
    by.require_consumer(consumer.name)
    scopes = connection.execute(
        "SELECT scopes FROM consumers WHERE owner_id = ? AND name = ? AND definition = ?",
        (by.owner_id, consumer.name, msgspec.json.encode(consumer).decode()),
    ).get
    if scopes is None or frozenset(_decode_texts(scopes)) != by.scopes:
        return None
    return next(iter(read_states(connection, audiences, by, consumer.name)), None)


def _count(connection: Sql, cid: int, visible: tuple[int, ...]) -> dict[str, Any]:
    """The numbers of pending, claimed and dead events. Events that the consumer may no longer see do not count."""
    row = connection.execute(
        "SELECT coalesce(sum(d.state IN (0, 3)), 0), coalesce(sum(d.state = 1), 0), coalesce(sum(d.state = 2), 0)"
        " FROM deliveries d JOIN events e ON e.seq = d.seq"
        f" WHERE d.cid = ? AND e.audience IN {in_list(visible)}",
        (cid,),
    ).fetchone()
    return dict(zip(("pending", "claimed", "dead"), row, strict=True))
