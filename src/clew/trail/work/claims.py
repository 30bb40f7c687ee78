"""The loop under every consumer that runs here: claim events, work on them, acknowledge or give back.

Handlers and webhooks differ only in the work they do on a claim.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from clew.access import Principal
from clew.errors import AccessDenied, ClewError, InvalidInput, LeaseLost, StorageError
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import DEFAULT_LEASE, DEFAULT_RETRY, Claim, Event
from clew.trail.model.selector import Selector, matches, matches_envelope
from clew.trail.store import Trail

MAX_REASON = 300
PAUSE_AFTER_FAILURE = 1.0
SHORTEST_REST = 0.25
"""The shortest pause in seconds of a worker with a share of the time, so that events come in batches."""

_log = logging.getLogger(__name__)


class NotNow(Exception):
    """Raised by work that has no room now. The event is released for some seconds, and the attempt does not count."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"there is no room for {seconds:g} seconds")
        self.seconds = seconds


class GiveBack(msgspec.Struct, frozen=True, kw_only=True):
    """The result of work that failed: the reason, and whether a later attempt may succeed."""

    reason: str
    retry: bool = True


Work = Callable[[Claim], Awaitable[Sequence[Draft] | GiveBack]]
"""Turns a claim into outputs. An exception is treated as a failure that may be retried."""

Refused = Callable[[Claim, ClewError], Sequence[Draft]]
"""The record that replaces outputs which cannot be written, for work that must not be repeated."""

GivenUp = Callable[[Claim, str], Awaitable[Sequence[Draft]]]
"""The records to write in place of a dead letter. The text is the reason why the event is given up."""


@dataclass(slots=True, eq=False)
class _Held:
    """A claim with the task that works on it; the heartbeat renews `claim`. After the work is done, its outcome is sent
    to the trail, and only the trail decides whether the claim still holds."""

    claim: Claim
    task: asyncio.Task[None] | None = None
    is_done: bool = False
    is_lost: bool = False


class ClaimLoop:
    """Works on the events of one consumer, and claims no more than `concurrency` of them at a time.

    Claims are renewed while work runs, so that a lease bounds only how long a dead worker holds an event. With a
    `share` below 1 it rests after each batch, so that it works for at most this share of the time. This is for work
    that can wait.
    """

    def __init__(
        self,
        trail: Trail,
        consumer: str,
        work: Work,
        *,
        by: Principal,
        worker_id: str,
        concurrency: int = 8,
        lease: timedelta = DEFAULT_LEASE,
        share: float = 1.0,
        refused: Refused | None = None,
        given_up: GivenUp | None = None,
        attempts: int = DEFAULT_RETRY.attempts,
    ) -> None:
        self._trail = trail
        self._consumer = consumer
        self._refused = refused
        self._given_up = given_up
        self._attempts = attempts
        self._share = share
        self._busy_since: float | None = None
        self._work = work
        self._by = by
        self._worker_id = worker_id
        self._concurrency = concurrency
        self._lease = lease
        self._held: set[_Held] = set()
        self._has_room = asyncio.Event()
        self._claiming: asyncio.Task[object] | None = None
        """The task that waits for claims."""
        self._draining = asyncio.Event()

    @property
    def held(self) -> list[Claim]:
        """The claims that are worked on, oldest event first."""
        return sorted((each.claim for each in self._held), key=lambda claim: claim.event.seq)

    async def run(self) -> None:
        """Work until cancelled; unfinished events are given back before it returns.

        Raises NotFound when the consumer is gone. Storage errors are logged, and the work is retried until the storage
        is back.
        """
        heartbeat = asyncio.create_task(self._renew_leases())
        try:
            while not self._draining.is_set():
                await retry_on_storage_error(self._step, self._consumer)
            await self._finish_held()
        finally:
            await self._let_go(heartbeat)

    def drain(self) -> None:
        """Claim nothing more: `run` returns when the claims that it holds are done."""
        self._draining.set()
        if self._claiming is not None:
            self._claiming.cancel()

    async def _step(self) -> None:
        await self._rest()
        room = self._concurrency - len(self._held)
        if room == 0:
            self._has_room.clear()
            await self._has_room.wait()
            return
        claims = await self._claim(room)
        if claims:
            self._busy_since = time.monotonic()
        for claim in claims:
            self._start(claim)

    async def _claim(self, room: int) -> list[Claim]:
        """The next claims for this worker. Empty if the worker is draining."""
        claiming = self._claiming = asyncio.current_task()
        try:
            return await self._trail.deliveries.claim(
                self._consumer,
                by=self._by,
                worker=self._worker_id,
                limit=room,
                lease=self._lease,
                wait=self._lease.total_seconds(),
                with_refused=self._given_up is not None,
            )
        except asyncio.CancelledError:
            is_of_drain = self._draining.is_set() and claiming is not None and claiming.uncancel() == 0
            if not is_of_drain:
                raise
            return []
        finally:
            self._claiming = None

    async def _rest(self) -> None:
        """Finish the batch, and then pause so that the loop keeps to its `share` of the time."""
        if self._share >= 1.0 or self._busy_since is None:
            return
        await self._finish_held()
        spent = time.monotonic() - self._busy_since
        self._busy_since = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(SHORTEST_REST, spent * (1 / self._share - 1))):
                await self._draining.wait()

    async def _finish_held(self) -> None:
        while self._held:
            self._has_room.clear()
            await self._has_room.wait()

    def _start(self, claim: Claim) -> None:
        held = _Held(claim)
        self._held.add(held)
        held.task = asyncio.create_task(self._handle(held))

    async def _handle(self, held: _Held) -> None:
        try:
            await self._attempt(held)
        except asyncio.CancelledError:  # it may have stopped the write that ends the claim
            await self._release(held)
            raise
        finally:
            self._held.discard(held)
            self._has_room.set()

    async def _attempt(self, held: _Held) -> None:
        """Work on a claim and end it. Raises CancelledError if the task is cancelled; the claim may then still hold."""
        try:
            if held.claim.refusal and self._given_up is not None:
                await self._give_up(held.claim, self._given_up, held.claim.refusal)
                return
            outcome = await self._work(held.claim)
            held.is_done = True
            await self._settle(held, outcome)
        except LeaseLost as error:
            _log.warning("%s: the result is dropped: %s", self._consumer, error)
        except NotNow as later:
            held.is_done = True  # its lease ends with the release, and needs no renewal
            await self._release(held, later.seconds)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            await self._give_back(held, error)
        except Exception as error:
            await self._give_back(held, error)

    async def _settle(self, held: _Held, outcome: Sequence[Draft] | GiveBack) -> None:
        if isinstance(outcome, GiveBack):
            await self._trail.deliveries.fail(held.claim, outcome.reason, by=self._by, retry=outcome.retry)
            return
        try:
            await self._trail.deliveries.finish(held.claim, outcome, by=self._by)
        except (InvalidInput, AccessDenied) as error:
            if self._refused is None:
                raise
            _log.warning("%s: the outputs cannot be written: %s", self._consumer, describe(error))
            await self._trail.deliveries.finish(held.claim, self._refused(held.claim, error), by=self._by)

    async def _give_back(self, held: _Held, error: BaseException) -> None:
        event = held.claim.event
        told = "%s failed on event %d (attempt %d): %s"
        is_ours = isinstance(error, ClewError)  # raised on purpose: its line says it all
        _log.log(
            logging.INFO if is_ours else logging.WARNING,
            told,
            self._consumer,
            event.seq,
            held.claim.attempt,
            describe(error),
            exc_info=None if is_ours else error,
        )
        if self._given_up is not None and held.claim.attempt >= self._attempts:
            await self._give_up(held.claim, self._given_up, describe(error))
            return
        try:
            if await self._trail.deliveries.fail(held.claim, describe(error), by=self._by) and is_ours:
                _log.warning("%s gave up on event %d: %s", self._consumer, event.seq, describe(error))
        except ClewError as refused:
            _log.warning("%s: event %d is left to its lease: %s", self._consumer, event.seq, refused)

    async def _give_up(self, claim: Claim, given_up: GivenUp, reason: str) -> None:
        """End an event that is not attempted again. It becomes a dead letter only if the records in place of one cannot
        be made or written. If the storage fails, the event comes again when the lease ends."""
        _log.warning("%s gives up on event %d: %s", self._consumer, claim.event.seq, reason)
        try:
            try:
                await self._trail.deliveries.finish(claim, await given_up(claim, reason), by=self._by)
            except (StorageError, LeaseLost):
                raise
            except Exception as error:
                _log.warning("%s: event %d becomes a dead letter: %s", self._consumer, claim.event.seq, describe(error))
                await self._trail.deliveries.fail(claim, reason, by=self._by, retry=False)
        except ClewError as refused:
            _log.warning("%s: event %d is left to its lease: %s", self._consumer, claim.event.seq, refused)

    async def _release(self, held: _Held, delay: float = 0.0) -> None:
        """Release a claim now. This does not count as a failure: another worker may claim the event, at once or after a
        delay. If the call is cancelled, the release is still written."""
        if held.is_lost:
            return
        try:
            await asyncio.shield(self._trail.deliveries.release(held.claim, by=self._by, delay=delay))
        except ClewError as refused:
            _log.info("%s: event %d is left to its lease: %s", self._consumer, held.claim.event.seq, refused)

    async def _renew_leases(self) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            for held in tuple(self._held):
                await self._renew(held)

    async def _renew(self, held: _Held) -> None:
        try:
            held.claim = await self._trail.deliveries.extend(held.claim, by=self._by, lease=self._lease)
        except LeaseLost as error:
            if held.task is not None and not held.is_done:
                _log.warning("%s: the work is stopped: %s", self._consumer, error)
                held.is_lost = True
                held.task.cancel()
        except ClewError as error:
            _log.warning("%s: a lease was not renewed: %s", self._consumer, error)

    async def _let_go(self, heartbeat: asyncio.Task[None]) -> None:
        tasks = [heartbeat, *(held.task for held in self._held if held.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def retry_on_storage_error(step: Callable[[], Awaitable[None]], name: str) -> None:
    """Run `step`, and retry it as long as the storage fails. Each failure is logged under `name`."""
    while True:
        try:
            await step()
        except StorageError as error:
            _log.warning("%s: %s", name, error)
            await asyncio.sleep(PAUSE_AFTER_FAILURE)
        else:
            return


def is_meant(selector: Selector, event: Event) -> bool:
    """Check a delivered event against the selector again. If its breadcrumb is gone, only schema and tags are
    compared."""
    if event.breadcrumb is None:
        return matches_envelope(selector, event.schema_name, event.tags)
    return matches(selector, event.breadcrumb)


def describe(error: BaseException) -> str:
    """An error as one short printable line, fit to be stored and shown."""
    text = str(error) or type(error).__name__
    if not isinstance(error, ClewError) and str(error):
        text = f"{type(error).__name__}: {text}"
    return printable(text, MAX_REASON)


def printable(text: str, limit: int) -> str:
    """Foreign text without control characters or line breaks, at most `limit` characters long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_being_cancelled() -> bool:
    """Whether the current task is being cancelled from outside. If not, the work itself raised the CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
