"""Claims that wait for an event. The writing thread fills them in the very transaction that brings it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from clew.access import Principal
from clew.trail.model.consumer import StoredConsumer
from clew.trail.model.event import Claim
from clew.trail.work.loop_calls import LoopCalls


@dataclass(slots=True, eq=False, kw_only=True)
class Order:
    """A claim that a worker waits for. `stored` is its consumer as it was last seen, `due` when the next of its events
    that wait comes up, `look` the number of looks at other processes by then, and `turn` the transaction that last saw
    whether it brings something for it."""

    consumer: str
    by: Principal
    worker: str
    limit: int
    lease: int
    done: asyncio.Future[None]
    stored: StoredConsumer | None = None
    due: int | None = None
    look: int = 0
    turn: int = 0
    claims: list[Claim] = field(default_factory=list)
    is_answered: bool = False

    def answer(self) -> None:
        """Say that `claims` is what it gets. Called on the event loop that waits."""
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
    """The orders of this process. One stands until somebody takes it, and whoever takes it answers it: its worker,
    when it need not wait any longer, or the writing thread after the transaction in which it filled it."""

    def __init__(self, calls: LoopCalls) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._standing: dict[Order, None] = {}
        self._filled: list[Order] = []

    def place(self, order: Order) -> None:
        with self._lock:
            self._standing[order] = None

    def take(self, order: Order) -> bool:
        """Whether the order stood, and so is the caller's to answer."""
        with self._lock:
            if order not in self._standing:
                return False
            del self._standing[order]
            return True

    def end(self, order: Order) -> None:
        """Let a worker that waits look for itself."""
        if self.take(order):
            order.answer()

    # -- the writing thread -------------------------------------------------------------------------------

    def standing(self) -> list[Order]:
        """The longest waiting first."""
        with self._lock:
            return list(self._standing)

    def take_to_fill(self, order: Order) -> bool:
        """As `take`; the claims that are put into the order go out when the transaction is committed."""
        taken = self.take(order)
        if taken:
            self._filled.append(order)
        return taken

    def hand_out(self) -> None:
        """The transaction is committed: its claims are their workers' now. Where a loop was closed, the lease ends."""
        filled, self._filled = self._filled, []
        for order in filled:
            self._calls.add(order.done.get_loop(), order.answer)

    def take_back(self) -> None:
        """The transaction was undone, and its claims with it."""
        for order in self._filled:
            order.claims = []
        self.hand_out()
