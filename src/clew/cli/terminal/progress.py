"""A progress line on the terminal for work that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 0.7
"""Seconds before anything is shown."""

PAUSE = 0.2


class Progress:
    """The current work and its progress. A thread shows it, so that it keeps moving while the event loop is busy."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._done, self._total, self._unit = 0, 0, ""
        self._beside: list[Progress] = []
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_shown = False

    def advance(self, done: int, total: int = 0, unit: str = "") -> None:
        """Set the progress: done, the total if it is known, and the unit. A total without a unit is a percentage."""
        self._done, self._total, self._unit = done, total, unit

    def beside(self) -> Progress:
        """A second task that runs at the same time. The same line shows its progress."""
        self._beside.append(Progress(""))
        return self._beside[-1]

    def clear(self) -> None:
        """Take the line away, so that another can be printed."""
        with self._lock:
            if self._is_shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._is_shown = False

    def run(self) -> None:
        """Show and refresh the line until the end."""
        self._ended.wait(PATIENCE)
        while not self._ended.wait(PAUSE):
            with self._lock:
                sys.stderr.write(f"\r\x1b[K{self.line()}")
                sys.stderr.flush()
                self._is_shown = True

    def end(self) -> None:
        self._ended.set()

    def line(self) -> str:
        """The line that is shown now."""
        far = ", ".join(filter(None, (each.far() for each in (self, *self._beside))))
        return f"{self._label} ...{' ' if far else ''}{far} ({time.monotonic() - self._began:.0f} s)"

    def far(self) -> str:
        """The progress as text; empty while it is unknown."""
        if self._unit:
            return f"{self._done:,}" + (f" of {self._total:,}" if self._total else "") + f" {self._unit}"
        return f"{100 * self._done // self._total} %" if self._total else ""


class ProgressLine:
    """A progress line that is shown while something is pending, if standard error is a terminal."""

    def __init__(self) -> None:
        self._shown: tuple[Progress, threading.Thread] | None = None

    def begin(self, label: str) -> None:
        """Show the line after a moment, unless `end` is called before."""
        self.end()
        if sys.stderr.isatty():
            shown = Progress(label)
            thread = threading.Thread(target=shown.run, daemon=True)
            self._shown = shown, thread
            thread.start()

    def end(self) -> None:
        """Take it away."""
        if self._shown is not None:
            shown, thread = self._shown
            shown.end()
            thread.join()
            shown.clear()
            self._shown = None


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """Show the progress of the block on a terminal, if it takes longer than a moment."""
    shown = Progress(label)
    if not sys.stderr.isatty():
        yield shown
        return
    thread = threading.Thread(target=shown.run, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        shown.end()
        thread.join()
        shown.clear()
