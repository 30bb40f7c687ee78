"""The view of a team at work: live on a terminal, one line a message in a pipe, one JSON object an event."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from clew.agents.conversations.steps import Answered, Step, ToolAnswered, ToolCalled
from clew.cli.team.team_lines import (
    end_lines,
    estimate_line,
    message_line,
    plan_lines,
    plan_rows,
    status_line,
    task_line,
)
from clew.cli.terminal.output import (
    GREEN,
    RED,
    YELLOW,
    clean,
    clean_json,
    is_terminal,
    one_line,
    paint,
    say_wrapped,
    wants_styles,
    wrap,
)
from clew.team.machines.team_state import Outcome, TeamState
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message_types import MEMBERS, MessageType
from clew.team.team import TeamEvent

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

MAX_ACTIVITY = 80
ROOM = 3
"""Columns at the end of a line for the `^C` that a terminal shows, which would otherwise start another line."""
AGENT = "     "
"""The indent of the line of an agent."""
TEAM_TOOLS = "team-"


class TeamDisplay(Protocol):
    """Shows the events of a session."""

    def show(self, event: TeamEvent, state: TeamState) -> None: ...

    def plan(self, state: TeamState) -> None:
        """Show the plan that waits for approval, with its estimate."""
        ...

    def end(self, state: TeamState) -> None: ...

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Leave the screen to a question while this is open."""
        ...


class EventLines:
    """Print one JSON object for each event at once, and at the end an object with the summary."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        print_event({"type": "message" if event.message else "step", "event": event})

    def plan(self, state: TeamState) -> None:
        print_event({"type": "plan", "plan": state.plan, "preflight": state.preflight})

    def end(self, state: TeamState) -> None:
        print_event({"type": "end", "outcome": state.outcome, "reason": state.reason, "summary": state.summary})

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        yield


class PlainLines:
    """One line for each message that a reader needs."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        if line := event_line(event):
            say_wrapped(line, style_of(event))
            sys.stdout.flush()

    def plan(self, state: TeamState) -> None:
        show_plan(state)

    def end(self, state: TeamState) -> None:
        show_end(state)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        yield


class LiveView:
    """The plan as a tree with one line for each agent at work, redrawn in place. Messages scroll above it."""

    def __init__(self) -> None:
        from rich.console import Console  # for terminals alone

        self._console = Console(highlight=False, markup=False, soft_wrap=True)
        self._live = self._new_live()
        self._shown = ""
        self.activity: dict[str, str] = {}
        """The current command of each conversation."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        line = event_line(event)
        if event.step is not None:
            self._note(event.conversation, event.step)
        for part in wrap(clean(line)) if line else ():
            self._console.print(self._styled(paint(part, style)) if (style := style_of(event)) else part)
        lines = fit_height(live_lines(state, self.activity), self._console.height - 2)
        if not line and self._shown == "\n".join(lines):
            return
        self._shown = "\n".join(lines)
        self._live.start()
        self._live.update(as_text(lines, self._console.width - ROOM), refresh=True)

    def plan(self, state: TeamState) -> None:
        show_plan(state)

    def end(self, state: TeamState) -> None:
        self._live.stop()
        show_end(state)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._live.stop()
        self._live, self._shown = self._new_live(), ""  # a stopped view would erase later output
        yield

    @staticmethod
    def _styled(line: str) -> Text:
        from rich.text import Text  # for terminals alone

        return Text.from_ansi(line)

    def _new_live(self) -> Live:
        from rich.live import Live  # for terminals alone

        return Live(console=self._console, auto_refresh=False, transient=True)

    def _note(self, conversation: str, step: Step) -> None:
        match step:
            case ToolCalled():
                self.activity[conversation] = describe_call(step)
            case ToolAnswered() | Answered():
                self.activity.pop(conversation, None)


def open_display(*, as_json: bool) -> TeamDisplay:
    """The view for the present output."""
    if as_json:
        return EventLines()
    return LiveView() if is_terminal() and os.environ.get("TERM") != "dumb" else PlainLines()


def event_line(event: TeamEvent) -> str:
    """The line of a message. The end of the work has lines of its own."""
    message = event.message
    return "" if message is None or message.type is MessageType.WORKFLOW_COMPLETE else message_line(message)


def style_of(event: TeamEvent) -> str:
    """The colour of a message: of a task that passed, of findings, and of a failure."""
    message = event.message
    match message.type if message is not None else None:
        case MessageType.PIPELINE_COMPLETE:
            return GREEN
        case MessageType.INSPECTOR_FEEDBACK | MessageType.TESTER_FEEDBACK:
            return "" if message is not None and message.payload.get("passed") else YELLOW
        case MessageType.PIPELINE_FAILED | MessageType.MESSAGE_REFUSED:
            return RED
    return ""


def show_plan(state: TeamState) -> None:
    """The plan and its estimate."""
    for line in plan_lines(state.plan) if state.plan else ():
        say_wrapped(line)
    if state.preflight is not None:
        say_wrapped(estimate_line(state.preflight, state.request.budget if state.request else 0))


def show_end(state: TeamState) -> None:
    """The summary of the work."""
    first, *rest = end_lines(state)
    say_wrapped(first, GREEN if state.outcome is Outcome.COMPLETED else RED)
    for line in rest:
        say_wrapped(line)


def live_lines(state: TeamState, activity: dict[str, str]) -> list[str]:
    """The status, and the plan with the agent of each task that is under way."""
    commands: dict[str, str] = {}
    lines = [status_line(state)]
    for name, text in activity.items():
        found = find_conversation(name)
        if found is not None and found.pipeline:
            commands[found.pipeline] = text
        elif found is not None and text and not state.is_over:
            lines.append(f"{AGENT}{found.role} · {text}")
    agents = {
        each.task_id: f"{AGENT}{task_line(each, commands.get(each.id, ''))}"
        for each in state.pipelines.values()
        if not each.is_over
    }
    for task, line in plan_rows(state.plan, state) if state.plan else ():
        lines += [line, *([agents.pop(task)] if task in agents else [])]
    return [*lines, *agents.values()]


def fit_height(lines: list[str], height: int) -> list[str]:
    """Reduce the lines to `height`: leave out first the passed tasks, then others from the end, and agents last."""
    spare = [at for at, line in enumerate(lines) if at and "[passed]" in line]
    spare += [at for at in range(len(lines) - 1, 0, -1) if at not in spare and not lines[at].startswith(AGENT)]
    too_many = len(lines) - max(height, 4)
    if too_many <= 0:
        return lines
    left_out = set(spare[: too_many + 1])
    return [*(line for at, line in enumerate(lines) if at not in left_out), f"… and {len(left_out)} more lines"]


def as_text(lines: list[str], width: int) -> Group:
    """The lines for a terminal, each cut to the width."""
    from rich.console import Group
    from rich.text import Text

    shown = []
    for at, line in enumerate(lines):
        style = "" if not wants_styles(sys.stdout) else "bold" if not at else "cyan" if line.startswith(AGENT) else ""
        text = Text(clean(line), style=style, no_wrap=True)
        text.truncate(max(width, 20), overflow="ellipsis")
        shown.append(text)
    return Group(*shown)


def describe_call(step: ToolCalled) -> str:
    """The command that an agent runs: the tool and the first text that it was given. Empty for a tool of the team,
    which the stage of a task names."""
    if step.tool.startswith(TEAM_TOOLS):
        return ""
    given = step.input if isinstance(step.input, dict) else {}
    text = next((str(value) for value in given.values() if isinstance(value, str)), "")
    role, _, rest = step.tool.partition("_")
    return one_line(f"{rest if role in MEMBERS else step.tool} {text}")[:MAX_ACTIVITY]


def print_event(value: dict[str, Any]) -> None:
    """One object on one line, at once."""
    sys.stdout.write(clean_json(msgspec.json.encode(value).decode()) + "\n")
    sys.stdout.flush()
