"""Records of model calls: messages, tool calls, tool descriptions and usage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from clew.trail.model.breadcrumb import encode_canonical

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool that a model requests. The result refers to its `id`."""

    id: str
    name: str
    arguments: dict[str, Any] = {}


class MessageSource(msgspec.Struct, frozen=True, kw_only=True):
    """The location of the text of a message: a dotted path in one version of a breadcrumb."""

    id: str
    version: int
    field: str


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message. A message of the role `tool` is the result of the call `tool_call_id` of the tool `name`. `extra` is
    opaque data that is returned to the provider, such as signatures of a model's reasoning."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    source: MessageSource | None = None
    extra: dict[str, Any] = {}


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a tool for a model. `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one call. `cached_tokens` are part of the input tokens; `cost` is in US dollars, None if no price is
    known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


def prompt_digest(messages: Iterable[Message], tools: Iterable[ToolSpec] = ()) -> str:
    """The digest of a whole prompt: equal for equal messages and tools, no matter which records the texts come from.
    Raises InvalidInput for values that JSON cannot represent."""
    said = [msgspec.to_builtins(msgspec.structs.replace(each, source=None)) for each in messages]
    prompt = {"messages": said, "tools": [msgspec.to_builtins(each) for each in tools]}
    return hashlib.blake2b(encode_canonical(prompt, "prompt"), digest_size=16).hexdigest()
