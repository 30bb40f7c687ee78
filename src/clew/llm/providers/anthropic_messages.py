"""Anthropic's Messages API."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec

from clew.llm.messages import Message
from clew.llm.providers.response_limits import Measure
from clew.llm.providers.wire_format import (
    Json,
    ProviderFailure,
    ProviderReply,
    WireCall,
    WireRequest,
    as_shape,
    dump_arguments,
    is_same,
    object_schema,
)
from clew.llm.requests import FinishReason

VERSION = "2026-10-21"
MAX_ANSWER = 16_384
"""The token limit of an answer if the caller sets none; the API requires a limit."""
_FINISHES: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_CACHE = {"type": "ephemeral"}


class AnthropicMessages:
    """See `WireFormat`."""

    path = "v1/messages"
    models_path = "v1/models?limit=1000"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"authorization": f"Bearer {key}"} if key else {})}

    def body(self, request: WireRequest) -> Json:
        asked = request.asked
        limit = min(request.info.output_tokens, MAX_ANSWER) if asked.max_tokens is None else asked.max_tokens
        body: Json = {
            "model": request.model,
            "max_tokens": limit,
            "messages": _messages_out(asked.messages, request),
            "stream": request.is_streamed,
        }
        if system := "\n\n".join(each.content for each in asked.messages if each.role == "system" and each.content):
            body["system"] = [{"type": "text", "text": system}]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if asked.tools:
            body["tools"] = [
                {
                    "name": request.names.there(each.name),
                    "description": each.description,
                    "input_schema": object_schema(each.schema),
                }
                for each in asked.tools
            ]
            body["tool_choice"] = {"type": "auto"}
            _mark_for_cache(body)
        if asked.output_schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": _closed(asked.output_schema)}}
        return body

    def read(self, data: Any) -> ProviderReply:
        reply = as_shape(data, _WholeMessage)
        reader = AnthropicReader()
        reader.start(reply)
        for index, block in enumerate(reply.content):
            reader.start_block(index, block)
        reader.stop_reason = reply.stop_reason
        return reader.finish()

    def reader(self) -> AnthropicReader:
        return AnthropicReader()


def _mark_for_cache(body: Json) -> None:
    """Mark tools, instructions and conversation for the provider's cache. A request with tools is followed by requests
    with the same beginning."""
    body["cache_control"] = _CACHE
    body["tools"][-1]["cache_control"] = _CACHE
    if "system" in body:
        body["system"][-1]["cache_control"] = _CACHE


def _closed(schema: Any) -> Any:
    """A schema whose objects allow no further properties, as this API demands."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(value) for key, value in schema.items()}
    if found.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


def _messages_out(messages: tuple[Message, ...], request: WireRequest) -> list[Json]:
    """The conversation. Tool results and the user's next text are one message. Empty messages are left out."""
    found: list[Json] = []
    others = (each for each in messages if each.role != "system")
    for role, group in groupby(others, key=lambda each: "assistant" if each.role == "assistant" else "user"):
        if role == "assistant":
            turns = [_answer_out(each, request) for each in group]
        else:
            turns = [[block for each in group for block in _blocks_out(each)]]
        found += [{"role": role, "content": blocks} for blocks in turns if blocks]
    return found


def _blocks_out(message: Message) -> list[Json]:
    text = [{"type": "text", "text": message.content}] if message.content.strip() else []
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": text}]
    return text


def _answer_out(message: Message, request: WireRequest) -> list[Json]:
    """An earlier answer. It includes the thoughts if it goes back to the provider that sent it."""
    calls = {
        each.id: {"type": "tool_use", "id": each.id, "name": request.names.there(each.name), "input": each.arguments}
        for each in message.tool_calls
    }
    kept = request.kept(message).get("content")
    if isinstance(kept, list) and all(isinstance(each, dict) for each in kept):
        text = "".join(str(each.get("text", "")) for each in kept if each.get("type") == "text")
        if is_same(message, text, [str(each.get("id")) for each in kept if each.get("type") == "tool_use"]):
            accepted = _accepted(kept)
            return [calls[each["id"]] if each.get("type") == "tool_use" else each for each in accepted]
    return [*_blocks_out(message), *calls.values()]


def _accepted(blocks: list[Json]) -> list[Json]:
    """The blocks of an answer that the API accepts in a later request: without blank text, unsigned thoughts, and
    thoughts at the end."""
    found = [each for each in blocks if not _is_blank(each) and not _is_unsigned(each)]
    while found and found[-1].get("type") in ("thinking", "redacted_thinking"):
        found.pop()
    return found


def _is_blank(block: Json) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _is_unsigned(block: Json) -> bool:
    return block.get("type") == "thinking" and not block.get("signature")


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _WholeMessage(msgspec.Struct):
    content: list[Json]
    model: str = ""
    stop_reason: str | None = None
    usage: _AnthropicUsage = msgspec.field(default_factory=_AnthropicUsage)


class _MessageDelta(msgspec.Struct):
    stop_reason: str | None = None


class _AnthropicEvent(msgspec.Struct):
    """An event of a stream. `delta` is part of a block, or of the message."""

    type: str
    index: int = 0
    message: _WholeMessage | None = None
    content_block: Json | None = None
    delta: Json | None = None
    usage: _AnthropicUsage | None = None
    error: Any = None


_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Kind of a delta → the field that it carries; all but the last belong to a field of the block."""


class AnthropicReader:
    """Reads events of a stream, and puts the blocks of the message together."""

    def __init__(self) -> None:
        self._measure = Measure()
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._usage: dict[str, int] = {}
        self._model = ""
        self.stop_reason: str | None = None

    def add(self, data: Any) -> str:
        event = as_shape(data, _AnthropicEvent)
        match event.type:
            case "error":
                raise ProviderFailure(0, data)
            case "message_start" if event.message is not None:
                self.start(event.message)
            case "content_block_start" if event.content_block is not None:
                return self.start_block(event.index, event.content_block)
            case "content_block_delta" if event.delta is not None:
                return self._add_delta(event.index, event.delta)
            case "message_delta":
                self.stop_reason = as_shape(event.delta, _MessageDelta).stop_reason or self.stop_reason
                self._count(event.usage)
        return ""

    def start(self, message: _WholeMessage) -> None:
        self._model = message.model
        self._count(message.usage)

    def start_block(self, index: int, block: Json) -> str:
        """Add a block, which is complete or just starts, and return its text."""
        self._blocks[index] = block
        self._measure.add_text(str(block.get("thinking") or ""))
        if given := block.get("input"):
            self._measure.add_arguments(dump_arguments(given))
        text: str = block["text"] if block.get("type") == "text" else ""
        return self._measure.add_text(text)

    def finish(self) -> ProviderReply:
        if self.stop_reason is None:
            raise ValueError
        blocks = [self._joined(index) for index in sorted(self._blocks)]
        calls = [_call_of(each) for each in blocks if each.get("type") == "tool_use"]
        is_plain = all(each.get("type") in ("text", "tool_use") for each in _accepted(blocks))
        read, written = self._usage.get("cache_read_input_tokens", 0), self._usage.get("cache_creation_input_tokens", 0)
        return ProviderReply(
            text="".join(each["text"] for each in blocks if each.get("type") == "text"),
            calls=calls,
            finish=_FINISHES.get(self.stop_reason) or ("tool_calls" if calls else "stop"),
            model=self._model,
            input_tokens=self._usage.get("input_tokens", 0) + read + written,
            output_tokens=self._usage.get("output_tokens", 0),
            cached_tokens=read,
            cache_write_tokens=written,
            extra={} if is_plain else {"content": blocks},
        )

    def _add_delta(self, index: int, delta: Json) -> str:
        field = _DELTAS.get(str(delta.get("type")))
        if field is None:
            return ""
        if index not in self._blocks:
            raise ValueError
        piece: str = delta[field]
        count = self._measure.add_arguments if field == "partial_json" else self._measure.add_text
        self._pieces.setdefault((index, field), []).append(count(piece))
        return piece if field == "text" else ""

    def _joined(self, index: int) -> Json:
        """A block with all its deltas. Tool arguments stay text, because they may be invalid JSON."""
        block = dict(self._blocks[index])
        for (at, field), pieces in self._pieces.items():
            if at == index and field == "partial_json":
                block["input"] = "".join(pieces) or block.get("input", {})
            elif at == index:
                block[field] = str(block.get(field) or "") + "".join(pieces)
        return block

    def _count(self, usage: _AnthropicUsage | None) -> None:
        """Update the token counts. Later counts replace earlier ones, because they cover the whole message."""
        found = {} if usage is None else msgspec.structs.asdict(usage)
        self._usage |= {name: value for name, value in found.items() if value is not None}


def _call_of(block: Json) -> WireCall:
    return as_shape({"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input") or {}}, WireCall)
