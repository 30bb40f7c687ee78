"""A small JSONPath: `$`, `.name`, `['name']`, `[0]`, `[-1]`, `[*]`, `.*`, `[a:b]`, and `..` before any of
these. No filters and no scripts. Work and results are bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from clew.errors import InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern

MAX_PATH = 1_000
MAX_SEGMENTS = 64
MAX_RESULTS = 10_000
MAX_STEPS = 100_000

# Each alternative begins and ends with characters of its own, so matching never goes back.
_SEGMENT = lazy_pattern(
    r"""(?P<deep>\.\.)?(?:
        (?P<dot>\.?)(?:(?P<name>[^\s.\[\]'"*:]+)|(?P<star>\*))
      | \[\s*(?:
            '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)"
          | (?P<any>\*)
          | (?P<start>-?[0-9]{1,9})?\s*(?P<colon>:)?\s*(?P<stop>-?[0-9]{1,9})?
        )\s*\]
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = lazy_pattern(r"\\(.)", re.DOTALL)


class PathStep(NamedTuple):
    """One step of a path: a key, an index, a range, or None for every child; `is_deep` after `..`."""

    what: str | int | slice | None
    is_deep: bool


def find_all(path: str, data: Any, count: Callable[[], None] | None = None) -> list[Any]:
    """The values at a path, in document order; empty when there are none.

    Raises InvalidInput for a malformed path, TooLarge past MAX_RESULTS results or MAX_STEPS values looked at. Searches
    with the same `counter()` share this limit of values.
    """
    count = count or counter()
    values: Iterable[Any] = (data,)
    for step in parse_path(path):
        if step.is_deep:
            values = _descend(values, count)
        values = _select(values, step.what, count)
    found: list[Any] = []
    for value in values:
        if len(found) == MAX_RESULTS:
            raise TooLarge("path", len(found) + 1, MAX_RESULTS, "results")
        found.append(value)
    return found


@lru_cache(maxsize=512)
def parse_path(path: str) -> tuple[PathStep, ...]:
    """The steps of a path. Raises InvalidInput when it is malformed or longer than MAX_PATH characters."""
    if len(path) > MAX_PATH:
        raise TooLarge("path", len(path), MAX_PATH, "characters")
    if not path.startswith("$"):
        raise _malformed(path, 0)
    steps, at = [], 1
    while at < len(path):
        found = _SEGMENT.match(path, at)
        step = _step(found) if found else None
        if found is None or step is None:
            raise _malformed(path, at)
        steps.append(step)
        at = found.end()
    if len(steps) > MAX_SEGMENTS:
        raise TooLarge("path", len(steps), MAX_SEGMENTS, "segments")
    return tuple(steps)


def _malformed(path: str, at: int) -> InvalidInput:
    return InvalidInput(
        "path",
        f"{path[:80]!r} is not a path that is understood, from character {at + 1}",
        hint="For example $.a[*].b",
    )


def _step(found: re.Match[str]) -> PathStep | None:
    """The step of a segment, or None if it is malformed: a dot is missing or superfluous, or an index has no number or
    two without a colon."""
    part = found.groupdict()
    is_deep = part["deep"] is not None
    if part["name"] is not None or part["star"] is not None:
        return None if is_deep == (part["dot"] == ".") else PathStep(part["name"], is_deep)
    quoted = part["single"] if part["single"] is not None else part["double"]
    if quoted is not None:
        return PathStep(_ESCAPED.sub(r"\1", quoted), is_deep)
    if part["any"] is not None:
        return PathStep(None, is_deep)
    start, stop = (int(part[end]) if part[end] is not None else None for end in ("start", "stop"))
    if part["colon"] is not None:
        return PathStep(slice(start, stop), is_deep)
    return PathStep(start, is_deep) if start is not None and stop is None else None


def counter() -> Callable[[], None]:
    """A function to call for each value that is visited. It raises TooLarge after MAX_STEPS calls."""
    steps = iter(range(MAX_STEPS))

    def count() -> None:
        if next(steps, None) is None:
            raise TooLarge("path", MAX_STEPS + 1, MAX_STEPS, "values visited")

    return count


def _descend(values: Iterable[Any], count: Callable[[], None]) -> Iterator[Any]:
    """Each value and all that is below it, parents first."""
    for value in values:
        stack = [iter((value,))]
        while stack:
            for item in stack[-1]:
                count()
                yield item
                if isinstance(item, Mapping | list):
                    stack.append(_children(item))
                    break
            else:
                stack.pop()


def _select(values: Iterable[Any], what: str | int | slice | None, count: Callable[[], None]) -> Iterator[Any]:
    for value in values:
        for chosen in _choose(value, what):
            count()
            yield chosen


def _choose(value: Any, what: str | int | slice | None) -> Iterable[Any]:
    if what is None:
        return _children(value)
    if isinstance(what, str):
        return (value[what],) if isinstance(value, Mapping) and what in value else ()
    if not isinstance(value, list):
        return ()
    if isinstance(what, slice):
        return (value[at] for at in range(*what.indices(len(value))))
    return (value[what],) if -len(value) <= what < len(value) else ()


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())
