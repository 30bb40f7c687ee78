"""Commands that a person types in a chat instead of a message: help, and the way out."""

from __future__ import annotations

import re
from enum import Enum

from clew.cli.terminal.output import note, one_line

GREETING = "/help lists the commands; Ctrl-C cancels an answer, Ctrl-D ends."
HELP = (
    "/help   show this list; also ? and help",
    "/exit   end the conversation; also /quit, exit, quit and Ctrl-D",
    "Ctrl-C  cancel the answer that is coming; a second one ends the conversation",
)
_HELP_WORDS = frozenset(("/help", "/?", "?", "help"))
_EXIT_WORDS = frozenset(("/exit", "/quit", "/bye", "exit", "quit", "bye"))
_COMMAND = re.compile(r"/[A-Za-z][\w-]*")


class Typed(Enum):
    """The meaning of a typed line: a message for the agent, a command that was answered, or the end."""

    MESSAGE = "message"
    ANSWERED = "answered"
    EXIT = "exit"


def read_command(text: str) -> Typed:
    """Tell a command from a message, and answer it. Only a line that is nothing but a command counts as one."""
    word = text.strip().lower()
    if word in _EXIT_WORDS:
        return Typed.EXIT
    if word in _HELP_WORDS:
        for line in HELP:
            note(line)
        return Typed.ANSWERED
    if _COMMAND.fullmatch(word):
        note(f"There is no command {one_line(word)}. The commands are /help, /exit and /quit.")
        return Typed.ANSWERED
    return Typed.MESSAGE
