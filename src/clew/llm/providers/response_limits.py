"""Limits of a provider response: bytes, length of a line, text and arguments. Nobody's answer fills the memory or holds
up the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from clew.errors import ModelError

MAX_RESPONSE = 32_000_000
"""Bytes of one response."""
MAX_EVENT = 4_000_000
"""Bytes of one event of a stream, up to the empty line that ends it."""
MAX_EVENT_LINES = 1_000
"""Lines of one event. Libraries put them together one by one, in ever longer time."""
MAX_TEXT = 2_000_000
"""Characters of the text of an answer, and of what the model thought."""
MAX_ARGUMENTS = 1_000_000
"""Characters of the arguments of all the tools that an answer asks for."""
MAX_SECONDS = 15 * 60.0
"""The total seconds of one call, even for a steady stream."""
MAX_RETRY_AFTER = 3600.0
"""Seconds that a provider may ask to wait; one that asks for more is tried after these."""
PLAIN = {"accept-encoding": "identity"}
"""Headers of each request: a compressed answer could expand without limit."""

_TEXT_KINDS = ("text", "thinking")
_CALL_KINDS = ("tool-call", "tool_call")


class ResponseTooLarge(Exception):
    """A provider sent more than it may. The text says what of."""


def found_in(error: BaseException | None) -> ResponseTooLarge | None:
    """The excess that lies behind what a library raised."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ResponseTooLarge):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


async def bound_response(response: Any) -> None:
    """A hook of the HTTP client that cuts off a body that is too long. Raises ResponseTooLarge for a compressed one."""
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("", "identity"):
        raise ResponseTooLarge("it is packed, which was not asked for")
    is_lines = "event-stream" in response.headers.get("content-type", "")
    response.stream = _bounded(response.stream, is_lines)


def _bounded(stream: Any, is_lines: bool) -> Any:
    """The stream as the client wants it: of its own kind of streams."""
    import httpx2  # imported by whoever made the client

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            total, event = 0, EventSize()
            async for piece in stream:
                total += len(piece)
                if total > MAX_RESPONSE:
                    raise ResponseTooLarge(f"it is over {MAX_RESPONSE // 1_000_000} MB long")
                if is_lines:
                    event.add(piece)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


class EventSize:
    """The size of the current event of a stream."""

    def __init__(self) -> None:
        self._bytes = 0
        self._lines = 0
        self._tail = b""

    def add(self, piece: bytes) -> None:
        """Count a piece. Raises ResponseTooLarge."""
        joined = (self._tail + piece).replace(b"\r\n", b"\n")
        self._tail = piece[-3:]
        end = joined.rfind(b"\n\n")
        if end >= 0:
            self._bytes, self._lines = len(joined) - end - 2, joined.count(b"\n", end + 2)
        else:
            self._bytes, self._lines = self._bytes + len(piece), self._lines + piece.count(b"\n")
        if self._bytes > MAX_EVENT:
            raise ResponseTooLarge(f"one event of it is over {MAX_EVENT // 1_000_000} MB long")
        if self._lines > MAX_EVENT_LINES:
            raise ResponseTooLarge(f"one event of it has over {MAX_EVENT_LINES:,} lines")


class ResponseSize:
    """Adds up what an answer holds, piece by piece."""

    def __init__(self) -> None:
        self._text = 0
        self._arguments = 0

    def add(self, event: Any) -> None:
        """Take in an event of a stream. Raises ResponseTooLarge."""
        if event is None or event.event_kind not in ("part_start", "part_delta"):
            return
        self.add_part(event.part if event.event_kind == "part_start" else event.delta)

    def add_part(self, part: Any) -> None:
        """Count a part, or the new piece of a part. Raises ResponseTooLarge."""
        kind = str(getattr(part, "part_kind", "") or getattr(part, "part_delta_kind", ""))
        if kind in _TEXT_KINDS:
            self._text += _length(getattr(part, "content", None) or getattr(part, "content_delta", None))
        elif kind in _CALL_KINDS:
            self._arguments += _length(getattr(part, "args", None) or getattr(part, "args_delta", None))
        self._check()

    def _check(self) -> None:
        if self._text > MAX_TEXT:
            raise ResponseTooLarge(f"its text is over {MAX_TEXT:,} characters long")
        if self._arguments > MAX_ARGUMENTS:
            raise ResponseTooLarge(f"the arguments of its tools are over {MAX_ARGUMENTS:,} characters long")


def check_whole(response: Any) -> None:
    """Raises ResponseTooLarge for an answer that came at once and is too long."""
    measure = ResponseSize()
    for part in response.parts:
        measure.add_part(part)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(str(value)) if value is not None else 0


def took_too_long(provider: str) -> ModelError:
    """The error of a call that went on and on."""
    reason = f"{provider} had not finished its answer after {MAX_SECONDS / 60:g} minutes"
    return ModelError("timeout", reason, hint="Ask for less at once, or choose another model")
