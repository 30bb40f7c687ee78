"""Regular expressions that are compiled when they are first used.

A command loads hundreds of patterns and uses few of them. Python compiles a pattern in pure Python, which takes up to
several milliseconds.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """A proxy of a compiled pattern. The first use compiles the pattern; bound methods are cached, so later calls have
    no overhead."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self._flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern for use by its methods; the functions of `re` do not take it. Raises re.error at the first use, for a
    pattern that is wrong."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
