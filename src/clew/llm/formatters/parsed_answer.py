"""An answer in parts, as a formatter reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import ModelError

MAX_DEPTH = 32


class ParsedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The text before the first call, exactly as it came, and the calls: names and arguments."""

    content: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def malformed(reason: str) -> ModelError:
    """A call that cannot be read."""
    return ModelError(
        "malformed", f"the model's call of a tool cannot be read: {reason}", retryable=True, hint="Ask again"
    )
