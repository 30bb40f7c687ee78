"""What is wrong in markdown definitions: where, why, what would be allowed, and how it can be mended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from clew.errors import BuildError, ConfigError, ManifestError, ParseError, ValidationError

Kind = Literal["config", "parse", "validation", "build"]
Severity = Literal["error", "warning"]


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """A mend that can be made without asking: replace lines `first` to `last` (1-based, inclusive) of the file.

    No lines in `text` takes them away; `last` below `first` inserts before `first`.
    """

    first: int
    last: int
    text: tuple[str, ...] = ()
    says: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong. An error keeps its definition out of the manifest, a warning does not.

    `path` is relative to the root that was read; `line` is 1-based, 0 where none can be named.
    """

    kind: Kind
    severity: Severity = "error"
    path: str
    line: int = 0
    message: str
    allowed: tuple[str, ...] = ()
    hint: str = ""
    fix: Fix | None = None

    def as_error(self) -> ManifestError | ConfigError:
        """The error of its kind."""
        if self.kind == "config":
            return ConfigError(f"{self.path}: {self.message}", choices=self.allowed)
        kinds: dict[str, type[ManifestError]] = {"parse": ParseError, "validation": ValidationError}
        raised = kinds.get(self.kind, BuildError)
        return raised(self.message, path=self.path, line=self.line, allowed=self.allowed, hint=self.hint)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By place: path, then line, then what it says."""
    return sorted(problems, key=lambda each: (each.path, each.line, each.message))
