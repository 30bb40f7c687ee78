"""Budgets of agents: limits and amounts of tokens, money, calls and time, and the state of one budget."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.decode_errors import in_plain_words
from clew.errors import BudgetExceeded, InvalidInput

_NAMESPACE = UUID("0b8e3a5c-6f7d-5a0b-8f39-0c6a5f3e9d27")
KINDS = ("tokens", "money", "calls", "children")
"""The kinds of amounts that calls consume. Time is not one of them: it passes for all budgets at once."""


class Amount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An amount of each kind. Money is in US dollars."""

    tokens: int = 0
    money: float = 0.0
    calls: int = 0
    children: int = 0

    def __post_init__(self) -> None:
        for kind, value in _parts(self):
            if not 0 <= value < float("inf"):
                raise InvalidInput(kind, "must be a number from 0 up")

    def __add__(self, other: Amount) -> Amount:
        return Amount(**{kind: tidy(value + getattr(other, kind)) for kind, value in _parts(self)})


class BudgetLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The limit of each kind; None means unlimited. `seconds` is wall-clock time since the budget was opened."""

    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    calls: int | None = None
    children: int | None = None

    def __post_init__(self) -> None:
        for kind in self.__struct_fields__:
            value = getattr(self, kind)
            if value is not None and not 0 <= value < float("inf"):
                raise InvalidInput(f"budget.{kind}", "must be a number from 0 up")


def read_limits(value: dict[str, Any] | None) -> BudgetLimits:
    """Read the limits of a definition. Raises InvalidInput for an unknown kind and for a value that is not a number."""
    try:
        return msgspec.convert(value or {}, BudgetLimits)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, BudgetLimits, "")
        wrong.put_below("budget")
        raise wrong from None


def left_of(limit: float | None, used: float) -> float | None:
    """The unused part of a limit, never below 0; None if there is no limit."""
    return None if limit is None else max(tidy(limit - used), 0)


def tidy(value: Any) -> Any:
    """Round to nine digits. This removes floating-point errors from sums of money."""
    return round(value, 9) if isinstance(value, float) else value


def _parts(amount: Amount) -> Iterator[tuple[str, Any]]:
    return ((kind, getattr(amount, kind)) for kind in KINDS)


NOTHING = Amount()


class AgentBudget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A budget as stored. `reserved` holds the amounts that calls in flight may use, `lent` the limits lent to
    children."""

    name: str
    started_at: datetime
    limits: BudgetLimits = BudgetLimits()
    spent: Amount = NOTHING
    reserved: dict[str, Amount] = {}
    lent: dict[str, BudgetLimits] = {}
    parent: str | None = None
    is_closed: bool = False
    depth: int = 0

    @property
    def used(self) -> Amount:
        """The amount that is spent, reserved or lent."""
        used = sum(self.reserved.values(), self.spent)
        return sum((_as_amount(each) for each in self.lent.values()), used)

    @property
    def deadline(self) -> datetime | None:
        seconds = self.limits.seconds
        return None if seconds is None else self.started_at + timedelta(seconds=seconds)

    def left(self, now: datetime) -> BudgetLimits:
        """The amount left of each kind, None if there is no limit."""
        used = self.used
        left = {kind: left_of(getattr(self.limits, kind), getattr(used, kind)) for kind in KINDS}
        seconds = None if self.deadline is None else max((self.deadline - now).total_seconds(), 0.0)
        return msgspec.convert({**left, "seconds": seconds}, BudgetLimits)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """The amount that one call may take, until it is settled."""

    budget: str
    key: str
    amount: Amount


def budget_id(by: Principal, name: str) -> str:
    """The id of the breadcrumb that stores a budget of the caller's owner."""
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\n{name}"))


def after_child_closed(lender: AgentBudget, ended: AgentBudget) -> AgentBudget:
    """The parent after a child has closed: the child's spending is the parent's, and the rest of the amount is
    available again."""
    if ended.name not in lender.lent:
        return lender
    return msgspec.structs.replace(without_child(lender, ended.name), spent=lender.spent + ended.spent)


def without_child(budget: AgentBudget, child: str) -> AgentBudget:
    """The parent as if it had not lent to that child."""
    lent = {name: limits for name, limits in budget.lent.items() if name != child}
    return msgspec.structs.replace(budget, lent=lent)


def _as_amount(limits: BudgetLimits) -> Amount:
    """The amount that a loan takes from the parent. A kind without a limit takes nothing."""
    return Amount(**{kind: getattr(limits, kind) or 0 for kind in KINDS})


def exceeded(budget: AgentBudget, kind: str, now: datetime) -> BudgetExceeded:
    """The error that names the used amount, the limit, and the way to go on."""
    limit = getattr(budget.limits, kind)
    used = (now - budget.started_at).total_seconds() if kind == "seconds" else getattr(budget.used, kind)
    told = (
        f"{used:,.6g} of {limit:,.6g} are spent, reserved or lent" if kind != "seconds" else f"{limit:,.6g} s are over"
    )
    return BudgetExceeded(budget.name, kind, hint=f"{told}; give it a higher limit of {kind}, and ask again to go on")
