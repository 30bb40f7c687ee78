"""`clew session`: begin, list, switch, suspend, resume and close sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json, open_here
from clew.cli.project import trail_file
from clew.cli.terminal.output import is_terminal, note, print_json, print_rows, say, short_ids, show_time
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.app import App
    from clew.team.sessions.session import Session
    from clew.team.sessions.session_manager import SessionManager, SessionView

Which = Annotated[str, Parameter(help="Its name, or the beginning or end of its id.")]
Current = Annotated[str, Parameter(help="Its name, or the beginning or end of its id. [default: the focused one]")]


async def new(
    name: Annotated[str, Parameter(help="A name of your own.")] = "",
    /,
    *,
    auto_suspend: Annotated[
        float, Parameter(name="--suspend-after", help="Suspend it after this many hours without a message.")
    ] = 0.0,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Begin a session and focus it.

    `clew chat` continues the focused session. Other sessions stay as they are; `clew session switch` returns to one.

        clew session new "rate limiting"
        clew session new --suspend-after 24
    """
    from clew.team.sessions.session import SessionLimits

    async with _open(here, create=True) as (manager, app):
        made = await manager.create(name, by=app.me, limits=SessionLimits(auto_suspend_after=auto_suspend * 3600))
    _show(made, "is active. `clew chat` continues it.", as_json=json)


async def ls(
    *,
    state: Annotated[str, Parameter(help="Only sessions in this state: active, suspended, completed or failed.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """List the sessions, newest first.

    The focused session is the one that `clew chat` continues.

        clew session ls
        clew session ls --state suspended
    """
    from clew.team.sessions.session_manager import read_state

    wanted = read_state(state) if state else None
    if (file := trail_file(here.config())) is not None and not file.exists():
        print_sessions([], as_json=json)
        return
    async with _open(here) as (manager, app):
        found = await manager.list(by=app.me, state=wanted)
    print_sessions(found, as_json=json, state=state)


async def switch(which: Which, /, *, json: Json = False, here: Here = HERE) -> None:
    """Focus another session.

    A suspended session is resumed. The session that you leave stays active.

        clew session switch "rate limiting"
        clew session switch 4f1c22ab
    """
    async with _open(here) as (manager, app):
        found = await manager.switch(await manager.find(which, by=app.me), by=app.me)
    _show(found, "is focused. `clew chat` continues it.", as_json=json)


async def suspend(which: Current = "", /, *, json: Json = False, here: Here = HERE) -> None:
    """Suspend a session.

    It takes no messages until it is resumed. An answer that is being written still arrives.

        clew session suspend
        clew session suspend "rate limiting"
    """
    await _act("suspend", which, "is suspended. `clew session switch` returns to it by its name.", json, here)


async def resume(which: Which, /, *, json: Json = False, here: Here = HERE) -> None:
    """Resume a suspended session and focus it.

    It takes messages again.

        clew session resume "rate limiting"
    """
    await _act("resume", which, "is active. `clew chat` continues it.", json, here)


async def close(
    which: Current = "",
    /,
    *,
    summary: Annotated[str, Parameter(help="One sentence about the result.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Close a session for good.

    Its messages stay readable, and searches find them.

        clew session close
        clew session close "rate limiting" --summary "Merged as #12"
    """
    await _act("close", which, "is completed.", json, here, summary)


async def show(which: Current = "", /, *, json: Json = False, here: Here = HERE) -> None:
    """Show the state, times and summary of a session.

    Without a name it is the focused session.

        clew session show
        clew session show "rate limiting"
    """
    async with _open(here) as (manager, app):
        session = await manager.get(await _named(manager, app, which), by=app.me)
        if json:
            print_json(session)
            return
        focused = await manager.focused(by=app.me)
    times = {
        "created": session.created_at,
        "activated": session.activated_at,
        "suspended": session.suspended_at,
        "completed": session.completed_at,
    }
    rows = [
        ("id", session.id),
        ("name", session.name or "-"),
        ("state", f"{session.state}{f' because {session.reason}' if session.reason else ''}"),
        ("focused", "yes" if focused is not None and focused.id == session.id else "no"),
        *((name, show_time(at)) for name, at in times.items() if at is not None),
        *((("summary", session.summary),) if session.summary else ()),
    ]
    print_rows(("field", "value"), rows, main=1)


def print_sessions(found: Sequence[SessionView], *, as_json: bool, state: str = "") -> None:
    """Print these sessions, in their order."""
    if as_json:
        print_json({"items": found})
        return
    ids = short_ids([each.id for each in found])
    rows = [
        (id, "focused" if each.is_focused else each.state, show_time(each.last_at), each.agent or "-", each.title)
        for id, each in zip(ids, found, strict=True)
    ]
    print_rows(("session", "state", "last message", "agent", "title"), rows, main=4, spare=(3,))
    if not rows and state:
        note(f"No session is {state}.")
    elif not rows:
        note("No sessions yet. `clew chat` or `clew session new` starts one.")


async def _act(action: str, which: str, outcome: str, json: bool, here: Here, summary: str = "") -> None:
    from clew.team.sessions.session import SessionAction

    async with _open(here) as (manager, app):
        id = await _named(manager, app, which)
        changed = await manager.act(id, SessionAction(action), by=app.me, summary=summary)
    _show(changed, outcome, as_json=json)


async def _named(manager: SessionManager, app: App, which: str) -> str:
    """The session that is named, or the focused one. Raises NotFound, ClewError where none is focused."""
    if which:
        return await manager.find(which, by=app.me)
    focused = await manager.focused(by=app.me)
    if focused is None:
        raise ClewError("no session is focused", hint="Name one; `clew session list` shows them")
    return focused.id


def _show(session: Session, outcome: str, *, as_json: bool) -> None:
    from clew.team.sessions.session import label

    if as_json:
        print_json(session)
    elif is_terminal():
        say(f"Session {label(session)} {outcome}")
    else:
        say(session.id)


@asynccontextmanager
async def _open(here: Here, *, create: bool = False) -> AsyncIterator[tuple[SessionManager, App]]:
    # the conversations are for commands about sessions
    from clew.agents.conversations.conversation import open_conversations
    from clew.team.sessions.session_manager import SessionManager

    async with open_here(here, create=create) as app:
        await app.bootstrap()
        conversations = await open_conversations(app.trail, app.clock, by=app.me, scopes=app.me.scopes)
        yield SessionManager(app.trail, conversations, app.clock), app
