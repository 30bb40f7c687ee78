"""A command that runs on a terminal of its own, as at a person's desk."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

from tests.cli.conftest import COMMAND, PATIENCE

CONTROL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes its standard input the controlling terminal, so that Ctrl-C is a signal, and becomes another program."""


class Terminal:
    """A command on a terminal: the text that it shows, and keys typed to it.

    A small program takes the terminal in the new process. A fork of this process, which has threads, could hang.
    """

    def __init__(self, *arguments: str) -> None:
        self._fd, other = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-ISc", CONTROL, *COMMAND, *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self.shown = ""
        self._seen = 0

    def until(self, text: str) -> None:
        """Wait until it shows this text after the text of the previous wait."""
        while text not in self.shown[self._seen :]:
            assert self._read(), self.shown
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def answer(self, line: str, *shown: str) -> None:
        """Type a line, and wait until it shows these texts."""
        self.type(f"{line}\r")
        for text in shown:
            self.until(text)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        while self._read():
            pass
        code = self._process.wait(PATIENCE)
        os.close(self._fd)
        return code

    def _read(self) -> bool:
        """Take what it shows next. False at its end, and when it shows nothing for too long."""
        try:
            more = os.read(self._fd, 4_096) if select.select([self._fd], [], [], PATIENCE)[0] else b""
        except OSError:
            return False
        self.shown += more.decode("utf-8", "replace")
        return bool(more)


def answer_on_terminal(question: str, keys: str, *arguments: str) -> tuple[int, str]:
    """Run a command and type keys at its question: its exit code, and all that it showed."""
    terminal = Terminal(*arguments)
    terminal.until(question)
    terminal.type(keys)
    return terminal.end(), terminal.shown
