"""Limits of a provider response: bytes, length of an event, text and arguments. They keep an answer from filling the
memory or delaying others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from clew.errors import ModelError

MAX_RESPONSE = 32_000_000
"""Bytes of one response."""
MAX_EVENT = 4_000_000
"""Bytes of one event of a stream, up to the empty line that ends it."""
MAX_EVENT_LINES = 1_000
"""Lines of one event."""
MAX_TEXT = 2_000_000
"""Characters of the text of an answer, including the model's thoughts."""
MAX_ARGUMENTS = 1_000_000
"""Characters of the arguments of all the tools that an answer asks for."""
MAX_SECONDS = 15 * 60.0
"""The total seconds of one call, even for a steady stream."""
MAX_RETRY_AFTER = 3600.0
"""The maximum seconds to wait for a provider that sends Retry-After; longer waits are cut to this."""
PLAIN = {"accept-encoding": "identity"}
"""Headers of each request: a compressed answer could expand without limit."""


class ResponseTooLarge(Exception):
    """A provider exceeded a limit. The message names the limit."""


def check_encoding(headers: Mapping[str, str]) -> None:
    """Raises ResponseTooLarge for a compressed response."""
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ResponseTooLarge("it is compressed, which was not requested")


async def bounded(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a response. Raises ResponseTooLarge if their total size exceeds the limit."""
    total = 0
    async for piece in pieces:
        total += len(piece)
        if total > MAX_RESPONSE:
            raise ResponseTooLarge(f"it is over {MAX_RESPONSE // 1_000_000} MB long")
        yield piece


class Measure:
    """Adds up the sizes of an answer, piece by piece."""

    def __init__(self) -> None:
        self._text = 0
        self._arguments = 0

    def add_text(self, text: str) -> str:
        """Count text or thought, and return it. Raises ResponseTooLarge."""
        self._text += len(text)
        if self._text > MAX_TEXT:
            raise ResponseTooLarge(f"its text is over {MAX_TEXT:,} characters long")
        return text

    def add_arguments(self, arguments: str) -> str:
        """Count arguments of a tool, and return them. Raises ResponseTooLarge."""
        self._arguments += len(arguments)
        if self._arguments > MAX_ARGUMENTS:
            raise ResponseTooLarge(f"the arguments of its tools are over {MAX_ARGUMENTS:,} characters long")
        return arguments


def took_too_long(provider: str) -> ModelError:
    """The error for a call that exceeds `MAX_SECONDS`."""
    reason = f"{provider} had not finished its answer after {MAX_SECONDS / 60:g} minutes"
    return ModelError("timeout", reason, hint="Ask for less at once, or choose another model")
