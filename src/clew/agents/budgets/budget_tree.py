"""Budgets as a tree on the trail. A call reserves an amount before it runs and settles it after.

A parent lends to its children: it sets the amount aside, and gets the unused rest back when the child closes. So all
parallel work of a tree stays within the limits of its root. Keys make a repeat after a crash harmless: a repeated key
returns the reservation that exists, and each reservation is settled once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from weakref import WeakValueDictionary

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget import (
    KINDS,
    AgentBudget,
    Amount,
    BudgetLimits,
    Reservation,
    after_child_closed,
    budget_id,
    exceeded,
    without_child,
)
from clew.clock import Clock
from clew.errors import AlreadyExists, BudgetExceeded, Conflict, InvalidInput, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.model.flow import Flow
from clew.trail.store import Trail

__all__ = ["Budgets", "Reservation"]

_RETRIES = 200
MAX_DEPTH = 32
"""How deep a tree may be."""


class Budgets:
    """The budgets of one owner. Several processes may work on the same ones."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock) -> None:
        self._trail = trail
        self._flow = flow
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(
        self, name: str, limits: BudgetLimits, *, by: Principal, parent: str | None = None, session: str | None = None
    ) -> AgentBudget:
        """Return the budget of that name, created if it is missing: a root, or a child to which its parent lends.

        An existing root gets these limits; its spent amounts stay. Raises BudgetExceeded if the parent has less left
        than `limits`, NotFound if the parent does not exist.
        """
        if parent is not None:
            return await self.lend(parent, name, limits, by=by, session=session)
        found = await self._create(AgentBudget(name=name, limits=limits, started_at=self._clock.now()), by, session)
        is_other = found.limits != limits and found.parent is None
        return await self.extend(name, limits, by=by) if is_other else found

    async def lend(
        self, parent: str, child: str, limits: BudgetLimits, *, by: Principal, session: str | None = None
    ) -> AgentBudget:
        """Set `limits` aside for a child of a budget, and count the child. A kind without a limit gets all that the
        parent has left of it. It is unlimited only if the parent's is unlimited. A second call for the same child
        changes nothing.

        Raises as `open`, and InvalidInput for a tree that is too deep.
        """
        with contextlib.suppress(NotFound):
            return await self.get(child, by=by)
        lender = await self._change(parent, lambda budget: self._with_child(budget, child, limits), by)
        started = self._clock.now()
        new = AgentBudget(
            name=child, limits=lender.lent[child], started_at=started, parent=parent, depth=lender.depth + 1
        )
        return await self._create(new, by, session)

    async def reserve(
        self, name: str, key: str, amount: Amount, *, by: Principal, least: Amount | None = None
    ) -> Reservation:
        """Reserve `amount` for a call. If less is left, but at least `least`, reserve the rest. `Reservation.amount` is
        the reserved amount. If `key` already has a reservation, return that reservation. Raises BudgetExceeded, and
        then reserves nothing."""
        changed = await self._change(name, lambda budget: self._with_reservation(budget, key, amount, least), by)
        return Reservation(budget=name, key=key, amount=changed.reserved[key])

    async def settle(self, reservation: Reservation, actual: Amount, *, by: Principal) -> AgentBudget:
        """Replace a reservation by the amount that the call used. Calling it again changes nothing."""
        key = reservation.key

        def settled(budget: AgentBudget) -> AgentBudget:
            if key not in budget.reserved:
                return budget
            reserved = {name: amount for name, amount in budget.reserved.items() if name != key}
            return msgspec.structs.replace(budget, reserved=reserved, spent=budget.spent + actual)

        return await self._change(reservation.budget, settled, by)

    async def close(self, name: str, *, by: Principal) -> AgentBudget:
        """Close a budget and its children. The unspent rest goes back to the parent; an unsettled reservation counts as
        fully spent. Calling it again changes nothing. Raises NotFound."""
        for _ in range(_RETRIES):
            record, budget = await self._find(name, by)
            if budget.is_closed:
                return budget
            if budget.lent:
                for child in budget.lent:
                    await self._close_child(name, child, by)
                continue
            ended = msgspec.structs.replace(budget, spent=budget.used, reserved={}, is_closed=True)
            updates = [_update(record, ended)]
            if budget.parent is not None:
                lender_record, lender = await self._find(budget.parent, by)
                updates.append(_update(lender_record, after_child_closed(lender, ended)))
            try:
                await self._trail.records.update_many(updates, by=by)
            except Conflict:
                continue
            return ended
        raise Conflict(name, expected=0, actual=0)

    async def extend(self, name: str, limits: BudgetLimits, *, by: Principal) -> AgentBudget:
        """Replace the limits of a root budget, for example to continue after it was used up. Raises NotFound, and
        InvalidInput for a child."""

        def widened(budget: AgentBudget) -> AgentBudget:
            if budget.parent is not None:
                raise InvalidInput("budget", f"{name} got its amount from {budget.parent}", hint="Extend that budget")
            return msgspec.structs.replace(budget, limits=limits)

        return await self._change(name, widened, by)

    async def remaining(self, name: str, *, by: Principal) -> BudgetLimits:
        """The amount left of each kind, None if there is no limit. Raises NotFound."""
        return (await self.get(name, by=by)).left(self._clock.now())

    async def get(self, name: str, *, by: Principal) -> AgentBudget:
        """Raises NotFound."""
        return (await self._find(name, by))[1]

    def _with_reservation(self, budget: AgentBudget, key: str, amount: Amount, least: Amount | None) -> AgentBudget:
        if key in budget.reserved:
            return budget
        granted = self._grant(budget, amount, least if least is not None else amount)
        return msgspec.structs.replace(budget, reserved={**budget.reserved, key: granted})

    def _with_child(self, budget: AgentBudget, child: str, wanted: BudgetLimits) -> AgentBudget:
        """The parent with a loan to `child`. A child that already has a loan, for example from before a crash, is not
        counted again."""
        if child in budget.lent:
            return budget
        left = budget.left(self._clock.now())
        if budget.depth + 1 >= MAX_DEPTH:
            raise InvalidInput("parent", f"{budget.name} is at the limit of {MAX_DEPTH} levels")
        counted = self._grant(budget, Amount(children=1), Amount(children=1))
        given = {
            kind: self._portion(budget, kind, getattr(wanted, kind), getattr(left, kind))
            for kind in BudgetLimits.__struct_fields__
        }
        if given["children"] is not None and wanted.children is None:
            given["children"] = max(given["children"] - 1, 0)
        lent = msgspec.convert(given, BudgetLimits)
        new = msgspec.structs.replace(budget, spent=budget.spent + counted, lent={**budget.lent, child: lent})
        if (most := budget.limits.children) is not None and new.used.children > most:
            raise exceeded(budget, "children", self._clock.now())
        return new

    def _grant(self, budget: AgentBudget, amount: Amount, least: Amount) -> Amount:
        """The part of `amount` that the budget has left. Raises BudgetExceeded if that is less than `least`."""
        now = self._clock.now()
        left = budget.left(now)
        if budget.is_closed:
            raise BudgetExceeded(budget.name, "", hint="Open another budget")
        if left.seconds is not None and left.seconds <= 0:
            raise exceeded(budget, "seconds", now)
        granted = {}
        for kind in KINDS:
            rest, wanted = getattr(left, kind), getattr(amount, kind)
            if rest is not None and getattr(least, kind) > rest:
                raise exceeded(budget, kind, now)
            granted[kind] = wanted if rest is None else min(wanted, rest)
        return Amount(**granted)

    def _portion(self, budget: AgentBudget, kind: str, wanted: float | None, rest: float | None) -> float | None:
        """The amount of a kind to lend to a child. A child never gets more time than its parent has left. Raises
        BudgetExceeded if another kind is short."""
        if rest is None or wanted is None:
            return wanted if rest is None else rest
        if wanted > rest and kind != "seconds":
            raise exceeded(budget, kind, self._clock.now())
        return min(wanted, rest)

    async def _change(self, name: str, edit: Callable[[AgentBudget], AgentBudget], by: Principal) -> AgentBudget:
        """Apply an edit to the newest version of a budget, and retry if another process changed it meanwhile. Raises
        the errors of the edit, and Conflict after too many retries."""
        async with self._lock(budget_id(by, name)):
            for _ in range(_RETRIES):
                record, budget = await self._find(name, by)
                changed = edit(budget)
                if changed == budget:
                    return budget
                update = _update(record, changed)
                try:
                    await self._trail.records.update(update.id, update.change, expect=update.expect, by=by)
                except Conflict:
                    continue
                return changed
        raise Conflict(name, expected=0, actual=0)

    async def _create(self, budget: AgentBudget, by: Principal, session: str | None) -> AgentBudget:
        draft = Draft(
            id=budget_id(by, budget.name),
            title=f"Budget {budget.name}"[:200],
            schema_name=self._flow.budget,
            tags=(f"budget:{budget.name}"[:300], *((f"session:{session}",) if session else ())),
            context=msgspec.to_builtins(budget),
            embed="never",
        )
        try:
            await self._trail.records.create(draft, by=by)
        except AlreadyExists:
            return await self.get(budget.name, by=by)
        return budget

    async def _close_child(self, parent: str, child: str, by: Principal) -> None:
        """Close a child. If a crash left a loan to a child that was never created, remove the loan."""
        try:
            await self.close(child, by=by)
        except NotFound:
            await self._change(parent, lambda budget: without_child(budget, child), by)

    async def _find(self, name: str, by: Principal) -> tuple[Breadcrumb, AgentBudget]:
        try:
            record = await self._trail.records.get(budget_id(by, name), by=by)
        except NotFound:
            raise NotFound("budget", name) from None
        return record, msgspec.convert(record.context, AgentBudget)

    def _lock(self, id: str) -> asyncio.Lock:
        """The lock of a budget in this process: tasks wait for each other instead of causing conflicts."""
        lock = self._locks.get(id)
        if lock is None:
            lock = self._locks[id] = asyncio.Lock()
        return lock


def _update(record: Breadcrumb, budget: AgentBudget) -> Update:
    change = Change(context=msgspec.to_builtins(budget), embed="never")
    return Update(id=record.id, change=change, expect=record.version)
