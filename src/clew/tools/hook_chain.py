"""A chain of hooks: functions that get data at a named point, in one order, and return it, changed or not.

A hook that raises `Abort` ends the chain. A hook that fails otherwise is logged, noted in `failures` and skipped,
unless it is `required`: then its error ends the chain, so nothing passes a guard that broke.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

import msgspec

from clew.errors import Abort, ClewError, InvalidInput
from clew.trail.work.claims import describe

HookFunction = Callable[[Any], Awaitable[Any]]
"""Takes the data of its point and returns it, changed or not."""

_log = logging.getLogger(__name__)


class HookPriority(IntEnum):
    """The position of a hook in its chain: any number from the first to the last."""

    FIRST = 0
    EARLY = 25
    NORMAL = 50
    LATE = 75
    LAST = 100


class HookData(msgspec.Struct, frozen=True, kw_only=True):
    """The data that hooks get. `trace` has the names of the hooks that ran, `failures` the errors of skipped ones."""

    trace: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the chain is skipped."""
        return False


Data = TypeVar("Data", bound=HookData)


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One function at one point. Two hooks of a chain cannot share a name at the same point."""

    name: str
    point: str
    function: HookFunction
    priority: int = HookPriority.NORMAL
    required: bool = False


class HookChain:
    """Hooks by priority, and in the order in which they were added. A chain never changes.

    Raises InvalidInput for a hook at an unknown point, a priority beyond the range, and a name that is taken.
    """

    def __init__(self, hooks: Sequence[Hook], *, points: Sequence[str]) -> None:
        self.hooks = tuple(sorted(hooks, key=lambda each: each.priority))
        self._points = tuple(points)
        seen: set[tuple[str, str]] = set()
        for hook in self.hooks:
            if hook.point not in points:
                raise InvalidInput("point", f"{hook.point!r} is not a point", hint=f"Points are {', '.join(points)}")
            if not HookPriority.FIRST <= hook.priority <= HookPriority.LAST:
                raise InvalidInput("priority", f"of {hook.name} must be between 0 and 100")
            if (hook.point, hook.name) in seen:
                raise InvalidInput("hooks", f"two are named {hook.name!r} at {hook.point}", hint="Rename one")
            seen.add((hook.point, hook.name))

    def add(self, *hooks: Hook) -> HookChain:
        """Return a chain with these hooks as well."""
        return HookChain((*self.hooks, *hooks), points=self._points)

    def without(self, name: str) -> HookChain:
        """Return a chain without the hooks of this name."""
        return HookChain([each for each in self.hooks if each.name != name], points=self._points)

    def has(self, point: str) -> bool:
        """Whether there is a hook at a point."""
        return any(each.point == point for each in self.hooks)

    async def run(self, point: str, data: Data) -> Data:
        """Return the data after the hooks of a point; the first that settles it is the last to run.

        Raises Abort, and the error of a required hook.
        """
        for hook in self.hooks:
            if hook.point != point:
                continue
            data = await _apply(hook, data)
            if data.is_settled:
                break
        return data


async def _apply(hook: Hook, data: Data) -> Data:
    """Return the data after one hook, with its name in the trace."""
    try:
        changed = await hook.function(data)
        if type(changed) is not type(data):
            raise TypeError(f"it returned {type(changed).__name__}, not {type(data).__name__}")
    except Abort:
        raise
    except Exception as error:  # a hook may be anybody's code
        return _skip(hook, data, error)
    return msgspec.structs.replace(changed, trace=(*data.trace, hook.name))


def _skip(hook: Hook, data: Data, error: Exception) -> Data:
    """Record the error of an optional hook. Raises the error of a required one: unchanged if Clew raised it, else as
    Abort."""
    if hook.required and isinstance(error, ClewError):
        raise error
    _log.warning("the hook %s failed at %s", hook.name, hook.point, exc_info=error)
    reason = f"{hook.name}: {describe(error)}"
    if hook.required:
        raise Abort(f"the hook {reason}", hint="Nothing was done; see the log, or remove the hook") from error
    return msgspec.structs.replace(data, failures=(*data.failures, reason))
