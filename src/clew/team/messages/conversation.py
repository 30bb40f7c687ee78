"""The conversation of an agent of the team: `<session>.<pipeline>.<role>`. The pipeline is `main` outside of a task.
The last part is `query` if an agent answers a question of the user outside of its work."""

from __future__ import annotations

import msgspec

from clew.errors import InvalidInput
from clew.team.messages.message_types import AGENTS

MAIN, QUERY = "main", "query"


class TeamConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a conversation's id. `pipeline` is empty outside of a task."""

    session: str
    pipeline: str
    role: str

    @property
    def id(self) -> str:
        return conversation_id(self.session, self.pipeline, self.role)


def conversation_id(session: str, pipeline: str, role: str) -> str:
    """The id of the conversation of an agent: one for each session, pipeline and role."""
    return f"{session}.{pipeline or MAIN}.{role}"


def find_conversation(id: str | None) -> TeamConversation | None:
    """The parts of an id, or None for an id of another kind. A session id contains no dot; a pipeline id may contain
    dots."""
    session, _, rest = (id or "").partition(".")
    pipeline, _, role = rest.rpartition(".")
    if not session or not pipeline or role not in (*AGENTS, QUERY):
        return None
    return TeamConversation(session=session, pipeline="" if pipeline == MAIN else pipeline, role=role)


def get_conversation(id: str | None) -> TeamConversation:
    """Like `find_conversation`, but raises InvalidInput."""
    found = find_conversation(id)
    if found is None:
        hint = "Members of the team work in conversations such as SESSION.main.architect"
        raise InvalidInput("session", f"{(id or '')[:100]!r} is not a conversation of the team", hint=hint)
    return found


def team_session(id: str | None) -> str:
    """The session of a conversation; the id itself if it is not the id of a team conversation."""
    found = find_conversation(id)
    return found.session if found is not None else id or ""
