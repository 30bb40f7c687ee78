"""Durable consumers on SQLite: the `Deliveries` and `DeadLetters` interfaces.

A consumer's cursor moves along the log; events that it wants become rows of `deliveries`, one lane a session. The
oldest row of a lane can be claimed, the ones behind it wait; a finished row is deleted with the outputs' commit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import AlreadyExists, Corrupted, InvalidInput, LeaseLost, NotFound
from clew.trail.breadcrumb import Breadcrumb, Draft, session_of
from clew.trail.event import Claim, Consumer, ConsumerState, DeadLetter, Event, retry_delay
from clew.trail.selector import EVERYTHING, check_selector
from clew.trail.sqlite.engine import Engine, Sql, Writing, from_micros
from clew.trail.sqlite.log import EVENT, load_event, read_head
from clew.trail.sqlite.records import SqliteRecords
from clew.trail.sqlite.rows import Audiences, in_list, to_event

WAITING, CLAIMED, DEAD = 0, 1, 2
SCAN = 500
MAX_CLAIMS = 1_000

_decode_consumer = msgspec.json.Decoder(Consumer).decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class _Stored(msgspec.Struct, frozen=True):
    """A consumer's row."""

    cid: int
    consumer: Consumer
    scopes: frozenset[str]
    cursor: int


class SqliteDeliveries:
    """See `clew.trail.store.Deliveries`."""

    def __init__(self, engine: Engine, audiences: Audiences, records: SqliteRecords, clock: Clock) -> None:
        self._engine = engine
        self._audiences = audiences
        self._records = records
        self._clock = clock

    # -- consumers ----------------------------------------------------------------------------------------

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        by.require("subscribe")
        check_consumer(consumer)
        return await self._engine.write(lambda writing: self._register(writing, consumer, by))

    def _register(self, writing: Writing, consumer: Consumer, by: Principal) -> ConsumerState:
        found = writing.execute(
            "SELECT scopes FROM consumers WHERE owner_id = ? AND name = ?", (by.owner_id, consumer.name)
        ).get
        if found is not None and not by.scopes.issuperset(_decode_texts(found)):
            raise AlreadyExists("consumer", consumer.name)
        start = 0 if consumer.start == "beginning" else writing.execute("SELECT coalesce(max(seq), 0) FROM events").get
        writing.execute(
            "INSERT INTO consumers (owner_id, name, scopes, definition, cursor, agent_id, created_at)"
            " VALUES (:owner, :name, :scopes, :definition, :cursor, :agent, :now)"
            " ON CONFLICT (owner_id, name) DO UPDATE SET"
            " definition = :definition, scopes = :scopes, agent_id = :agent",
            {
                "owner": by.owner_id,
                "name": consumer.name,
                "scopes": msgspec.json.encode(sorted(by.scopes)).decode(),
                "definition": msgspec.json.encode(consumer).decode(),
                "cursor": start,
                "agent": consumer.agent_id,
                "now": writing.now,
            },
        )
        if consumer.agent_id:
            note_agent(writing, by.owner_id, consumer.agent_id)
        return _states(writing.execute, by, consumer.name)[0]

    async def unregister(self, name: str, *, by: Principal) -> None:
        by.require("subscribe")

        def work(writing: Writing) -> None:
            stored = _find(writing.execute, name, by)
            writing.execute("DELETE FROM consumers WHERE cid = ?", (stored.cid,))

        await self._engine.write(work)

    async def consumers(self, *, by: Principal) -> list[ConsumerState]:
        by.require("subscribe")
        return await self._engine.read_aside(lambda connection: _states(connection.execute, by))

    # -- claims -------------------------------------------------------------------------------------------

    async def claim(
        self,
        consumer: str,
        *,
        by: Principal,
        worker: str,
        limit: int = 1,
        lease: timedelta = timedelta(seconds=30),
    ) -> list[Claim]:
        by.require("subscribe")
        if not 1 <= limit <= MAX_CLAIMS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_CLAIMS:,}")
        while self._engine.read(lambda connection: self._has_work(connection, consumer, by)):
            claims = await self._engine.write(
                lambda writing: self._claim(writing, consumer, by, worker, limit, lease), durable=False
            )
            if claims:
                return claims
        return []

    def _has_work(self, connection: Sql, consumer: str, by: Principal) -> bool:
        """Whether a transaction is worth its while: something is due, or the log has moved on."""
        stored = _find(connection.execute, consumer, by)
        if read_head(connection) > stored.cursor:
            return True
        due = _next_due(connection, stored.cid)
        return due is not None and due <= self._engine.now()

    def _claim(
        self, writing: Writing, name: str, by: Principal, worker: str, limit: int, lease: timedelta
    ) -> list[Claim]:
        """Claim what is due. At most one stretch of the log is looked at: other writers want their turn."""
        stored = _find(writing.execute, name, by)
        if stored.consumer.agent_id:
            note_agent(writing, by.owner_id, stored.consumer.agent_id)
        rows = self._due(writing, stored, limit)
        if len(rows) < limit and self._scan(writing, stored):
            rows = self._due(writing, stored, limit)
        return [claim for row in rows if (claim := self._take(writing, stored, row, worker, lease)) is not None]

    def _due(self, writing: Writing, stored: _Stored, limit: int) -> Any:
        """Rows that can be claimed now: due, and the first of their lane."""
        return writing.execute(
            "SELECT d.seq, d.attempts, d.first_at FROM deliveries d WHERE d.cid = :cid AND d.state < 2"
            " AND d.due_at <= :now AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.cid = :cid"
            " AND e.lane = d.lane AND e.state < 2 AND e.seq < d.seq) ORDER BY d.seq LIMIT :limit",
            {"cid": stored.cid, "now": writing.now, "limit": limit},
        ).fetchall()

    def _scan(self, writing: Writing, stored: _Stored) -> bool:
        """Look at the next stretch of the log; True when there was any."""
        head = int(writing.execute("SELECT coalesce(max(seq), 0) FROM events").get)
        if head <= stored.cursor:
            return False
        connection = writing.connection
        visible = self._visible(writing, stored)
        rows = writing.execute(
            f"{EVENT} WHERE seq > ? AND audience IN {in_list(visible)} ORDER BY seq LIMIT {SCAN}",
            (stored.cursor,),
        ).fetchall()
        for row in rows:
            try:
                event = load_event(connection, self._audiences, row, stored.consumer.selector)
            except Corrupted as error:
                self._enqueue(writing, stored, to_event(row, "", None))
                _bury(writing, stored.cid, row[0], error.message)
                continue
            if event is not None:
                self._enqueue(writing, stored, event)
        cursor = rows[-1][0] if len(rows) == SCAN else head
        writing.execute("UPDATE consumers SET cursor = ? WHERE cid = ?", (cursor, stored.cid))
        return True

    def _visible(self, writing: Writing, stored: _Stored) -> tuple[int, ...]:
        """What a consumer may see: what its owner could when it was registered, whoever works for it."""
        owner = str(writing.execute("SELECT owner_id FROM consumers WHERE cid = ?", (stored.cid,)).get)
        return self._audiences.visible(writing.connection, owner, stored.scopes)

    def _enqueue(self, writing: Writing, stored: _Stored, event: Event) -> None:
        session = session_of(event.tags)
        lane = f"s:{session}" if session is not None else f"b:{event.breadcrumb_id}"
        writing.execute(
            "INSERT OR IGNORE INTO deliveries (cid, seq, lane, state, due_at, first_at) VALUES (?, ?, ?, 0, ?, 0)",
            (stored.cid, event.seq, lane, writing.now),
        )

    def _take(self, writing: Writing, stored: _Stored, row: Any, worker: str, lease: timedelta) -> Claim | None:
        """Claim one row, or bury it when its attempts or its time are used up (a worker died with it)."""
        seq, attempts, first_at = row
        event_row = writing.execute(f"{EVENT} WHERE seq = ?", (seq,)).fetchone()
        if event_row[5] not in self._visible(writing, stored):  # its scopes were narrowed meanwhile
            writing.execute("DELETE FROM deliveries WHERE cid = ? AND seq = ?", (stored.cid, seq))
            return None
        retry, first_at = stored.consumer.retry, first_at or writing.now
        if attempts >= retry.attempts or _is_late(retry.deadline, first_at, writing.now):
            reason = "the workers that claimed it did not finish" if attempts >= retry.attempts else "past its deadline"
            _bury(writing, stored.cid, seq, reason)
            return None
        until, token = writing.now + lease // timedelta(microseconds=1), self._clock.new_id()
        writing.execute(
            "UPDATE deliveries SET state = 1, attempts = ?, due_at = ?, first_at = ?, token = ?, worker = ?"
            " WHERE cid = ? AND seq = ?",
            (attempts + 1, until, first_at, token, worker[:200], stored.cid, seq),
        )
        event = self._load(writing, event_row)
        key = f"{stored.consumer.name}/{seq}"
        return Claim(
            consumer=stored.consumer.name,
            event=msgspec.structs.replace(event, key=key),
            attempt=attempts + 1,
            lease_until=from_micros(until),
            token=token,
            key=key,
        )

    def _load(self, writing: Writing, row: Any) -> Event:
        """The event of a claim. One whose record was damaged meanwhile comes without it."""
        try:
            event = load_event(writing.connection, self._audiences, row, EVERYTHING)
        except Corrupted:
            event = None
        return event or to_event(row, self._audiences.of(writing.connection, row[5])[0], None)

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        def work(writing: Writing) -> Claim:
            stored = _held(writing, claim, by)
            until = writing.now + lease // timedelta(microseconds=1)
            writing.execute(
                "UPDATE deliveries SET due_at = ? WHERE cid = ? AND seq = ?",
                (until, stored.cid, claim.event.seq),
            )
            return msgspec.structs.replace(claim, lease_until=from_micros(until))

        return await self._engine.write(work, durable=False)

    async def release(self, claim: Claim, *, by: Principal) -> None:
        def work(writing: Writing) -> None:
            stored = _held(writing, claim, by)
            writing.execute(
                "UPDATE deliveries SET state = 0, attempts = attempts - 1, due_at = ?, token = NULL, worker = NULL"
                " WHERE cid = ? AND seq = ?",
                (writing.now, stored.cid, claim.event.seq),
            )
            writing.changed.append(0)

        await self._engine.write(work, durable=False)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        prepared = await self._records.prepare(outputs, by=by) if outputs else []

        def work(writing: Writing) -> list[Any]:
            stored = _held(writing, claim, by)
            rows = self._records.insert_all(writing, prepared, by)
            writing.execute("DELETE FROM deliveries WHERE cid = ? AND seq = ?", (stored.cid, claim.event.seq))
            return rows

        writing = self._engine.submit(work)
        return self._records.to_breadcrumbs(await self._records.with_terms(writing, prepared, by))

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        reason = reason[:2_000].encode("utf-8", "replace").decode()

        def work(writing: Writing) -> bool:
            stored = _held(writing, claim, by)
            policy, seq = stored.consumer.retry, claim.event.seq
            wait = int(retry_delay(policy, claim.attempt, random.random()) * 1_000_000)
            first_at = writing.execute(
                "SELECT first_at FROM deliveries WHERE cid = ? AND seq = ?", (stored.cid, seq)
            ).get
            late = _is_late(policy.deadline, first_at, writing.now + wait)
            if not retry or claim.attempt >= policy.attempts or late:
                _bury(writing, stored.cid, seq, reason)
                return True
            writing.execute(
                "UPDATE deliveries SET state = 0, due_at = ?, token = NULL, worker = NULL, reason = ?"
                " WHERE cid = ? AND seq = ?",
                (writing.now + wait, reason, stored.cid, seq),
            )
            return False

        return await self._engine.write(work)

    async def due_in(self, consumer: str, *, by: Principal) -> float | None:
        def work(connection: Sql) -> float | None:
            stored = _find(connection.execute, consumer, by)
            due = _next_due(connection, stored.cid)
            return None if due is None else max(0.0, (due - self._engine.now()) / 1_000_000)

        return self._engine.read(work)


class SqliteDeadLetters:
    """See `clew.trail.store.DeadLetters`."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences

    async def list(self, *, by: Principal, consumer: str | None = None, limit: int = 100) -> Sequence[DeadLetter]:
        by.require("administer")
        return await self._engine.read_aside(lambda connection: self._list(connection, by, consumer, limit))

    def _list(self, connection: Sql, by: Principal, consumer: str | None, limit: int) -> Sequence[DeadLetter]:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        rows = connection.execute(
            "SELECT c.cid, c.name, d.attempts, coalesce(d.reason, ''), d.due_at, e.seq, e.type, e.rid, e.id, e.version,"
            " e.audience, e.schema_name, e.tags, e.at FROM deliveries d JOIN consumers c ON c.cid = d.cid"
            f" JOIN events e ON e.seq = d.seq WHERE d.state = 2 AND c.owner_id = ? AND e.audience IN {in_list(visible)}"
            " AND (?2 IS NULL OR c.name = ?2) ORDER BY d.seq, c.cid LIMIT ?",
            (by.owner_id, consumer, max(1, min(limit, 1_000))),
        ).fetchall()
        return [self._letter(connection, row) for row in rows]

    def _letter(self, connection: Sql, row: Any) -> DeadLetter:
        cid, name, attempts, reason, failed_at, *event_row = row
        event = load_event(connection, self._audiences, event_row, EVERYTHING)
        return DeadLetter(
            id=f"{cid}-{event_row[0]}",
            consumer=name,
            event=event or to_event(event_row, "", None),
            attempts=attempts,
            reason=reason,
            failed_at=from_micros(failed_at),
        )

    async def replay(self, id: str, *, by: Principal) -> None:
        by.require("administer")
        await self._engine.write(
            lambda writing: self._change(
                writing, id, by, "UPDATE deliveries SET state = 0, attempts = 0, due_at = ?3, first_at = 0"
            )
        )

    async def drop(self, id: str, *, by: Principal) -> None:
        by.require("administer")
        await self._engine.write(lambda writing: self._change(writing, id, by, "DELETE FROM deliveries"))

    def _change(self, writing: Writing, id: str, by: Principal, sql: str) -> None:
        cid, _, seq = id.partition("-")
        visible = self._audiences.visible(writing.connection, by.owner_id, by.scopes)
        if cid.isascii() and cid.isdecimal() and seq.isascii() and seq.isdecimal() and max(len(cid), len(seq)) < 19:
            found = writing.execute(
                "SELECT 1 FROM deliveries d JOIN consumers c ON c.cid = d.cid JOIN events e ON e.seq = d.seq"
                " WHERE d.cid = ? AND d.seq = ? AND d.state = 2 AND c.owner_id = ?"
                f" AND e.audience IN {in_list(visible)}",
                (int(cid), int(seq), by.owner_id),
            ).get
            if found is not None:
                values = (int(cid), int(seq), writing.now)[: 3 if "?3" in sql else 2]
                writing.execute(f"{sql} WHERE cid = ?1 AND seq = ?2", values)
                writing.changed.append(0)
                return
        raise NotFound("dead letter", id)


def check_consumer(consumer: Consumer) -> Consumer:
    """Refuse names and policies that make no sense."""
    if not 1 <= len(consumer.name) <= 200 or not consumer.name.isprintable() or consumer.name.strip() != consumer.name:
        raise InvalidInput("name", "must be 1 to 200 printable characters")
    retry = consumer.retry
    if not 1 <= retry.attempts <= 100 or not 0 <= retry.backoff <= 86_400 or not 0 <= retry.backoff_limit <= 86_400:
        raise InvalidInput("retry", "needs 1 to 100 attempts and a backoff of at most a day")
    if retry.deadline is not None and not 0 < retry.deadline <= 31_536_000:
        raise InvalidInput("retry.deadline", "must be between 0 and a year in seconds")
    check_selector(consumer.selector)
    return consumer


def note_agent(writing: Writing, owner_id: str, agent_id: str) -> None:
    """Remember that an agent was seen."""
    writing.execute(
        "INSERT INTO agents VALUES (?, ?, ?) ON CONFLICT (owner_id, agent_id) DO UPDATE SET seen_at = excluded.seen_at",
        (owner_id, agent_id, writing.now),
    )


def _find(execute: Any, name: str, by: Principal) -> _Stored:
    """A consumer of the caller's owner, all of whose scopes the caller holds. Raises NotFound."""
    row = execute(
        "SELECT cid, definition, scopes, cursor FROM consumers WHERE owner_id = ? AND name = ?",
        (by.owner_id, name),
    ).fetchone()
    if row is None or not by.scopes.issuperset(scopes := frozenset(_decode_texts(row[2]))):
        raise NotFound("consumer", name)
    return _Stored(row[0], _decode_consumer(row[1]), scopes, row[3])


def _held(writing: Writing, claim: Claim, by: Principal) -> _Stored:
    """The consumer of a claim that is still held. Raises LeaseLost."""
    by.require("subscribe")
    stored = _find(writing.execute, claim.consumer, by)
    token = writing.execute(
        "SELECT token FROM deliveries WHERE cid = ? AND seq = ? AND state = 1", (stored.cid, claim.event.seq)
    ).get
    if token != claim.token:
        raise LeaseLost(claim.consumer, claim.event.seq)
    return stored


def _next_due(connection: Sql, cid: int) -> int | None:
    """When the first row at the head of its lane is due."""
    due = connection.execute(
        "SELECT min(d.due_at) FROM deliveries d WHERE d.cid = :cid AND d.state < 2 AND NOT EXISTS"
        " (SELECT 1 FROM deliveries e WHERE e.cid = :cid AND e.lane = d.lane AND e.state < 2 AND e.seq < d.seq)",
        {"cid": cid},
    ).get
    return None if due is None else int(due)


def _bury(writing: Writing, cid: int, seq: int, reason: str) -> None:
    writing.execute(
        "UPDATE deliveries SET state = 2, due_at = ?, token = NULL, reason = coalesce(nullif(?, ''), reason)"
        " WHERE cid = ? AND seq = ?",
        (writing.now, reason, cid, seq),
    )


def _is_late(deadline: float | None, first_at: int, moment: int) -> bool:
    return deadline is not None and moment > first_at + int(deadline * 1_000_000)


def _states(execute: Any, by: Principal, name: str | None = None) -> list[ConsumerState]:
    rows = execute(
        "SELECT c.scopes, c.cid, c.definition, c.cursor, coalesce(sum(d.state = 0), 0), coalesce(sum(d.state = 1), 0),"
        " coalesce(sum(d.state = 2), 0) FROM consumers c LEFT JOIN deliveries d ON d.cid = c.cid"
        " WHERE c.owner_id = ?1 AND (?2 IS NULL OR c.name = ?2) GROUP BY c.cid ORDER BY c.name",
        (by.owner_id, name),
    ).fetchall()
    return [
        ConsumerState(
            id=str(cid),
            consumer=_decode_consumer(definition),
            cursor=cursor,
            pending=waiting,
            claimed=held,
            dead=dead,
        )
        for scopes, cid, definition, cursor, waiting, held, dead in rows
        if by.scopes.issuperset(_decode_texts(scopes))
    ]
