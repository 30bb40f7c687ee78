"""What can be spent, and how much of it: tokens, money, seconds, calls and children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput

KINDS = ("tokens", "money", "calls", "children")
"""What is used up by being spent. Seconds pass for everybody at once."""


class Amount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """So much of each kind. Money is in US dollars."""

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
    """The most of each kind; None is no limit. Seconds count from the beginning, whatever is done in them."""

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
    """The limits that a definition gives. Raises InvalidInput for a kind that there is not, or what is no number."""
    try:
        return msgspec.convert(value or {}, BudgetLimits)
    except msgspec.ValidationError as error:
        wrong = in_plain_words(error, BudgetLimits, "")
        wrong.put_below("budget")
        raise wrong from None


def left_of(limit: float | None, used: float) -> float | None:
    """What a limit leaves, never below 0; None where there is no limit."""
    return None if limit is None else max(tidy(limit - used), 0)


def tidy(value: Any) -> Any:
    """Sums of money without the dust that adding binary fractions leaves."""
    return round(value, 9) if isinstance(value, float) else value


def _parts(amount: Amount) -> Iterator[tuple[str, Any]]:
    return ((kind, getattr(amount, kind)) for kind in KINDS)


NOTHING = Amount()
