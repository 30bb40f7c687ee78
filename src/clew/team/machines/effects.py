"""Effects of the state machines. The coordinator turns each into records on the trail."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.team.messages.message_types import MessageType


class Effect(msgspec.Struct, frozen=True, kw_only=True, tag_field="effect"):
    """Work that follows from a message."""


class AskAgent(Effect, frozen=True, kw_only=True, tag="ask_agent"):
    """Prompt an agent. The end of its run comes back as RUN_ENDED."""

    role: str
    conversation: str
    prompt: str
    pipeline: str = ""


class CallTool(Effect, frozen=True, kw_only=True, tag="call_tool"):
    """Call a tool of the team. Its result comes back as CALL_RESULT with the same `call`."""

    call: str
    tool: str
    input: dict[str, Any]


class SendMessage(Effect, frozen=True, kw_only=True, tag="send_message"):
    """Write another message."""

    type: MessageType
    source: str
    target: str
    payload: dict[str, Any]


class StartTimer(Effect, frozen=True, kw_only=True, tag="start_timer"):
    """Write TIMER_DUE with this key after some seconds."""

    key: str
    seconds: float


class CancelRun(Effect, frozen=True, kw_only=True, tag="cancel_run"):
    """Cancel the runs of a conversation."""

    conversation: str
    reason: str


class EndSession(Effect, frozen=True, kw_only=True, tag="end_session"):
    """End the session of the team as completed or failed."""

    success: bool
    summary: str


Effects = tuple[Effect, ...]


def send(type: MessageType, source: str, target: str, payload: msgspec.Struct) -> SendMessage:
    """The effect that writes a message with this payload."""
    return SendMessage(type=type, source=source, target=target, payload=msgspec.to_builtins(payload))
