"""OpenAI's chat completions, which most other servers speak too."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

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
    object_schema,
)
from clew.llm.requests import FinishReason

_FINISHES: dict[str, FinishReason] = {"length": "length", "content_filter": "refused"}
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields that servers put thoughts in. Thoughts of a tool call are sent back with the call, because some servers check
them."""


class ChatCompletions:
    """See `WireFormat`."""

    path = "chat/completions"
    models_path = "models"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: WireRequest) -> Json:
        asked = request.asked
        body: Json = {
            "model": request.model,
            "messages": [_message_out(each, request) for each in asked.messages],
            "stream": request.is_streamed,
        }
        if request.is_streamed:
            body["stream_options"] = {"include_usage": True}
        if asked.max_tokens is not None:
            body["max_tokens"] = asked.max_tokens
        if asked.temperature is not None:
            body["temperature"] = asked.temperature
        if asked.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": request.names.there(each.name),
                        "description": each.description,
                        "parameters": object_schema(each.schema),
                    },
                }
                for each in asked.tools
            ]
            body["tool_choice"] = "auto"
        if asked.output_schema is not None:
            wanted = {"name": "answer", "schema": asked.output_schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return body

    def read(self, data: Any) -> ProviderReply:
        reader = ChatReader()
        reader.add(data)
        return reader.finish()

    def reader(self) -> ChatReader:
        return ChatReader()


def _message_out(message: Message, request: WireRequest) -> Json:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    out: Json = {"role": message.role, "content": message.content}
    if message.tool_calls:
        out["content"] = message.content or None
        kept = request.kept(message).get("thoughts")
        out |= {name: kept[name] for name in _THOUGHTS if name in kept} if isinstance(kept, dict) else {}
        out["tool_calls"] = [
            {
                "id": each.id,
                "type": "function",
                "function": {"name": request.names.there(each.name), "arguments": dump_arguments(each.arguments)},
            }
            for each in message.tool_calls
        ]
    return out


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | Json | None = None


class _ToolCall(msgspec.Struct):
    function: _Function
    index: int | None = None
    id: str | None = None


class _ChatMessage(msgspec.Struct):
    """A message, or the delta of a message. Servers of reasoning models may send the content as a list of parts."""

    content: str | list[Json] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Json] | None = None


class _Choice(msgspec.Struct):
    message: _ChatMessage | None = None
    delta: _ChatMessage | None = None
    finish_reason: str | None = None
    error: Any = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _ChatUsage | None = None


class ChatReader:
    """Reads chunks of a stream; a whole completion is a stream of one chunk."""

    def __init__(self) -> None:
        self._measure = Measure()
        self._text: list[str] = []
        self._calls: list[WireCall] = []
        self._by_index: dict[int, int] = {}
        self._pieces: dict[int, list[str]] = {}
        self._thoughts: Json = {}
        self._finish: str | None = None
        self._usage = _ChatUsage()
        self._model = ""

    def add(self, data: Any) -> str:
        chunk = as_shape(data, _Completion)
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        if choice.error or choice.finish_reason == "error":
            raise ProviderFailure(0, {"error": choice.error})
        self._finish = choice.finish_reason or self._finish
        message = choice.message or choice.delta
        return self._add_message(message) if message is not None else ""

    def finish(self) -> ProviderReply:
        if self._finish is None:
            raise ValueError
        for at, call in enumerate(self._calls):
            if at in self._pieces:
                call.arguments = "".join(self._pieces[at]) or "{}"
        details = self._usage.prompt_tokens_details or _PromptDetails()
        return ProviderReply(
            text="".join(self._text),
            calls=self._calls,
            finish=_FINISHES.get(self._finish) or ("tool_calls" if self._calls else "stop"),
            model=self._model,
            input_tokens=self._usage.prompt_tokens or 0,
            output_tokens=self._usage.completion_tokens or 0,
            cached_tokens=details.cached_tokens or 0,
            cache_write_tokens=details.cache_write_tokens or 0,
            extra={"thoughts": self._thoughts} if self._thoughts and self._calls else {},
        )

    def _add_message(self, message: _ChatMessage) -> str:
        text = self._measure.add_text(_text_of(message.content) or message.refusal or "")
        if text:
            self._text.append(text)
        for name in ("reasoning_content", "reasoning"):
            if thought := getattr(message, name):
                self._thoughts[name] = self._thoughts.get(name, "") + self._measure.add_text(thought)
        if message.reasoning_details:
            self._measure.add_text(str(message.reasoning_details))
            self._thoughts.setdefault("reasoning_details", []).extend(message.reasoning_details)
        for part in message.tool_calls or ():
            self._add_call(part)
        return text

    def _add_call(self, part: _ToolCall) -> None:
        """Add a call or a fragment of a call. A fragment with a new id starts another call, because some servers give
        all calls the index 0."""
        index = part.index if part.index is not None else len(self._calls)
        at = self._by_index.get(index)
        if at is None or (part.id and part.id != self._calls[at].id and part.function.name):
            at = self._by_index[index] = len(self._calls)
            self._calls.append(WireCall(id=part.id or f"call_{uuid4().hex[:16]}", name="", arguments={}))
        call = self._calls[at]
        call.name = call.name or part.function.name or ""
        given = part.function.arguments
        if isinstance(given, dict):
            self._measure.add_arguments(dump_arguments(given))
            call.arguments = given
        elif given is not None:
            self._pieces.setdefault(at, []).append(self._measure.add_arguments(given))


def _text_of(content: str | list[Json] | None) -> str:
    if isinstance(content, list):
        return "".join(str(each.get("text") or "") for each in content if each.get("type") == "text")
    return content or ""
