"""Durable consumers on SQLite: the `Deliveries` interface.

A consumer's cursor moves along the log. Events that it wants become rows of `deliveries`. A claim is a row with a
lease. The commit of the outputs deletes the row.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock, from_micros, to_micros
from clew.errors import ClewError
from clew.sqlite_file import Sql
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.consumer import StoredConsumer, check_claim_limit, check_consumer
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState, QueueLoad
from clew.trail.sqlite.consumers import lanes, shares
from clew.trail.sqlite.consumers.claim_orders import Order, Orders
from clew.trail.sqlite.consumers.claims import FAR, Claiming, News
from clew.trail.sqlite.consumers.consumers import (
    find_consumer,
    find_held,
    find_same,
    note_agent,
    put_consumer,
    read_standing,
    read_states,
)
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.log import EVENT, SqliteLog
from clew.trail.sqlite.records import SqliteRecords
from clew.trail.sqlite.rows import Audiences
from clew.trail.sqlite.version_writes import Marks
from clew.trail.work.queue_lanes import cut_reason, next_due

MAX_REMEMBERED = 1_000
SETTLE = 1_000_000
"""If a consumer has seen more than its stored cursor says, the cursor is written after this many microseconds without
new events."""
FREED = -1
"""Marks released claims in the list of changes of a transaction. 0 marks any other change that is not a record."""
NEWS = 50
"""Up to this many new events are matched with pending orders. Beyond that, workers query the log."""
FILLED_AT_ONCE = 8
"""A transaction fills at most this many orders: its writer waits for it."""

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class SqliteDeliveries:
    """See `clew.trail.store.Deliveries`."""

    def __init__(
        self, engine: Engine, audiences: Audiences, records: SqliteRecords, log: SqliteLog, clock: Clock
    ) -> None:
        self._engine = engine
        self._audiences = audiences
        self._records = records
        self._log = log
        self._claiming = Claiming(audiences, clock)
        self._orders = Orders(engine.calls)
        self._seen = 0
        self._turn = 0
        self._freed: set[int] = set()
        self._behind: dict[int, tuple[int, int, float]] = {}
        self._last: dict[tuple[str, str, str], Order] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    # -- consumers ----------------------------------------------------------------------------------------

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        by.require("subscribe")
        check_consumer(consumer)

        def work(writing: Writing) -> ConsumerState:
            put_consumer(writing, consumer, by)
            note_agent(writing, by.owner_id, consumer)
            writing.changed.append(0)
            return read_states(writing.connection, self._audiences, by, consumer.name)[0]

        known = self._engine.read(lambda connection: find_same(connection, self._audiences, by, consumer))
        return await self._engine.write(work) if known is None else known

    async def unregister(self, name: str, *, by: Principal) -> None:
        by.require("subscribe")
        by.require_consumer(name)

        def work(writing: Writing) -> None:
            stored = find_consumer(writing, name, by)
            writing.execute("DELETE FROM consumers WHERE cid = ?", (stored.cid,))
            writing.known.pop((StoredConsumer, by.owner_id, name), None)
            writing.changed.append(0)

        await self._engine.write(work)

    async def consumers(self, *, by: Principal) -> list[ConsumerState]:
        by.require("subscribe")
        return await self._engine.read_aside(lambda connection: read_states(connection, self._audiences, by))

    async def load(self, consumer: str, *, by: Principal) -> QueueLoad | None:
        by.require("subscribe")

        def work(connection: Sql) -> QueueLoad | None:
            stored = read_standing(connection, consumer, by, self._engine.now()).stored
            limits = stored.consumer.limits
            return None if limits is None else shares.read_load(connection, stored.cid, limits)

        return self._engine.read(work)

    async def due_in(self, consumer: str, *, by: Principal) -> float | None:
        by.require("subscribe")

        def work(connection: Sql) -> float | None:
            due = read_standing(connection, consumer, by, self._engine.now()).next_due
            return None if due is None else max(0.0, (due - self._engine.now()) / 1_000_000)

        return self._engine.read(work)

    # -- claiming -----------------------------------------------------------------------------------------

    async def claim(
        self,
        consumer: str,
        *,
        by: Principal,
        worker: str,
        limit: int = 1,
        lease: timedelta = DEFAULT_LEASE,
        wait: float = 0.0,
        with_refused: bool = False,
    ) -> list[Claim]:
        by.require("subscribe")
        check_claim_limit(limit)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            order = Order(
                consumer=consumer,
                by=by,
                worker=worker,
                limit=limit,
                lease=lease // timedelta(microseconds=1),
                with_refused=with_refused,
                done=loop.create_future(),
            )
            claims = await self._stand(order, until - loop.time())
            self._remember(order)
            if claims is None:
                claims = await self._claim_now(order)
            elif not claims and loop.time() >= until:
                return await self._claim_now(order) if self._is_behind(order) else []
            if claims:
                return claims

    async def _stand(self, order: Order, longest: float) -> list[Claim] | None:
        """Place an order and wait until it is filled, something happens, or it is time to look again. Returns None if
        the caller should look for events at once."""
        end, before = partial(self._orders.end, order), self._find_before(order)
        self._orders.place(order)
        try:
            with self._log.watching(end, until=lambda: order.until) as watch:
                order.look = watch.looks
                if before is None or before.turn != self._turn or before.look != watch.looks:
                    self._engine.read(lambda connection: self._look(connection, order))
                pause = self._pause(order)
                if pause <= 0.0 or longest <= 0.0:
                    end()
                else:
                    order.wait_for(min(pause, longest))
                await order.done
        except BaseException:
            if not self._orders.take(order):
                await self._run_to_completion(self._give_back(order, order.outcome()))
            raise
        return None if pause <= 0.0 and not order.claims else order.claims

    def _find_before(self, order: Order) -> Order | None:
        """The last order of this worker, if it received all the events that there were. If nothing has happened since,
        the caller need not read anything."""
        before = self._last.get((order.by.owner_id, order.consumer, order.worker))
        if before is None or not 0 < len(before.claims) < before.limit or before.by != order.by:
            return None
        ends = to_micros(before.claims[0].lease_until)
        order.stored, order.due = before.stored, ends if before.due is None else min(ends, before.due)
        return before if order.due > self._engine.now() else None

    def _remember(self, order: Order) -> None:
        if len(self._last) >= MAX_REMEMBERED:
            self._last.clear()
        self._last[order.by.owner_id, order.consumer, order.worker] = order

    def _look(self, connection: Sql, order: Order) -> None:
        stored, head, due = read_standing(connection, order.consumer, order.by, self._engine.now())
        order.stored, order.due = stored, due
        if not self._log.may_match_new_events(self._claiming.position(stored), head, stored.consumer.selector):
            self._claiming.note_passed(stored, head)
        if head > self._claiming.position(stored) or head - stored.cursor > FAR:
            order.due = 0
        elif not self._is_behind(order):
            self._behind.pop(stored.cid, None)
        else:
            position, now, ticks = self._claiming.position(stored), self._engine.now(), time.monotonic()
            at, since, began = self._behind.get(stored.cid, (position, now, ticks))
            since, began = (since, began) if at == position else (now, ticks)
            self._behind[stored.cid] = position, since, began
            has_waited = (
                ticks - began > SETTLE / 1_000_000
            )  # also if the clock of the trail was set back or stands still
            settled = min(since + SETTLE, now) if has_waited else since + SETTLE
            order.due = settled if due is None else min(due, settled)

    def _is_behind(self, order: Order) -> bool:
        """Whether the stored cursor is behind the events that the consumer has seen."""
        return order.stored is not None and self._claiming.position(order.stored) > order.stored.cursor

    def _pause(self, order: Order) -> float:
        """Seconds until a transaction is worthwhile, because an event is due or the cursor must be moved."""
        return math.inf if order.due is None else (order.due - self._engine.now()) / 1_000_000

    async def _claim_now(self, order: Order) -> list[Claim]:
        writing = self._engine.submit(lambda writing: self._claiming.claim(writing, order), durable=False)
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await self._run_to_completion(self._give_back(order, writing))
            raise

    async def _give_back(self, order: Order, coming: Awaitable[list[Claim]]) -> None:
        """Release the claims of a call that was cancelled. If this fails, their leases expire."""
        with contextlib.suppress(ClewError):
            for claim in await coming:
                with contextlib.suppress(ClewError):
                    await self.release(claim, by=order.by)

    async def _run_to_completion(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`. If the wait is cancelled again, `work` still runs to its end."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    # -- filling orders, in the writing thread ------------------------------------------------------------

    def filling(self) -> Callable[[Writing], None] | None:
        """The work to do before a transaction is committed, or None if no order is pending."""
        self._turn += 1
        if self._orders.standing():
            return self._fill
        self._freed = set()
        return None

    def _fill(self, writing: Writing) -> None:
        """Claim the new events of a transaction for the pending orders, in that transaction and before its commit. An
        order that was checked gets the number of this turn, whether or not there was an event for it. If an event waits
        for its time, no other order of its consumer is marked as checked, because the order does not know that time."""
        freed, self._freed = self._freed, set()
        news, dry, room = self._read_news(writing), dict[int, int](), FILLED_AT_ONCE
        for order in self._orders.standing():
            stored = order.stored
            if stored is None:
                continue
            is_freed = stored.cid in freed
            if stored.cid in dry:
                order.turn = dry[stored.cid]
            elif not is_freed and self._claiming.skip(stored, news):
                order.turn = self._turn
            elif not is_freed and not self._claiming.is_meant(writing, stored, news):
                order.turn = self._turn if self._claiming.pass_by(writing, order, stored, news) else 0
            elif room and self._orders.take_to_fill(order):
                order.turn = self._turn
                order.claims = self._claiming.claim(writing, order, None if is_freed else news)
                if len(order.claims) < order.limit:
                    is_later = stored.consumer.delay > 0 or is_freed
                    order.turn = dry[stored.cid] = 0 if is_later else self._turn
                room -= 1

    def _read_news(self, writing: Writing) -> News:
        """The events since the last call, at most the newest NEWS."""
        log: Marks | None = writing.memo.get(Marks)
        if log is not None and log.after == self._seen and 0 < len(log.rows) <= NEWS:
            rows: list[Any] = log.rows
        else:
            rows = writing.execute(
                f"{EVENT} WHERE seq > max(?, (SELECT max(seq) FROM events) - {NEWS}) ORDER BY seq", (self._seen,)
            ).fetchall()
        self._seen = rows[-1][0] if rows else self._seen
        return News(
            after=rows[0][0] - 1 if rows else self._seen,
            head=self._seen,
            rows=rows,
            tags=[_decode_texts(row[7]) for row in rows],
            schemas=frozenset(row[6] for row in rows),
            records={},
        )

    def committed(self, changed: Sequence[int]) -> None:
        """Hand out the claims of the transaction that was just committed. Orders that were not checked end, so that
        their workers look for themselves. If more than events has changed, all orders end. Orders that had no event in
        the transaction end soon, so that the cursors of their consumers are written."""
        self._claiming.committed()
        is_other = 0 in changed
        for order in self._orders.standing():
            if is_other or order.turn != self._turn:
                self._orders.take_to_fill(order)
            elif not order.is_hastened and self._is_behind(order):
                self._orders.hasten(order, SETTLE / 1_000_000)
        self._orders.hand_out()

    def rolled_back(self) -> None:
        """Forget the claims of a transaction that was undone. Their workers look for events themselves."""
        self._seen = 0
        self._turn += 1
        self._claiming.rolled_back()
        self._orders.take_back()

    # -- claims that are held -----------------------------------------------------------------------------

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        def work(writing: Writing) -> Claim:
            stored = find_held(writing, claim, by).stored
            until = writing.now + lease // timedelta(microseconds=1)
            writing.execute(
                "UPDATE deliveries SET due_at = ? WHERE cid = ? AND seq = ?",
                (until, stored.cid, claim.event.seq),
            )
            return msgspec.structs.replace(claim, lease_until=from_micros(until))

        by.require("subscribe")
        return await self._engine.write(work, durable=False)

    async def release(self, claim: Claim, *, by: Principal, delay: float = 0.0) -> None:
        def work(writing: Writing) -> None:
            stored = find_held(writing, claim, by).stored
            lanes.wait_again(writing, stored.cid, claim.event.seq, due_at=writing.now + int(delay * 1_000_000))
            self._note_freed(writing, stored)

        by.require("subscribe")
        await self._engine.write(work, durable=False)

    async def workers(self, *, by: Principal) -> list[str]:
        def read(connection: Sql) -> list[str]:
            rows = connection.execute(
                "SELECT DISTINCT worker FROM deliveries WHERE state = 1 AND worker IS NOT NULL"
                " AND cid IN (SELECT cid FROM consumers WHERE owner_id = ?) ORDER BY worker",
                (by.owner_id,),
            )
            return [row[0] for row in rows]

        by.require("subscribe")
        return self._engine.read(read)

    async def abandon(self, worker: str, *, by: Principal) -> int:
        def work(writing: Writing) -> int:
            freed = lanes.abandon(writing, by.owner_id, worker)
            self._freed.update(freed)
            writing.changed.extend([FREED] if freed else [])
            return len(freed)

        by.require("subscribe")
        return await self._engine.write(work)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        by.require("subscribe")

        def acknowledge(writing: Writing) -> None:
            held = find_held(writing, claim, by)
            cid = held.stored.cid
            is_followed = lanes.leave(writing, cid, claim.event.seq, held.lane, is_followed=held.is_followed)
            if is_followed or (held.stored.consumer.limits is not None and shares.has_waiting(writing, cid)):
                self._note_freed(writing, held.stored)

        if outputs:
            return await self._records.create_with(outputs, acknowledge, by=by)
        await self._engine.write(acknowledge)
        return []

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        reason = cut_reason(reason)

        def work(writing: Writing) -> bool:
            stored, lane, first_at, _ = find_held(writing, claim, by)
            policy, seq = stored.consumer.retry_policy, claim.event.seq
            due_at = next_due(policy, claim.attempt, first_at, writing.now, random.random()) if retry else None
            self._note_freed(writing, stored)
            if due_at is None:
                lanes.bury(writing, stored.cid, seq, lane, reason)
                return True
            lanes.wait_again(writing, stored.cid, seq, due_at=due_at, reason=reason)
            return False

        by.require("subscribe")
        return await self._engine.write(work)

    def _note_freed(self, writing: Writing, stored: StoredConsumer) -> None:
        """Note that a claimed event was released and can be claimed, now or later, so that waiting workers look
        again."""
        self._freed.add(stored.cid)
        writing.changed.append(FREED)
