"""The sessions of a folder: listing them, and finding one by what a person types of its id."""

from __future__ import annotations

from collections.abc import Sequence

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import MAX_SESSIONS, SessionInfo
from clew.cli.terminal.output import note, print_json, print_rows, short_ids, show_time
from clew.cli.trail.record_ids import SHORTEST
from clew.errors import ClewError, NotFound

LISTED = "`clew chat --list` shows them"


async def show_sessions(conversations: Conversations, *, by: Principal, as_json: bool) -> None:
    """All sessions, newest first."""
    tell_sessions(await conversations.sessions.recent(by=by, limit=MAX_SESSIONS), as_json=as_json)


def tell_sessions(found: Sequence[SessionInfo], *, as_json: bool) -> None:
    """These sessions, in their order."""
    if as_json:
        print_json({"items": found})
        return
    ids = short_ids([each.id for each in found])
    rows = [(id, show_time(each.last_at), each.agent or "-", each.title) for id, each in zip(ids, found, strict=True)]
    print_rows(("session", "last message", "agent", "title"), rows, main=3, spare=(2,))
    if not rows:
        note("No sessions yet. `clew chat` starts one.")


async def find_session(conversations: Conversations, given: str, *, by: Principal) -> str:
    """The session of that id, or of an id that begins or ends so. Raises NotFound, or ClewError where it could mean
    several."""
    try:
        return (await conversations.sessions.first(given, by=by)).session or given
    except NotFound as error:
        error.hint = LISTED
        if len(given) < SHORTEST:
            raise
        recent = await conversations.sessions.recent(by=by, limit=MAX_SESSIONS)
        found = [each.id for each in recent if each.id.startswith(given) or each.id.endswith(given)]
        if not found:
            raise
    if len(found) > 1:
        raise ClewError(f"{given!r} means {len(found)} sessions", hint=f"For example {found[0]} and {found[1]}")
    return found[0]
