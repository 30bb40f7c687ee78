"""Server-sent events of a provider: the data of each event, within limits."""

from __future__ import annotations

from collections.abc import AsyncIterator

from clew.llm.providers.response_limits import MAX_EVENT, MAX_EVENT_LINES, ResponseTooLarge


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yield the data of each event, with its lines joined by newlines. Comments, names, ids and an unfinished last
    event are ignored. Raises ResponseTooLarge for an event that is too long."""
    event = _EventBuffer()
    async for piece in pieces:
        for data in event.add(piece):
            yield data


class _EventBuffer:
    """The event that is being read."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._bytes = 0
        self._lines = 0

    def add(self, piece: bytes) -> list[str]:
        """Add a piece, and yield the data of the events that it completes."""
        self._line += piece
        found: list[str] = []
        if b"\n" in piece:
            *lines, rest = bytes(self._line).split(b"\n")
            self._line = bytearray(rest)
            for line in lines:
                found += self._end_line(line.removesuffix(b"\r"))
        self._check()
        return found

    def _end_line(self, line: bytes) -> list[str]:
        if line:
            self._bytes += len(line)
            self._lines += 1
            self._check()
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            return []
        data, self._data, self._bytes, self._lines = self._data, [], 0, 0
        return [b"\n".join(data).decode("utf-8", "replace")] if data else []

    def _check(self) -> None:
        if self._bytes + len(self._line) > MAX_EVENT:
            raise ResponseTooLarge(f"one event of it is over {MAX_EVENT // 1_000_000} MB long")
        if self._lines > MAX_EVENT_LINES:
            raise ResponseTooLarge(f"one event of it has over {MAX_EVENT_LINES:,} lines")
