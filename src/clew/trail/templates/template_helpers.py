"""Helper functions of templates, and the budget that limits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from clew.errors import TemplateError

MAX_STEPS = 100_000
MAX_OUTPUT = 1_000_000
_CHARACTERS_PER_STEP = 100


class RenderBudget:
    """The work and output that one rendering, or several that share the budget, may still use."""

    __slots__ = ("_room", "_steps")

    def __init__(self, steps: int = MAX_STEPS, output: int = MAX_OUTPUT) -> None:
        self._steps = steps
        self._room = output

    def step(self, count: int = 1) -> None:
        """Take `count` steps. Raises TemplateError when they are used up."""
        self._steps -= count
        if self._steps < 0:
            raise TemplateError("takes too many steps; loop over fewer values")

    def write(self, size: int) -> None:
        """Take `size` characters of output. Raises TemplateError when there is no room."""
        self.reserve(size)
        self._room -= size

    def reserve(self, size: int) -> None:
        """Check that `size` more characters fit. Raises TemplateError if not."""
        if size > self._room:
            raise TemplateError("writes too much text; show less")


def to_text(value: Any, budget: RenderBudget) -> str:
    """A JSON value as a model should read it: texts as they are, lists and objects as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _to_json(value, budget)


def _to_json(value: Any, budget: RenderBudget) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise TemplateError("shows a value that cannot be written as JSON") from None
    budget.step(len(text) // _CHARACTERS_PER_STEP)
    return text


class Helper(NamedTuple):
    """A helper function. It takes the budget and `least` to `most` values."""

    run: Callable[..., Any]
    least: int
    most: int


def _join(budget: RenderBudget, items: Any, separator: Any = ", ") -> Any:
    if not isinstance(items, list | tuple):
        return items
    between, texts, size = to_text(separator, budget), [], 0
    for item in items:
        budget.step()
        texts.append(to_text(item, budget))
        size += len(texts[-1]) + len(between)
        budget.reserve(size - len(between))
    budget.step(size // _CHARACTERS_PER_STEP)
    return between.join(texts)


def _length(budget: RenderBudget, value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def _default(budget: RenderBudget, value: Any, instead: Any) -> Any:
    return instead if value in (None, "") else value


def _truncate(budget: RenderBudget, value: Any, most: Any) -> str:
    text = _paid_text(budget, value)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise TemplateError("truncate needs a whole number of at least 1")
    return text if len(text) <= most else text[: most - 1] + "…"


def _paid_text(budget: RenderBudget, value: Any) -> str:
    text = to_text(value, budget)
    budget.step(len(text) // _CHARACTERS_PER_STEP)
    return text


HELPERS: Mapping[str, Helper] = {
    "join": Helper(_join, 1, 2),
    "json": Helper(lambda budget, value: _to_json(value, budget), 1, 1),
    "length": Helper(_length, 1, 1),
    "default": Helper(_default, 2, 2),
    "truncate": Helper(_truncate, 2, 2),
    "upper": Helper(lambda budget, value: _paid_text(budget, value).upper(), 1, 1),
    "lower": Helper(lambda budget, value: _paid_text(budget, value).lower(), 1, 1),
}
