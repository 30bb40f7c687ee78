"""An answer as parsed by a formatter."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import ModelError

MAX_DEPTH = 32


class ParsedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The unchanged text before the first call, and the calls as names and arguments."""

    content: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def malformed(reason: str) -> ModelError:
    """The error for a call that cannot be parsed."""
    return ModelError(
        "malformed", f"the model's call of a tool cannot be read: {reason}", retryable=True, hint="Ask again"
    )
