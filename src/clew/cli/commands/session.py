"""`clew session`: begin, list, switch, suspend, resume and close sessions, and show what they hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.project import trail_file
from clew.cli.terminal.output import is_terminal, note, one_line, print_json, print_rows, say, short_ids, show_time
from clew.errors import ClewError, InvalidInput

if TYPE_CHECKING:
    from clew.app import App
    from clew.knowledge.nodes.node_store import Node
    from clew.team.sessions.session import Session
    from clew.team.sessions.session_manager import SessionManager, SessionStats, SessionView

SessionName = Annotated[str, Parameter(help="Its name, or the beginning or end of its id.")]
Current = Annotated[str, Parameter(help="Its name, or the beginning or end of its id. [default: the focused one]")]


async def new(
    name: Annotated[str, Parameter(help="A name of your own.")] = "",
    /,
    *,
    auto_suspend: Annotated[
        float, Parameter(name="--suspend-after", help="Suspend it after this many hours without activity.")
    ] = 0.0,
    timeout: Annotated[float, Parameter(help="End it after this many hours.")] = 0.0,
    tasks: Annotated[int, Parameter(help="At most this many tasks at the same time.")] = 4,
    engineers: Annotated[int, Parameter(help="At most this many tasks of Engineers at the same time.")] = 4,
    task_timeout: Annotated[float, Parameter(help="End a task after this many minutes, and try it again.")] = 0.0,
    base: Annotated[str, Parameter(help="The branch that the session's branch starts from. [default: HEAD]")] = "",
    git: Annotated[bool, Parameter(help="Work on a branch of its own.")] = True,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Begin a session and focus it.

    `clew chat` continues the focused session. Other sessions stay as they are; `clew session switch` returns to one.

        clew session new "rate limiting"
        clew session new --suspend-after 24
        clew session new fares --base main --engineers 2; clew code "add fares" --session fares
    """
    from clew.team.sessions.session import SessionConfig

    config = SessionConfig(
        max_concurrent_tasks=tasks,
        max_engineers=engineers,
        task_timeout=task_timeout * 60,
        session_timeout=timeout * 3600,
        auto_suspend_after=auto_suspend * 3600,
        enable_git_isolation=git,
    )
    async with _open(here, create=True) as (manager, app):
        if base:
            await (await app.team()).require_base(base)
        made = await manager.create(name, by=app.me, config=config, base_branch=base)
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


async def switch(which: SessionName, /, *, json: Json = False, here: Here = HERE) -> None:
    """Focus another session.

    A suspended session is resumed. The session that you leave stays active.

        clew session switch "rate limiting"
        clew session switch 4f1c22ab
    """
    async with _open(here) as (manager, app):
        found = await (await app.team()).switch(await manager.find(which, by=app.me), by=app.me)
    _show(found, "is focused. `clew chat` continues it.", as_json=json)


async def suspend(which: Current = "", /, *, json: Json = False, here: Here = HERE) -> None:
    """Suspend a session.

    It takes no messages until it is resumed. An answer that is being written still arrives.

        clew session suspend
        clew session suspend "rate limiting"
    """
    await _act("suspend", which, "is suspended. `clew session switch` returns to it by its name.", json, here)


async def resume(which: SessionName, /, *, json: Json = False, here: Here = HERE) -> None:
    """Resume a suspended session and focus it.

    It takes messages again.

        clew session resume "rate limiting"
    """
    await _act("resume", which, "is active. `clew chat` continues it.", json, here)


async def close(
    which: Current = "",
    /,
    *,
    all: Annotated[bool, Parameter(help="Close every open session.")] = False,
    summary: Annotated[str, Parameter(help="One sentence about the result.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Close a session for good.

    Work of the team that is under way is stopped. Its messages stay readable, and searches find them. Its decisions,
    patterns and resolved failures become readable in all sessions.

        clew session close
        clew session close "rate limiting" --summary "Merged as #12"
        clew session close --all
    """
    if not all:
        await _act("close", which, "is completed.", json, here, summary)
        return
    if which:
        raise InvalidInput("--all", "cannot be combined with a session")
    async with _open(here) as (_, app):
        done = await (await app.team()).close_all(by=app.me, summary=summary)
    if json:
        print_json({"items": done})
    else:
        note(f"{len(done)} {'session is' if len(done) == 1 else 'sessions are'} completed.")


async def show(which: Current = "", /, *, json: Json = False, here: Here = HERE) -> None:
    """Show the state, private context and counts of a session.

    Without a name it is the focused session. The output as JSON has the snapshot of a suspended session, too.

        clew session show
        clew session show "rate limiting"
    """
    async with _open(here) as (manager, app):
        id = await _named(manager, app, which)
        session, stats = await manager.get(id, by=app.me), await manager.stats(id, by=app.me)
        if json:
            snapshot = await manager.snapshot(id, by=app.me) if session.state == "suspended" else None
            context = await manager.get_context(id, by=app.me)
            print_json({**_plain(session), "context": _plain(context), "stats": stats, "snapshot": snapshot})
            return
        focused = await manager.focused(by=app.me)
    rows = _rows_of(session, stats, is_focused=focused is not None and focused.id == session.id)
    print_rows(("field", "value"), rows, main=1)


async def update(
    which: Current = "",
    /,
    *,
    task: Annotated[str | None, Parameter(help="The task.")] = None,
    objective: Annotated[str | None, Parameter(help="The objective of the task.")] = None,
    step: Annotated[str | None, Parameter(help="The present step.")] = None,
    done: Annotated[bool, Parameter(help="The present step is done.")] = False,
    next: Annotated[tuple[str, ...], Parameter(help="A step that comes later; repeatable.")] = (),
    blocked: Annotated[tuple[str, ...], Parameter(help="Something that blocks the work; repeatable.")] = (),
    unblock: Annotated[tuple[str, ...], Parameter(help="A blocker that is gone; repeatable.")] = (),
    want: Annotated[tuple[str, ...], Parameter(help="A wish for this session; repeatable.")] = (),
    reject: Annotated[tuple[str, ...], Parameter(help="Something not to do in this session; repeatable.")] = (),
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Note the task, the steps and your wishes in a session.

    The agents of the session read this with each message. Other sessions do not see it.

        clew session update --task "rate limiting" --next "write the tests"
        clew session update --step "write the tests" --reject "new dependencies"
    """
    from clew.team.sessions.session_context import ContextChange, change_context

    change = ContextChange(
        task=task,
        step=step,
        objective=objective,
        finish_step=done,
        next=next,
        drop_next=(step,) if step else (),
        blockers=blocked,
        unblock=unblock,
        wants=want,
        rejects=reject,
    )
    if change == ContextChange():
        raise InvalidInput("update", "nothing was given", hint="For example --task TEXT; --help lists the options")
    async with _open(here) as (manager, app):
        id = await _named(manager, app, which)
        changed = await manager.update_context(id, lambda context: change_context(context, change), by=app.me)
    _show(changed, "is updated.", as_json=json)


async def history(
    which: Current = "",
    /,
    *,
    search: Annotated[str, Parameter(help="Only messages that contain this text.")] = "",
    limit: Annotated[int, Parameter(help="The maximum number; the newest are shown.")] = 20,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the messages and answers of a session, oldest first.

    Without a name it is the focused session.

        clew session history
        clew session history "rate limiting" --search token
    """
    async with _open(here) as (manager, app):
        id = await _named(manager, app, which)
        turns = await manager.query_history(id, search, by=app.me, limit=limit)
    if json:
        print_json({"session": id, "items": turns})
        return
    print_rows(("time", "by", "text"), [(show_time(each.at), each.role, one_line(each.text)) for each in turns], main=2)
    if not turns:
        note(f"No message contains {search!r}." if search else "No messages yet.")


async def entries(which: Current = "", /, *, json: Json = False, here: Here = HERE) -> None:
    """List the journal entries of a session.

    A promoted entry is readable in all sessions.

        clew session entries
    """
    async with _open(here) as (manager, app):
        found = await manager.promotions.entries(await _named(manager, app, which), by=app.me)
    if json:
        print_json({"items": found})
        return
    rows = [(each.id, str(each.category), _promotion_of(each), one_line(each.name)) for each in found]
    print_rows(("entry", "category", "promoted", "title"), rows, main=3)
    if not rows:
        note("No entries yet. Agents write them with `store` and `store_summary`.")


async def promote(
    entries: Annotated[tuple[str, ...], Parameter(help="Ids of entries; `clew session entries` lists them.")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Make journal entries of a session readable in all sessions.

    Each entry says by whom, when and why it was promoted.

        clew session promote 1f0c3b9e-8d2a-5c41-9f6e-2b7a4d0e5c13
    """
    async with _open(here) as (manager, app):
        done = [await manager.promotions.promote(each, by=app.me) for each in entries]
    _show_entries(done, "readable in all sessions", as_json=json)


async def unpromote(
    entries: Annotated[tuple[str, ...], Parameter(help="Ids of promoted entries.")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Undo a promotion: only the session of an entry reads it.

    From then on only `clew session promote` promotes it again.

        clew session unpromote 1f0c3b9e-8d2a-5c41-9f6e-2b7a4d0e5c13
    """
    async with _open(here) as (manager, app):
        done = [await manager.promotions.take_back(each, by=app.me) for each in entries]
    _show_entries(done, "private to its session", as_json=json)


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


def _rows_of(session: Session, stats: SessionStats, *, is_focused: bool) -> list[tuple[str, str]]:
    from clew.team.sessions.session_context import context_rows

    times = {
        "created": session.created_at,
        "activated": session.activated_at,
        "suspended": session.suspended_at,
        "completed": session.completed_at,
    }
    texts = {
        "summary": session.summary,
        "branch": session.branch_name,
        "base": session.base_branch,
        "plan": session.active_dag_id,
    }
    counts = ", ".join(f"{count} {name}" for name, count in _plain(stats).items() if count)
    return [
        ("id", session.id),
        ("name", session.name or "-"),
        ("state", f"{session.state}{f' because {session.reason}' if session.reason else ''}"),
        ("focused", "yes" if is_focused else "no"),
        *((name, show_time(at)) for name, at in times.items() if at is not None),
        *((name, text) for name, text in texts.items() if text),
        *((label.lower(), one_line(text)) for label, text in context_rows(session.context)),
        ("counts", counts or "no messages"),
    ]


def _plain(record: object) -> dict[str, Any]:
    import msgspec

    return cast("dict[str, Any]", msgspec.to_builtins(record))


def _promotion_of(entry: Node) -> str:
    mark = entry.metadata.get("promoted")
    return f"by {mark['by'] or 'user'} ({mark['because']})" if mark else "no"


def _show_entries(done: Sequence[Node], state: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"items": done})
        return
    for each in done:
        note(f"{one_line(each.name)} is {state}.")


async def _act(action: str, which: str, outcome: str, json: bool, here: Here, summary: str = "") -> None:
    from clew.team.sessions.session import SessionAction

    async with _open(here) as (manager, app):
        id = await _named(manager, app, which)
        team = await app.team()
        match action:
            case "suspend":
                changed = await team.suspend(id, by=app.me)
            case "close":
                changed = await team.close(id, by=app.me, summary=summary)
            case _:
                changed = await manager.act(id, SessionAction.RESUME, by=app.me)
                await team.resume(id, by=app.me)
    _show(changed, outcome, as_json=json)


async def _named(manager: SessionManager, app: App, which: str) -> str:
    """The named session, or the focused one. Raises NotFound, and ClewError if no session is focused."""
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
    from clew.team.sessions.session_manager import open_sessions  # for commands about sessions

    async with open_here(here, create=create) as app:
        await app.bootstrap()
        yield await open_sessions(app.trail, app.clock, by=app.me), app
