"""The envelope of a team message, and its record on the trail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.decode_errors import in_plain_words
from clew.team.messages.message_types import MessageType
from clew.trail.model.breadcrumb import Breadcrumb, Draft

SCHEMA = "team.message.v1"
SESSION_TAG, TYPE_TAG, TASK_TAG = "session:", "type:", "task:"

MessageStatus = Literal["pending", "processed", "expired", "refused"]
Priority = Literal["low", "normal", "high", "urgent"]
_TITLE = 200


class TeamMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message between the user, the agents and the runtime. `ttl` is in seconds; 0 means without limit."""

    id: str
    correlation_id: str = ""
    parent_id: str = ""
    session_id: str
    source: str
    target: str
    type: MessageType
    payload: dict[str, Any] = {}
    timestamp: datetime
    deadline: datetime | None = None
    ttl: Annotated[float, Meta(ge=0)] = 0.0
    status: MessageStatus = "pending"
    attempt: Annotated[int, Meta(ge=1)] = 1
    max_attempts: Annotated[int, Meta(ge=1)] = 1
    priority: Priority = "normal"
    metadata: dict[str, Any] = {}
    error: str = ""
    processed_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Whether its deadline or its time to live has passed."""
        if self.deadline is not None and now > self.deadline:
            return True
        return self.ttl > 0 and now > self.timestamp + timedelta(seconds=self.ttl)


def message_draft(message: TeamMessage, *, key: str | None = None) -> Draft:
    """The record of a message. The same `key` writes it once."""
    task = str(message.payload.get("pipeline") or "")
    return Draft(
        id=message.id,
        title=f"{message.type}: {message.source} to {message.target}"[:_TITLE],
        schema_name=SCHEMA,
        tags=(SESSION_TAG + message.session_id, TYPE_TAG + message.type, *((TASK_TAG + task,) if task else ())),
        context=msgspec.to_builtins(message),
        embed="never",
        idempotency_key=key,
    )


def read_message(record: Breadcrumb) -> TeamMessage:
    """The message of a record. Raises InvalidInput with the name of the field."""
    try:
        return msgspec.convert(record.context, TeamMessage)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, TeamMessage, "context") from None
