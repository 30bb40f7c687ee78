"""The output of a chat: streamed text, tool calls, and one JSON object for each step.

The agent's text goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from clew.agents.conversations.sessions import SessionTurn
from clew.agents.conversations.steps import (
    AnswerChunk,
    Answered,
    CancelRequested,
    ContextBuilt,
    ModelAnswered,
    PermissionAnswered,
    RunAbandoned,
    RunStarted,
    Step,
    ToolAnswered,
    ToolCalled,
)
from clew.cli.terminal.output import CYAN, DIM, GREEN, RED, YELLOW, clean_json, count, one_line, paint
from clew.cli.terminal.progress import ProgressLine
from clew.fences import clean

SHOWN, ERROR = 100, 500
"""The maximum number of shown characters of a tool's arguments or result, and of an error."""

FOLLOWED = (RunStarted, ContextBuilt, ToolCalled, ToolAnswered, PermissionAnswered)
"""Steps after which more work is pending."""


class Display(Protocol):
    """Shows steps. `rest` is called when no further steps are expected for now."""

    def show(self, step: Step) -> None: ...

    def rest(self) -> None: ...


class JsonLines:
    """Print one JSON object for each step, on one line, at once."""

    def show(self, step: Step) -> None:
        sys.stdout.write(clean_json(msgspec.json.encode(step).decode()) + "\n")
        sys.stdout.flush()

    def rest(self) -> None:
        """Does nothing: there is no progress line to remove."""


class Screen:
    """A conversation for a person. With `streams`, an answer is shown as it arrives, otherwise when it is complete."""

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._request = ""
        self._index = -1
        self._written = ""
        self._tokens = [0, 0]
        self._sign = ProgressLine()

    def show(self, step: Step) -> None:
        self._sign.end()
        self._show(step)
        if self._streams and isinstance(step, FOLLOWED):
            self._finish_line()
            self._sign.begin(one_line(step.tool) if isinstance(step, ToolCalled) else "Thinking")

    def rest(self) -> None:
        self._sign.end()

    def _show(self, step: Step) -> None:
        match step:
            case AnswerChunk():
                self._add(step)
            case ModelAnswered():
                self._tokens[0] += step.input_tokens
                self._tokens[1] += step.output_tokens
            case Answered() | RunAbandoned():
                self._end(step)
            case _:
                if line := describe(step):
                    self._aside(line)

    def _add(self, step: AnswerChunk) -> None:
        """Show the next piece. A chunk that was already shown is skipped, unless the request was restarted."""
        if not self._streams:
            return
        is_again = step.request_id == self._request and step.index == 0 and self._index >= 0
        if step.request_id != self._request or is_again:
            self._finish_line()
            if is_again:
                self._aside(paint("The model is asked again.", DIM, sys.stderr))
            self._request, self._index, self._written = step.request_id, -1, ""
        if step.index <= self._index:
            return
        self._index = step.index
        self._write(clean(step.text))

    def _end(self, step: Answered | RunAbandoned) -> None:
        text = clean(step.text) if isinstance(step, Answered) else ""
        if text.strip() != self._written.strip():
            self._finish_line()
            self._write(text)
        self._finish_line()
        if isinstance(step, RunAbandoned):
            self._aside(paint(f"No answer: {one_line(step.reason)}", RED, sys.stderr))
        elif step.status == "cancelled":
            self._aside(paint("Cancelled.", YELLOW, sys.stderr))
        elif sum(self._tokens):
            read, written = self._tokens
            self._aside(paint(f"{count(read, 'token')} read, {written:,} written", DIM, sys.stderr))
        self._request, self._index, self._written, self._tokens = "", -1, "", [0, 0]

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self._written += text

    def _finish_line(self) -> None:
        if self._written and not self._written.endswith("\n"):
            self._write("\n")

    def _aside(self, line: str) -> None:
        self._finish_line()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def describe(step: Step) -> str:
    """One line for a step other than text; empty for a step of no interest to a person."""
    match step:
        case ContextBuilt():
            told = f"Context: {count(step.items, 'breadcrumb')}, about {count(step.tokens, 'token')}"
            return paint(f"{told}  (clew why context {step.id})", DIM, sys.stderr)
        case ToolCalled():
            return (
                f"{paint('→', CYAN, sys.stderr)} {one_line(step.tool)} {paint(shortened(step.input), DIM, sys.stderr)}"
            )
        case ToolAnswered():
            is_well = step.status == "success"
            what = shortened(step.output) if is_well else shortened(step.error or step.status, ERROR)
            mark = paint("←", GREEN if is_well else RED, sys.stderr)
            return f"{mark} {one_line(step.tool)} {paint(f'{step.milliseconds:,.0f} ms', DIM, sys.stderr)} {what}"
        case PermissionAnswered():
            return paint(f"Permission: {one_line(step.answer)}", DIM, sys.stderr)
        case CancelRequested():
            return paint("Cancelling ...", YELLOW, sys.stderr)
        case _:
            return ""


def show_turns(turns: Sequence[SessionTurn]) -> None:
    """Print the earlier turns for a person who comes back."""
    for turn in turns:
        who = paint("you", CYAN, sys.stderr) if turn.role == "user" else paint("agent", GREEN, sys.stderr)
        text = clean(turn.text) or f"({turn.status})"
        sys.stderr.write(f"{who}: {text}\n")
    sys.stderr.flush()


def shortened(value: Any, limit: int = SHOWN) -> str:
    """A value on one line, cut to the width."""
    text = one_line(clean(value if isinstance(value, str) else _json(value)))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _json(value: Any) -> str:
    return "" if value is None or value == {} else msgspec.json.encode(value).decode()
