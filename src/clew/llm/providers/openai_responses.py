"""OpenAI's own protocol, the Responses API. Requests tell OpenAI to store nothing, because the trail stores the
conversations."""

from __future__ import annotations

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

_TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT_EVENTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses:
    """See `WireFormat`."""

    path = "responses"
    models_path = "models"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: WireRequest) -> Json:
        asked = request.asked
        body: Json = {
            "model": request.model,
            "input": [item for each in asked.messages for item in _items_out(each, request)],
            "stream": request.is_streamed,
            "store": False,
        }
        if "thinking" in request.info.capabilities:
            body["include"] = ["reasoning.encrypted_content"]
        if asked.max_tokens is not None:
            body["max_output_tokens"] = asked.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if asked.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": request.names.there(each.name),
                    "description": each.description,
                    "parameters": object_schema(each.schema),
                    "strict": False,
                }
                for each in asked.tools
            ]
            body["tool_choice"] = "auto"
        if asked.output_schema is not None:
            wanted = {"type": "json_schema", "name": "answer", "schema": asked.output_schema, "strict": False}
            body["text"] = {"format": wanted}
        return body

    def read(self, data: Any) -> ProviderReply:
        reader = ResponsesReader()
        reader.end(data)
        return reader.finish()

    def reader(self) -> ResponsesReader:
        return ResponsesReader()


def _items_out(message: Message, request: WireRequest) -> list[Json]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}]
    calls = {
        each.id: {
            "type": "function_call",
            "call_id": each.id,
            "name": request.names.there(each.name),
            "arguments": dump_arguments(each.arguments),
        }
        for each in message.tool_calls
    }
    kept = request.kept(message).get("items")
    if isinstance(kept, list) and all(isinstance(each, dict) for each in kept):
        ids = [str(each.get("call_id")) for each in kept if each.get("type") == "function_call"]
        if is_same(message, "".join(map(_item_text, kept)), ids):
            return [calls[each["call_id"]] if each.get("type") == "function_call" else each for each in kept]
    text = [{"role": message.role, "content": message.content}] if message.content or not calls else []
    return [*text, *calls.values()]


def _item_text(item: Json) -> str:
    """The text of an item, including refusals; empty for items that are not messages."""
    content = item.get("content") if item.get("type") == "message" else ()
    parts = [each for each in content or () if isinstance(each, dict)]
    return "".join(str(each.get("text") or each.get("refusal") or "") for each in parts)


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _ResponsesUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str
    output: list[Json]
    model: str = ""
    usage: _ResponsesUsage | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _ResponsesEvent(msgspec.Struct):
    type: str
    delta: Any = None
    item: Json | None = None
    response: Json | None = None


class ResponsesReader:
    """Reads events of a stream. The last event contains the whole response. If its output is empty, the items of
    earlier events are used instead."""

    def __init__(self) -> None:
        self._measure = Measure()
        self._items: list[Json] = []
        self._response: _Response | None = None

    def add(self, data: Any) -> str:
        event = as_shape(data, _ResponsesEvent)
        if event.type == "error":
            raise ProviderFailure(0, data)
        if event.type in _TEXT_EVENTS:
            return self._measure.add_text(as_shape(event.delta, str))
        if event.type in _THOUGHT_EVENTS:
            self._measure.add_text(as_shape(event.delta, str))
        elif event.type == "response.function_call_arguments.delta":
            self._measure.add_arguments(as_shape(event.delta, str))
        elif event.type == "response.output_item.done" and event.item is not None:
            self._items.append(event.item)
        elif event.type in _ENDS:
            self.end(event.response)
        return ""

    def end(self, data: Any) -> None:
        """Process the whole response. Raises ProviderFailure for a failed response."""
        response = as_shape(data, _Response)
        if response.status == "failed" or response.error:
            raise ProviderFailure(0, data)
        self._response = response

    def finish(self) -> ProviderReply:
        if self._response is None:
            raise ValueError
        response, items = self._response, self._response.output or self._items
        measure = Measure()
        calls = [_call_of(each) for each in items if each.get("type") == "function_call"]
        for call in calls:
            measure.add_arguments(str(call.arguments))
        usage = response.usage or _ResponsesUsage()
        details = usage.input_tokens_details or _InputDetails()
        return ProviderReply(
            text=measure.add_text("".join(map(_item_text, items))),
            calls=calls,
            finish=_finish(response, items, calls),
            model=response.model,
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            cached_tokens=details.cached_tokens or 0,
            cache_write_tokens=details.cache_write_tokens or 0,
            extra=_extra(items),
        )


def _call_of(item: Json) -> WireCall:
    given = {"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments") or "{}"}
    return as_shape(given, WireCall)


def _finish(response: _Response, items: list[Json], calls: list[WireCall]) -> FinishReason:
    if response.status == "incomplete":
        reason = response.incomplete_details.reason if response.incomplete_details else None
        return "refused" if reason == "content_filter" else "length"
    parts = [part for each in items if each.get("type") == "message" for part in each.get("content") or ()]
    if any(isinstance(each, dict) and each.get("type") == "refusal" for each in parts):
        return "refused"
    return "tool_calls" if calls else "stop"


def _extra(items: list[Json]) -> Json:
    """The items to send back with the next request, if the answer has thoughts. Thoughts are encrypted, because OpenAI
    stores nothing. Empty if no message or call follows the last thought, because the API refuses such items."""
    kept = [each for each in items if each.get("type") != "reasoning" or each.get("encrypted_content")]
    kinds = [each.get("type") for each in kept]
    thoughts = [at for at, kind in enumerate(kinds) if kind == "reasoning"]
    if not thoughts or not {"message", "function_call"}.intersection(kinds[thoughts[-1] + 1 :]):
        return {}
    return {"items": kept}
