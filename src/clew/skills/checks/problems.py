"""A problem in a markdown definition: its place, reason, allowed values and fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from clew.errors import BuildError, ConfigError, ManifestError, ParseError, ValidationError

Kind = Literal["config", "parse", "validation", "build"]
Severity = Literal["error", "warning"]


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """An automatic fix: replace lines `first` to `last` (1-based, inclusive) of the file.

    An empty `text` deletes them; `last` below `first` inserts before `first`. If `was` is given, the fix applies only
    while these lines are unchanged.
    """

    first: int
    last: int
    text: tuple[str, ...] = ()
    says: str = ""
    was: tuple[str, ...] | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem of a definition. An error keeps the definition out of the manifest, a warning does not.

    `path` is relative to the root. `line` and `column` are 1-based, 0 if unknown. `width` is the number of faulty
    characters. `nearest` is the closest valid value. `context` is for programs.
    """

    kind: Kind
    severity: Severity = "error"
    path: str
    line: int = 0
    column: int = 0
    width: int = 0
    message: str
    allowed: tuple[str, ...] = ()
    nearest: str = ""
    hint: str = ""
    fix: Fix | None = None
    context: dict[str, Any] = {}

    def as_error(self) -> ManifestError | ConfigError:
        """Convert the problem to an exception."""
        if self.kind == "config":
            return ConfigError(f"{self.path}: {self.message}" if self.path else self.message, choices=self.allowed)
        kinds: dict[str, type[ManifestError]] = {"parse": ParseError, "validation": ValidationError}
        raised = kinds.get(self.kind, BuildError)
        hint = self.hint or self._advice()
        return raised(self.message, path=self.path, line=self.line, allowed=self.allowed, hint=hint, **self.context)

    def _advice(self) -> str:
        guess = f"Did you mean {self.nearest}? " if self.nearest else ""
        names = ", ".join(self.allowed[:20]) + (f" and {len(self.allowed) - 20} more" if len(self.allowed) > 20 else "")
        return f"{guess}Allowed: {names}" if names else guess.strip()


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by path, line, column and message, without duplicates."""
    ranked = sorted(problems, key=lambda each: (each.path, each.line, each.column, each.severity, each.message))
    return [each for number, each in enumerate(ranked) if number == 0 or each != ranked[number - 1]]


def has_errors(problems: Iterable[Problem]) -> bool:
    return any(each.severity == "error" for each in problems)
