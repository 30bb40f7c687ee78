"""The view of a team at work: live on a terminal, one line a message in a pipe, one JSON object an event."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from clew.agents.conversations.steps import Answered, Step, ToolAnswered, ToolCalled
from clew.cli.team.team_lines import end_lines, message_line, plan_lines, status_line, task_line
from clew.cli.terminal.output import clean, clean_json, one_line, say
from clew.team.machines.team_state import TeamState
from clew.team.messages.conversation import find_conversation
from clew.team.team import TeamEvent

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

MAX_ACTIVITY = 80


class TeamDisplay(Protocol):
    """Shows what happens in a session."""

    def show(self, event: TeamEvent, state: TeamState) -> None: ...

    def end(self, state: TeamState) -> None: ...

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Leave the screen to a question while this is open."""
        ...


class EventLines:
    """One JSON object for each event, at once; at the end one with the summary."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        print_event({"type": "message" if event.message else "step", "event": event})

    def end(self, state: TeamState) -> None:
        print_event({"type": "end", "outcome": state.outcome, "reason": state.reason, "summary": state.summary})

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        yield


class PlainLines:
    """One line for each message that a reader needs."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        if event.message is not None and (line := message_line(event.message)):
            say(line)
            sys.stdout.flush()

    def end(self, state: TeamState) -> None:
        for line in end_lines(state):
            say(line)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        yield


class LiveView:
    """The plan as a tree, and one line for each agent, redrawn in place. Messages scroll above it."""

    def __init__(self) -> None:
        from rich.console import Console  # for terminals alone

        self._console = Console(highlight=False, markup=False, soft_wrap=True)
        self._live = self._new_live()
        self.activity: dict[str, str] = {}
        """The current command of each conversation."""

    def show(self, event: TeamEvent, state: TeamState) -> None:
        if event.step is not None:
            self._note(event.conversation, event.step)
        elif event.message is not None and (line := message_line(event.message)):
            self._console.print(clean(line), style="dim" if event.message.source == "runtime" else None)
        self._live.start()
        self._live.update(live_lines(state, self.activity), refresh=True)

    def end(self, state: TeamState) -> None:
        self._live.stop()
        for line in end_lines(state):
            say(line)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._live.stop()
        self._live = self._new_live()  # a stopped one would erase what was written since
        yield

    def _new_live(self) -> Live:
        from rich.live import Live  # for terminals alone

        return Live(console=self._console, auto_refresh=False, transient=True)

    def _note(self, conversation: str, step: Step) -> None:
        match step:
            case ToolCalled():
                self.activity[conversation] = describe_call(step)
            case ToolAnswered() | Answered():
                self.activity.pop(conversation, None)


def live_lines(state: TeamState, activity: dict[str, str]) -> Group:
    """The status, the plan and the agents that work, for a terminal."""
    from rich.console import Group
    from rich.text import Text

    commands = {_pipeline_of(name): text for name, text in activity.items()}
    lines = [Text(status_line(state), style="bold")]
    if state.plan is not None:
        lines += [Text(clean(line)) for line in plan_lines(state.plan, state)]
    for each in state.pipelines.values():
        if not each.is_over:
            lines.append(Text(clean(f"  {task_line(each, commands.get(each.id, ''))}"), style="cyan"))
    if "" in commands and not state.is_over:
        lines.append(Text(clean(f"  {commands['']}"), style="cyan"))
    return Group(*lines)


def describe_call(step: ToolCalled) -> str:
    """The command that an agent runs: the tool and the first text that it was given."""
    given = step.input if isinstance(step.input, dict) else {}
    text = next((str(value) for value in given.values() if isinstance(value, str)), "")
    return one_line(f"{step.tool} {text}")[:MAX_ACTIVITY]


def _pipeline_of(conversation: str) -> str:
    found = find_conversation(conversation)
    return found.pipeline if found is not None else ""


def print_event(value: dict[str, Any]) -> None:
    """One object on one line, at once."""
    sys.stdout.write(clean_json(msgspec.json.encode(value).decode()) + "\n")
    sys.stdout.flush()
