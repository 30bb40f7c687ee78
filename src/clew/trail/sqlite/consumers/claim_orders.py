"""Orders: pending claims that wait for an event. The writing thread fills them in the same transaction that writes the
event."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass, field
from functools import partial

from clew.access import Principal
from clew.trail.model.consumer import StoredConsumer
from clew.trail.model.event import Claim
from clew.trail.work.loop_calls import LoopCalls


@dataclass(slots=True, eq=False, kw_only=True)
class Order:
    """A pending claim of a worker. `stored` is its consumer as last read, and `due` the time at which the next waiting
    event of the consumer is due. `look` counts the detected writes of other processes at that read. `turn` is the last
    transaction that was checked for events for this order. `until` is the time of the event loop at which the wait
    ends. `is_hastened` says that its wait is already shortened."""

    consumer: str
    by: Principal
    worker: str
    limit: int
    lease: int
    with_refused: bool
    done: asyncio.Future[None]
    stored: StoredConsumer | None = None
    due: int | None = None
    look: int = 0
    turn: int = 0
    claims: list[Claim] = field(default_factory=list)
    is_answered: bool = False
    is_hastened: bool = False
    until: float = math.inf

    def wait_for(self, seconds: float) -> None:
        """Wait for at most `seconds` from now on. Must be called on the event loop that waits."""
        self.until = min(self.until, self.done.get_loop().time() + seconds)

    def answer(self) -> None:
        """Answer the order with `claims`. Must be called on the event loop that waits."""
        self.is_answered = True
        if not self.done.done():
            self.done.set_result(None)

    async def outcome(self) -> list[Claim]:
        """The answer to an order that was filled although its worker no longer waits."""
        if not self.is_answered:
            self.done = asyncio.get_running_loop().create_future()
            await self.done
        return self.claims


class Orders:
    """The pending orders of this process. An order is pending until it is taken, and only the taker answers it: either
    its worker, which stops waiting, or the writing thread, after the transaction in which it filled the order."""

    def __init__(self, calls: LoopCalls) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._standing: dict[Order, None] = {}
        self._filled: list[Order] = []

    def place(self, order: Order) -> None:
        with self._lock:
            self._standing[order] = None

    def take(self, order: Order) -> bool:
        """Take an order. Returns False if it was no longer pending. If it was, the caller must answer it."""
        with self._lock:
            if order not in self._standing:
                return False
            del self._standing[order]
            return True

    def end(self, order: Order) -> None:
        """End the wait of a worker without claims, so that it looks for events itself."""
        if self.take(order):
            order.answer()

    # -- the writing thread -------------------------------------------------------------------------------

    def standing(self) -> list[Order]:
        """The pending orders, the longest waiting first."""
        with self._lock:
            return list(self._standing)

    def take_to_fill(self, order: Order) -> bool:
        """As `take`, but `hand_out` answers the order when the transaction is committed."""
        taken = self.take(order)
        if taken:
            self._filled.append(order)
        return taken

    def hasten(self, order: Order, seconds: float) -> None:
        """Let a pending order wait for at most `seconds` from now on."""
        order.is_hastened = True
        self._calls.add(order.done.get_loop(), partial(order.wait_for, seconds))

    def hand_out(self) -> None:
        """Answer the filled orders after the commit. If the event loop of an order is closed, its leases expire."""
        filled, self._filled = self._filled, []
        for order in filled:
            self._calls.add(order.done.get_loop(), order.answer)

    def take_back(self) -> None:
        """Answer the filled orders without claims, because the transaction was undone."""
        for order in self._filled:
            order.claims = []
        self.hand_out()
