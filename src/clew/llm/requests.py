"""The one model interface: a call is one step, and nothing of it is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from clew.llm.messages import Message, ToolCall, ToolSpec, Usage

FinishReason = Literal["stop", "tool_calls", "length", "refused"]
OnText = Callable[[str], Awaitable[None]]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a model is sent. `model` is the provider's own name of it, empty for the model's own;
    `output_schema` is a JSON Schema that the text of the answer has to fit, where the provider can see to it."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    output_schema: dict[str, Any] | None = None


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of a model. `model` is the one that answered, by its provider's word; `extra` goes back unread with the
    message that this becomes."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    model: str = ""
    usage: Usage = Usage()
    extra: dict[str, Any] = {}

    def as_message(self) -> Message:
        """The answer as the next message of the conversation."""
        return Message(role="assistant", content=self.content, tool_calls=self.tool_calls, extra=self.extra)


class Model(Protocol):
    """Answers one request with one call. May be used by several tasks at once."""

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """The whole answer. With `on_text` its text is handed over piece by piece as it comes, in order; together the
        pieces are the answer's content. Cancelling the task closes the connection. Raises ModelError."""
        ...
