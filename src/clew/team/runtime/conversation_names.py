"""Names of the conversations of a team: session, pipeline and agent in one session id of the trail."""

from __future__ import annotations

from typing import NamedTuple

from clew.team.machines.effects import MAIN


class TeamConversation(NamedTuple):
    """The parts of a name. `pipeline` is empty in a conversation of the session itself; `last` is the role, or another
    word for a side conversation."""

    session: str
    pipeline: str
    last: str


def parse_conversation(name: str | None) -> TeamConversation | None:
    """The parts of the session id of a team conversation; None for any other session. The id of a pipeline may have
    dots, that of a session has none."""
    session, _, rest = (name or "").partition(".")
    pipeline, _, last = rest.rpartition(".")
    if not (session and pipeline and last):
        return None
    return TeamConversation(session, "" if pipeline == MAIN else pipeline, last)
