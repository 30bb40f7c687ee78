"""Errors of the exchange with a server, each as one sentence without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from clew.errors import ServerError
from clew.lazy_pattern import lazy_pattern

MAX_REASON = 300
MAX_COMPLAINT = 4_000
"""Bytes that are kept of the end of a program's error output."""
_INVISIBLE = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")


class Refusal(ServerError):
    """The server is running and refused the request."""


class Paused(ServerError):
    """The server failed earlier, and its restart delay has not passed yet."""


class LostSession(ServerError):
    """The server forgot our session and did nothing; the request may be sent once more."""


class Faults:
    """The errors of one connection: why it ended, the last HTTP status, and the program's error output. `secrets` never
    appear in its messages."""

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) > 3), key=len, reverse=True)
        self.reason = ""
        self.note = ""
        """The error of an answer that the SDK does not report."""
        self.hint = ""
        """The next step for the user."""
        self.status = 0
        self._complaint = b""
        self._is_complaint_cut = False
        self.dropped: list[str] = []
        self.ended = asyncio.Event()

    def end(self, reason: str = "") -> None:
        """The connection is over; the first reason counts."""
        self.reason = self.reason or reason
        self.ended.set()

    def drop(self, what: str) -> None:
        """Note something of a listing that was left out."""
        if len(self.dropped) < 1_000:
            self.dropped.append(self.plain(what))

    def refuse(self, note: str, hint: str) -> None:
        """Record why the server refuses requests, and the next step for the user."""
        self.note, self.hint = note, hint

    def take_note(self) -> tuple[str, str]:
        """Return the note and the hint, and clear them."""
        note, hint, self.note, self.hint = self.note, self.hint, "", ""
        return note, hint

    def take_dropped(self) -> list[str]:
        """Return the dropped messages since the last call."""
        dropped, self.dropped = self.dropped, []
        return dropped

    def plain(self, text: str) -> str:
        """A text of the server's on one line, without our secrets. A mark says where it was cut."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        line = _INVISIBLE.sub(" ", text).strip()
        return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1].rstrip()}…"

    def hear(self, chunk: bytes) -> None:
        """Take a part of the program's error output."""
        whole = self._complaint + chunk
        self._complaint = whole[-MAX_COMPLAINT:]
        self._is_complaint_cut = self._is_complaint_cut or len(whole) > MAX_COMPLAINT

    def last_complaint(self) -> str:
        """The last line that the program wrote to its error output. A line whose beginning is not kept starts with a
        mark and a whole word."""
        lines = self._complaint.decode("utf-8", errors="replace").rstrip().splitlines()
        if len(lines) == 1 and self._is_complaint_cut:
            return self.plain(f"…{lines[0].partition(' ')[2]}")
        return self.plain(lines[-1]) if lines else ""


def flatten(error: BaseException) -> Iterator[BaseException]:
    """The leaf errors of a nested exception group; any other error yields itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from flatten(each)
    else:
        yield error
