"""Ctrl-C at a prompt, and readers that close their end: a command ends at once."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.cli import INTERRUPTED, PIPE_CLOSED
from tests.cli.conftest import COMMAND, PATIENCE, Clew

Put = Callable[..., str]


def type_at(arguments: list[str], prompt: bytes, keys: bytes) -> tuple[int, bytes]:
    """Run a command on a terminal, type keys at its prompt; its exit code and what was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(COMMAND[0], [*COMMAND, *arguments])
    shown, is_typed, until = b"", False, time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 4_096)
            except OSError:
                break
        if prompt in shown and not is_typed:
            os.write(terminal, keys)
            is_typed = True
    else:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


# forking a terminal in a process with threads is what Python 3.12 warns of; here the child only starts another program
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ctrl_c_at_the_question_removes_nothing_and_ends(clew: Clew, put: Put) -> None:
    id = put("Keep me")
    code, shown = type_at(["trail", "rm", id], b"[y/N]", b"\x03")
    assert (code, b"Traceback" in shown) == (INTERRUPTED, False)
    assert clew("trail", "show", id).code == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ctrl_c_at_a_secret_keeps_nothing_and_ends(clew: Clew, folder: Path) -> None:
    code, shown = type_at(["secret", "put", "key"], b"Value of key", b"\x03")
    assert (code, b"Traceback" in shown) == (INTERRUPTED, False)
    assert clew("secret", "ls").out == ""


def test_tail_ends_when_nobody_reads_although_nothing_happens(put: Put) -> None:
    put("One event")
    with subprocess.Popen([*COMMAND, "trail", "tail", "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"created" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) == PIPE_CLOSED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trail", "search", "two", "words"), "too many arguments: words. Put a text of several words in quotes."),
        (("--folder", "x", "trail", "ls"), "--folder belongs behind the command."),
    ],
)
def test_arguments_in_the_wrong_place_are_explained(clew: Clew, arguments: tuple[str, ...], said: str) -> None:
    result = clew(*arguments)
    assert (result.code, said in result.err) == (2, True), result.err
