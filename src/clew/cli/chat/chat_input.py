"""The input of a chat: lines with history if the terminal has readline, and pasted text as one message."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from io import UnsupportedOperation
from typing import Any

from clew.cli.terminal.output import can_ask

PASTE_SECONDS = 0.03
"""Lines that arrive at shorter intervals than this were pasted, not typed."""

ReadLine = Callable[[str], str | None]
"""Shows a prompt and waits for a line; None at the end of input."""


class Lines:
    """Reads lines in a thread, so that work continues while a person types. Only one read runs at a time. The result
    of an abandoned read goes to the next caller of `read`."""

    def __init__(self, read_line: ReadLine) -> None:
        self._read_line = read_line
        self._pending: asyncio.Future[str | None] | None = None

    async def read(self, prompt: str) -> str | None:
        """The next line without its end, or None at the end of input. Lines that were pasted come as one."""
        if self._pending is None:
            self._pending = asyncio.get_running_loop().create_future()
            # a daemon thread, so that the program can end while it waits for input
            threading.Thread(target=self._read, args=(prompt, self._pending), daemon=True).start()
        else:
            sys.stderr.write(prompt)
            sys.stderr.flush()
        text = await asyncio.shield(self._pending)
        self._pending = None
        return text

    def _read(self, prompt: str, future: asyncio.Future[str | None]) -> None:
        try:
            text = self._read_line(prompt)
        except (EOFError, OSError, ValueError):  # the end, or a terminal that is gone
            text = None
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits
            future.get_loop().call_soon_threadsafe(_settle, future, text)


def _settle(future: asyncio.Future[str | None], text: str | None) -> None:
    if not future.done():
        future.set_result(text)


@contextlib.contextmanager
def open_lines(earlier: Iterable[str] = ()) -> Iterator[Lines]:
    """Read lines of standard input; on a terminal, the `earlier` messages are the history. The terminal's settings are
    restored at the end, even if a read is still running."""
    if not can_ask():
        yield Lines(_plain_reader())
        return
    readline = _readline()
    if readline is not None:
        for text in earlier:
            readline.add_history(" ".join(text.split()))
    with _terminal_as_found():
        yield Lines(_read_typed)


def _read_typed(prompt: str) -> str | None:
    lines = [input(prompt)]
    while _has_more():
        try:
            lines.append(input())
        except EOFError:
            break
    return "\n".join(lines)


def _has_more() -> bool:
    """Whether the next line can be read without waiting."""
    try:
        return bool(select.select([sys.stdin], [], [], PASTE_SECONDS)[0])
    except (OSError, ValueError):  # the input cannot be polled, as on Windows
        return False


def _plain_reader() -> ReadLine:
    """Lines of a pipe or file. They bypass Python's own buffer, because a thread that blocks in it would keep the
    program from exiting."""
    try:
        fd = sys.stdin.fileno()
    except (UnsupportedOperation, AttributeError):
        return _read_buffered
    kept = bytearray()

    def read(prompt: str) -> str | None:
        while b"\n" not in kept:
            more = os.read(fd, 65_536)
            if not more and not kept:
                return None
            kept.extend(more or b"\n")
        line, _, rest = bytes(kept).partition(b"\n")
        kept[:] = rest
        return line.decode("utf-8", "replace").rstrip("\r")

    return read


def _read_buffered(prompt: str) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\r\n") if line else None


def _readline() -> Any:
    try:
        import readline  # not on every system; `input` uses it once it is imported
    except ImportError:
        return None
    return readline


@contextlib.contextmanager
def _terminal_as_found() -> Iterator[None]:
    try:
        import termios  # not on Windows
    except ImportError:
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
