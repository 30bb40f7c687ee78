"""Our messages as those of the library that speaks to providers, and its answers as ours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from clew.errors import InvalidInput, ModelError
from clew.llm.messages import Message, ToolCall, ToolSpec, Usage
from clew.llm.model_catalogue import ModelInfo
from clew.trail.model.breadcrumb import encode_canonical

if TYPE_CHECKING:  # the library takes more than a second to import
    from pydantic_ai import messages as wire
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.usage import RequestUsage

MAX_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class ToolNames:
    """Tool names as providers allow them, and back: letters, digits, `_` and `-`, at most 64. Two tools never share a
    name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=lambda each: (_NOT_IN_NAMES.search(each) is not None, each)):
            plain = _NOT_IN_NAMES.sub("_", name)
            if len(plain) > MAX_NAME or not plain or plain in self._back:
                digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=4).hexdigest()
                plain = f"{plain[: MAX_NAME - 9]}_{digest}"
            self._there[name], self._back[plain] = plain, name

    def there(self, name: str) -> str:
        return self._there[name]

    def back(self, name: str) -> str:
        return self._back.get(name, name)


def names_of(messages: Iterable[Message], tools: Iterable[ToolSpec]) -> ToolNames:
    """The names of all tools that a request speaks of."""
    said = (name for each in messages for name in (each.name, *(call.name for call in each.tool_calls)) if name)
    return ToolNames([*(tool.name for tool in tools), *said])


def tools_out(tools: Iterable[ToolSpec], names: ToolNames) -> list[ToolDefinition]:
    """The tools with their schemas as they are: never made strict, which would change what strangers wrote."""
    from pydantic_ai.tools import ToolDefinition  # see above

    return [
        ToolDefinition(
            name=names.there(each.name),
            description=each.description,
            parameters_json_schema={"type": "object", "properties": {}, **each.schema},
            strict=False,
        )
        for each in tools
    ]


def messages_out(messages: Iterable[Message], names: ToolNames, provider: str) -> list[wire.ModelMessage]:
    """Convert a conversation: all messages between two answers become one request."""
    from pydantic_ai import messages as wire  # see above

    found: list[wire.ModelMessage] = []
    for is_answer, group in groupby(messages, key=lambda each: each.role == "assistant"):
        if is_answer:
            found += [_answer_out(each, names, provider) for each in group]
        else:
            found.append(wire.ModelRequest(parts=[_request_part(each, names) for each in group]))
    return found


def _request_part(message: Message, names: ToolNames) -> wire.ModelRequestPart:
    from pydantic_ai import messages as wire  # see above

    match message.role:
        case "system":
            return wire.SystemPromptPart(message.content)
        case "tool":
            name = names.there(message.name) if message.name else "tool"
            return wire.ToolReturnPart(name, message.content, message.tool_call_id)
        case _:
            return wire.UserPromptPart(message.content)


def _answer_out(message: Message, names: ToolNames, provider: str) -> wire.ModelResponse:
    """An earlier answer: with all that its provider wants back where it goes to the same one."""
    from pydantic_ai import messages as wire  # see above

    kept = _kept_parts(message, provider)
    if kept is not None:
        return kept
    parts: list[wire.ModelResponsePart] = [wire.TextPart(message.content)] if message.content else []
    parts += [wire.ToolCallPart(names.there(each.name), each.arguments, each.id) for each in message.tool_calls]
    return wire.ModelResponse(parts=parts)


def _kept_parts(message: Message, provider: str) -> wire.ModelResponse | None:
    """The parts that came with an answer; None where there are none, or the message says something else by now."""
    from pydantic import ValidationError
    from pydantic_ai import messages as wire  # see above

    if message.extra.get("provider") != provider:
        return None
    try:
        found = wire.ModelMessagesTypeAdapter.validate_python([{"kind": "response", **message.extra.get("answer", {})}])
    except (ValidationError, TypeError):
        return None
    [kept] = found
    if not isinstance(kept, wire.ModelResponse):
        return None
    calls = [each.tool_call_id for each in kept.parts if isinstance(each, wire.ToolCallPart)]
    is_same = calls == [each.id for each in message.tool_calls] and text_of(kept) == message.content
    return kept if is_same else None


def text_of(response: wire.ModelResponse) -> str:
    """The whole text of an answer."""
    from pydantic_ai import messages as wire  # see above

    return storable("".join(each.content for each in response.parts if isinstance(each, wire.TextPart)))


def storable(text: str) -> str:
    """Text without halves of surrogate pairs, which no trail can hold."""
    return text.encode("utf-8", "replace").decode()


def calls_of(response: wire.ModelResponse, names: ToolNames) -> tuple[ToolCall, ...]:
    """The tools that a model wants to have run. Raises ModelError for arguments that are no JSON object."""
    from pydantic_ai import messages as wire  # see above

    found = (each for each in response.parts if isinstance(each, wire.ToolCallPart))
    return tuple(
        ToolCall(id=each.tool_call_id, name=names.back(each.tool_name), arguments=_arguments(each)) for each in found
    )


def _arguments(part: wire.ToolCallPart) -> dict[str, Any]:
    try:
        found = part.args_as_dict(raise_if_invalid=True)
        encode_canonical(found, "arguments")
    except (ValueError, AssertionError, InvalidInput):
        reason = f"the model called {part.tool_name[:MAX_NAME]!r} with arguments that are no JSON object"
        raise ModelError("malformed", reason, retryable=True, hint="Ask again, or allow longer answers") from None
    return found


def extra_of(response: wire.ModelResponse, provider: str) -> dict[str, Any]:
    """The parts of an answer other than text and calls, such as thoughts, which go back with the next request."""
    from pydantic_ai import messages as wire  # see above

    if all(isinstance(each, wire.TextPart | wire.ToolCallPart) for each in response.parts):
        return {}
    [dumped] = wire.ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    kept = {key: dumped[key] for key in ("parts", "provider_name", "canonical_system", "model_name") if key in dumped}
    return {"provider": provider, "answer": kept}


def usage_of(usage: RequestUsage, info: ModelInfo) -> Usage:
    """Return the usage that the provider reports, with its cost by the catalogue."""
    told: Mapping[str, int] = {
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
        "cached_tokens": usage.cache_read_tokens or 0,
    }
    return Usage(**told, cost=info.cost_of(**told, kept_tokens=usage.cache_write_tokens or 0))
