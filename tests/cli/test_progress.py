"""The progress line of a command that takes longer than a moment."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable

import pytest

from clew.cli.terminal import progress as module
from clew.cli.terminal.progress import Progress, progress
from tests.cli.conftest import PATIENCE, Clew


class Terminal(io.StringIO):
    """A terminal that can be watched."""

    def __init__(self) -> None:
        super().__init__()
        self._written = threading.Condition()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._written:
            self._written.notify_all()
            return super().write(text)

    def comes_to_show(self, text: str) -> bool:
        """Wait until a text was written."""
        with self._written:
            return self._written.wait_for(lambda: text in self.getvalue(), PATIENCE)


def open_terminal(monkeypatch: pytest.MonkeyPatch, patience: float = 0.0) -> Terminal:
    """A terminal as standard error, and a progress line that appears at once."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(module, "PATIENCE", patience)
    monkeypatch.setattr(module, "PAUSE", 0.001)
    return shown


def test_a_line_is_shown_refreshed_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with progress("Importing") as shown:
        shown.advance(1, 4)
        assert terminal.comes_to_show("Importing ... 25 % (")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_it_is_taken_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)

    def fail() -> None:
        assert terminal.comes_to_show("Importing")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), progress("Importing"):
        fail()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_short_work_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, patience=PATIENCE)
    with progress("Importing") as shown:
        shown.advance(1)
    assert terminal.getvalue() == ""


def test_it_says_how_far_it_is() -> None:
    shown = Progress("Embedding")
    assert shown.line().startswith("Embedding ... (")
    shown.advance(1_200, 5_000, "breadcrumbs")
    assert shown.line().startswith("Embedding ... 1,200 of 5,000 breadcrumbs (")
    shown.advance(1_200, unit="lines")
    assert shown.line().startswith("Embedding ... 1,200 lines (")


def test_concurrent_work_is_shown_on_one_line() -> None:
    shown = Progress("Reading")
    documents = shown.beside()
    documents.advance(3, 7, "documents")
    assert shown.line().startswith("Reading ... 3 of 7 documents (")
    shown.advance(20, 90, "files")
    assert shown.line().startswith("Reading ... 20 of 90 files, 3 of 7 documents (")


def test_without_a_terminal_nothing_is_shown(
    clew: Clew, put: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    put("here")
    for arguments in (["trail", "reembed"], ["hygiene", "run"], ["doctor"]):
        result = clew(*arguments)
        assert (result.code, result.err) == (0, "")
