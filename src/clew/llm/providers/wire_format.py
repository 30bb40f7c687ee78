"""The interface of a provider's protocol: a request as JSON, and a reply from JSON, whole or streamed."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

import msgspec

from clew.llm.messages import Message
from clew.llm.model_catalogue import ModelInfo
from clew.llm.providers.provider import Provider
from clew.llm.providers.tool_names import ToolNames
from clew.llm.requests import FinishReason, ModelRequest

Json = dict[str, Any]
T = TypeVar("T")


class WireCall(msgspec.Struct, kw_only=True):
    """A tool call of a reply. `name` is the provider's spelling; `arguments` is JSON text, or its decoded value."""

    id: str
    name: str
    arguments: str | Json


class ProviderReply(msgspec.Struct, kw_only=True):
    """A complete reply. `input_tokens` counts cached tokens and tokens written to the provider's cache. `extra` is
    opaque data that goes back to the same provider with the next request."""

    text: str
    calls: list[WireCall]
    finish: FinishReason
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    extra: Json = {}


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The data that a protocol needs to write the body of a request."""

    provider: Provider
    info: ModelInfo
    model: str
    asked: ModelRequest
    names: ToolNames
    is_streamed: bool

    @property
    def temperature(self) -> float | None:
        """The temperature to send; None for reasoning models, because the APIs of their makers refuse a temperature."""
        return None if "thinking" in self.info.capabilities else self.asked.temperature

    def kept(self, message: Message) -> Json:
        """The extra of a message that this provider sent itself; empty for others."""
        return message.extra if message.extra.get("provider") == self.provider.name else {}


class StreamReader(Protocol):
    """Puts a streamed reply together."""

    def add(self, data: Any) -> str:
        """Process the data of one event, and return the new text in it. Raises ProviderFailure for an error event, and
        ResponseTooLarge."""
        ...

    def finish(self) -> ProviderReply:
        """The reply. Raises ValueError if the stream ended before the reply was complete."""
        ...


class WireFormat(Protocol):
    """One protocol. All readers raise ValueError, or an error of msgspec, for malformed data."""

    path: str
    models_path: str
    """The path of the provider's list of models."""

    def headers(self, key: str) -> dict[str, str]: ...

    def body(self, request: WireRequest) -> Json: ...

    def read(self, data: Any) -> ProviderReply: ...

    def reader(self) -> StreamReader: ...


class ProviderFailure(Exception):
    """An error that a provider reported by its HTTP status or by an event of a stream. For an event, `status` is 0."""

    def __init__(self, status: int, body: Any, retry_after: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.retry_after = retry_after


def read_json(text: str | bytes) -> Any:
    """Decoded JSON. Raises ValueError. It uses the standard library, which accepts lone surrogates; some providers send
    them."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_answer(text: str | bytes) -> Any:
    """Decoded JSON of an answer or an event. Raises ValueError, and ProviderFailure for a body with an `error`: some
    servers send one with the status 200."""
    data = read_json(text)
    if isinstance(data, dict) and data.get("error"):
        raise ProviderFailure(0, data)
    return data


def as_shape(data: Any, shape: type[T]) -> T:
    """Raises msgspec.ValidationError for data of another shape."""
    return msgspec.convert(data, shape)


def dump_arguments(arguments: Json) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def object_schema(schema: Json) -> Json:
    """The schema of a tool, completed with `type` and `properties`, which all providers require."""
    return {"type": "object", "properties": {}, **schema}


def storable(text: str) -> str:
    """Replace lone surrogates in a text, because the trail cannot store them."""
    return text.encode("utf-8", "replace").decode()


def is_same(message: Message, text: str, call_ids: list[str]) -> bool:
    """Whether a message still has the text and the calls of its stored extra."""
    return storable(text) == message.content and call_ids == [each.id for each in message.tool_calls]
