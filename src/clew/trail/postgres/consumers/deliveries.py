"""Durable consumers on PostgreSQL: the `Deliveries` interface.

A claim is a row with a lease. The commit of the outputs deletes the row. The rows are the source of truth. A wake-up
only says that it is worthwhile to read them. A worker that misses one reads again after POLL seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock, from_micros
from clew.errors import ClewError
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.consumer import check_claim_limit, check_consumer
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState, QueueLoad
from clew.trail.postgres.consumers import lanes, shares
from clew.trail.postgres.consumers.claims import Claimed, ClaimRequest, claim_events
from clew.trail.postgres.consumers.consumers import (
    find_consumer,
    lock_lanes,
    note_agent,
    put_consumer,
    read_standing,
    read_states,
    refuse_unknown,
)
from clew.trail.postgres.consumers.news import ConsumerNews
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.records import PostgresRecords
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction
from clew.trail.work.queue_lanes import cut_reason, next_due

POLL = 0.5
"""Seconds after which a worker looks again even without a wake-up, because another process may have released an
event."""
SHORTEST_WAIT = 0.02
FAR = 250
"""The stored cursor may lag this many events behind the consumer: after a crash they are checked again."""
WORKERS = (
    "SELECT DISTINCT worker FROM deliveries WHERE state = 1 AND worker IS NOT NULL"
    " AND cid IN (SELECT cid FROM consumers WHERE owner_id = %s) ORDER BY worker"
)


class PostgresDeliveries:
    """See `clew.trail.store.Deliveries`."""

    def __init__(self, engine: PostgresEngine, records: PostgresRecords, clock: Clock) -> None:
        self._engine = engine
        self._records = records
        self._clock = clock
        self.news = ConsumerNews(engine)
        self._under_way: set[asyncio.Task[None]] = set()

    # -- consumers ----------------------------------------------------------------------------------------

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        by.require("subscribe")
        check_consumer(consumer)

        def work(writing: WriteTransaction) -> ConsumerState:
            put_consumer(writing, consumer, by)
            note_agent(writing, by.owner_id, consumer)
            return read_states(writing, by, consumer.name)[0]

        state = await self._engine.write(work, by=by)
        self.news.free(int(state.id))
        return state

    async def unregister(self, name: str, *, by: Principal) -> None:
        by.require("subscribe")
        by.require_consumer(name)
        refuse_unknown(name)

        def work(writing: WriteTransaction) -> int:
            lock_lanes(writing, by.owner_id, name, shared=False)
            cid = find_consumer(writing, name, by).cid
            writing.send("DELETE FROM consumers WHERE cid = %s", (cid,))
            return cid

        self.news.free(await self._engine.write(work, by=by))

    async def consumers(self, *, by: Principal) -> list[ConsumerState]:
        by.require("subscribe")
        return await self._engine.read(lambda reading: read_states(reading, by), by=by)

    async def load(self, consumer: str, *, by: Principal) -> QueueLoad | None:
        by.require("subscribe")
        refuse_unknown(consumer)

        def work(reading: ReadTransaction) -> QueueLoad | None:
            stored = find_consumer(reading, consumer, by)
            limits = stored.consumer.limits
            return None if limits is None else shares.read_load(reading, stored.cid, limits)

        return await self._engine.read(work, by=by)

    async def due_in(self, consumer: str, *, by: Principal) -> float | None:
        by.require("subscribe")
        refuse_unknown(consumer)

        def work(reading: ReadTransaction) -> float | None:
            due = read_standing(reading, consumer, by, self._engine.now()).next_due
            return None if due is None else max(0.0, (due - self._engine.now()) / 1_000_000)

        return await self._engine.read(work, by=by)

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
        refuse_unknown(consumer)
        loop = asyncio.get_running_loop()
        request = ClaimRequest(
            consumer, by, lanes.cut_worker(worker), limit, lease // timedelta(microseconds=1), with_refused
        )
        until = loop.time() + wait
        woken = asyncio.Event()
        with self._engine.wakeups.watching(woken.set) if wait > 0 else contextlib.nullcontext():
            while True:
                woken.clear()
                moment = self.news.moment
                found = await self._claim_now(request)
                if found.claims or (not found.has_more and loop.time() >= until):
                    return found.claims
                if not found.has_more and not await self._wait(found, moment, woken, until):
                    return []

    async def _wait(self, found: Claimed, moment: int, woken: asyncio.Event, until: float) -> bool:
        """Wait until another transaction is worthwhile: a new event may match, an event is due, or one was released
        after `moment`, the begin of the last transaction. Returns False if the time is over and the cursor need not be
        moved."""
        loop, cid, selector = asyncio.get_running_loop(), found.stored.cid, found.stored.consumer.selector
        seen, began = found.stored.cursor, loop.time()
        while True:
            if self.news.is_freed_since(cid, moment):
                return True
            is_meant, seen = await self.news.may_match_new_events(seen, selector)
            if is_meant or seen - found.stored.cursor > FAR:
                return True
            now = loop.time()
            if now >= until:
                return seen > found.stored.cursor  # the last look also moves the cursor
            # another worker is claiming the events that are due already
            again = min(began + POLL, max(now + self._pause(found), began + SHORTEST_WAIT))
            if now >= again:
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(until, again)):
                    await woken.wait()
            woken.clear()

    def _pause(self, found: Claimed) -> float:
        """Seconds until the next waiting or claimed event is due, or POLL if there is none."""
        if found.next_due is None:
            return POLL
        return max((found.next_due - self._engine.now()) / 1_000_000, 0.0)

    async def _claim_now(self, request: ClaimRequest) -> Claimed:
        writing = asyncio.ensure_future(
            self._engine.write(
                lambda writing: claim_events(writing, request, self._clock), by=request.by, durable=False
            )
        )
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await self._run_to_completion(self._give_back(request, writing))
            raise

    async def _give_back(self, request: ClaimRequest, coming: Awaitable[Claimed]) -> None:
        """Release the claims of a call that was cancelled. If this fails, their leases expire."""
        with contextlib.suppress(ClewError):
            for claim in (await coming).claims:
                with contextlib.suppress(ClewError):
                    await self.release(claim, by=request.by)

    async def _run_to_completion(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`. If the wait is cancelled again, `work` still runs to its end."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    # -- claims that are held -----------------------------------------------------------------------------

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        by.require("subscribe")
        refuse_unknown(claim.consumer)

        def work(writing: WriteTransaction) -> Claim:
            cid, until = (
                lanes.find_held(writing, claim, by).stored.cid,
                writing.now + lease // timedelta(microseconds=1),
            )
            writing.send("UPDATE deliveries SET due_at = %s WHERE cid = %s AND seq = %s", (until, cid, claim.event.seq))
            return msgspec.structs.replace(claim, lease_until=from_micros(until))

        return await self._engine.write(work, by=by, durable=False)

    async def release(self, claim: Claim, *, by: Principal, delay: float = 0.0) -> None:
        by.require("subscribe")
        refuse_unknown(claim.consumer)

        def work(writing: WriteTransaction) -> int:
            cid = lanes.find_held(writing, claim, by).stored.cid
            lanes.wait_again(writing, cid, claim.event.seq, due_at=writing.now + int(delay * 1_000_000))
            return cid

        self.news.free(await self._engine.write(work, by=by, durable=False))

    async def workers(self, *, by: Principal) -> list[str]:
        by.require("subscribe")
        rows = await self._engine.read(lambda reading: reading.rows(WORKERS, (by.owner_id,)), by=by)
        return [row[0] for row in rows]

    async def abandon(self, worker: str, *, by: Principal) -> int:
        by.require("subscribe")
        freed = await self._engine.write(
            lambda writing: lanes.abandon(writing, by.owner_id, lanes.cut_worker(worker)), by=by
        )
        for cid in set(freed):
            self.news.free(cid)
        return len(freed)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        by.require("subscribe")
        refuse_unknown(claim.consumer)
        freed: list[Callable[[], list[int]]] = []

        def acknowledge(writing: WriteTransaction) -> None:
            freed[:] = [lanes.leave(writing, claim, by)]

        written: list[Breadcrumb] = []
        if outputs:
            written = await self._records.create_with(outputs, acknowledge, by=by)
        else:
            await self._engine.write(acknowledge, by=by)
        for cid in freed[0]():
            self.news.free(cid)
        return written

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        by.require("subscribe")
        refuse_unknown(claim.consumer)
        reason = cut_reason(reason)

        def work(writing: WriteTransaction) -> tuple[int, bool]:
            lock_lanes(writing, by.owner_id, claim.consumer, shared=True)
            stored, lane, first_at = lanes.find_held(writing, claim, by)
            policy, seq = stored.consumer.retry_policy, claim.event.seq
            due_at = next_due(policy, claim.attempt, first_at, writing.now, random.random()) if retry else None
            if due_at is None:
                lanes.bury(writing, stored.cid, seq, lane, reason)
            else:
                lanes.wait_again(writing, stored.cid, seq, due_at=due_at, reason=reason)
            return stored.cid, due_at is None

        cid, is_dead = await self._engine.write(work, by=by)
        self.news.free(cid)
        return is_dead
