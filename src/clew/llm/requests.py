"""The one model interface: a call is one step, and a model keeps no state between calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from clew.llm.messages import Message, ToolCall, ToolSpec, Usage

FinishReason = Literal["stop", "tool_calls", "length", "refused"]
OnText = Callable[[str], Awaitable[None]]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a model. `model` is a model name of the provider; empty means the name of the called
    model. `output_schema` is a JSON Schema for the text of the answer, if the provider can enforce one."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    output_schema: dict[str, Any] | None = None


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of a model. `model` is the model that answered, according to the provider. `extra` is opaque data that
    goes back to the provider with this message."""

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
        """Return the whole answer. `on_text` is called with each piece of the text as it arrives; the joined pieces
        equal the content of the answer. Cancelling the task closes the connection. Raises ModelError."""
        ...
