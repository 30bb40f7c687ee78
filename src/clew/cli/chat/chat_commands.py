"""Commands that a person types in a chat instead of a message: help, sessions, the team, and the way out."""

from __future__ import annotations

import re
from enum import Enum

from clew.access import Principal
from clew.cli.commands.session import print_sessions
from clew.cli.terminal.output import note, one_line
from clew.errors import InvalidInput
from clew.team.sessions.session import Session, label
from clew.team.sessions.session_manager import SessionManager
from clew.team.team import Team

GREETING = "/help lists the commands; Ctrl-C cancels an answer, Ctrl-D ends."
HELP = (
    "/help   show this list; also ? and help",
    "/session new|list|switch|suspend|resume|close [NAME]   manage sessions, as `clew session` does",
    "/plan [TEXT]   show the plan of the team; with a text, change it",
    "/approve   approve the plan;  /stop   stop the team",
    "/task N prompt|query|interrupt|ignore_inspector|ignore_tester [TEXT]   act on a task of the team",
    "/exit   end the conversation; also /quit, exit, quit and Ctrl-D",
    "Ctrl-C  cancel the answer that is coming; a second one ends the conversation",
)
_HELP_WORDS = frozenset(("/help", "/?", "?", "help"))
_EXIT_WORDS = frozenset(("/exit", "/quit", "/bye", "exit", "quit", "bye"))
_COMMAND = re.compile(r"/[A-Za-z][\w-]*")
_SESSION = re.compile(r"/session(?:\s|\Z)|/sessions\Z")
_TEAM = re.compile(r"/(?:plan|approve|stop|task)(?:\s|\Z)")
_SESSION_USAGE = "Use /session new, list, switch, suspend, resume or close, and a name or id"


class Typed(Enum):
    """The meaning of a typed line: a message for the agent, a command about sessions or the team, a command that is
    already handled, or the end."""

    MESSAGE = "message"
    SESSION = "session"
    TEAM = "team"
    ANSWERED = "answered"
    EXIT = "exit"


def read_command(text: str) -> Typed:
    """Recognize a command in a typed line, and carry it out. A line is a command only if it contains nothing else."""
    word = text.strip().lower()
    if word in _EXIT_WORDS:
        return Typed.EXIT
    if _SESSION.match(word):
        return Typed.SESSION
    if _TEAM.match(word):
        return Typed.TEAM
    if word in _HELP_WORDS:
        for line in HELP:
            note(line)
        return Typed.ANSWERED
    if _COMMAND.fullmatch(word):
        note(f"There is no command {one_line(word)}. /help lists the commands.")
        return Typed.ANSWERED
    return Typed.MESSAGE


async def run_session_command(text: str, team: Team, current: str | None, *, by: Principal) -> str | None:
    """Carry out `/session …`; return the session that the chat continues in, None for a new one. Raises ClewError."""
    action, name = _split(text)
    manager = team.sessions
    match action:
        case "list" | "ls":
            print_sessions(await manager.list(by=by), as_json=False)
            return current
        case "new":
            session: Session | None = await manager.create(name, by=by)
        case "switch" | "resume":
            session = await team.switch(await _find(manager, name, None, by), by=by)
        case "suspend" | "close":
            id = await _find(manager, name, current, by)
            changed = await (team.suspend(id, by=by) if action == "suspend" else team.close(id, by=by))
            note(f"Session {label(changed)} is {changed.state}.")
            if id != current:
                return current
            session = await manager.focused(by=by)
        case _:
            raise InvalidInput("/session", f"{one_line(action)!r} is not possible", hint=_SESSION_USAGE)
    note(f"Messages now go to session {label(session)}." if session else "The next message begins a new session.")
    return session.id if session else None


def _split(text: str) -> tuple[str, str]:
    """The action and the name of a `/session` command; quotes around the name are removed."""
    _, action, name = (*text.split(maxsplit=2), "", "")[:3]
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
        name = name[1:-1]
    return action.lower() or "list", name


async def _find(manager: SessionManager, name: str, current: str | None, by: Principal) -> str:
    if name:
        return await manager.find(name, by=by)
    if current is None:
        raise InvalidInput("/session", "needs the name of a session", hint=_SESSION_USAGE)
    return current
