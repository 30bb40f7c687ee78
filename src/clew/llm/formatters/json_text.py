"""Calls as JSON in the text of the answer, for any model that can follow an example."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from clew.llm.formatters.parsed_answer import MAX_DEPTH, ParsedAnswer, malformed
from clew.llm.messages import Message, ToolSpec

_INTRODUCTION = """\
You can use tools. To use one, end your answer with one JSON object on a line of its own, and write nothing after it:
{"tool": "NAME", "arguments": {…}}
For several at once write a list of such objects. You will be given the results. Without such an object your answer
goes to the user. The tools, with the JSON Schema of their arguments:
"""
_BEGIN = re.compile(r"^[ \t]*(?:```(?:json)?[ \t]*\n[ \t]*)?(?=[\[{])", re.MULTILINE)
_MAYBE = re.compile(r"^[ \t]*(?:`{1,3}|```j\w{0,3}|```(?:json)?[ \t]*\n[ \t]*)?\Z", re.MULTILINE)
_FENCE = re.compile(r"\s*(?:```\s*)?")
MAX_TRIES = 32
"""The maximum number of places in an answer that are checked for a call."""
_FIELDS = {"tool", "arguments"}


class JsonText:
    """See `Formatter`."""

    def write(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
        described = [{"tool": each.name, "description": each.description, "schema": each.schema} for each in tools]
        listed = _INTRODUCTION + "\n".join(map(_dump, described)) if tools else ""
        head = "\n\n".join([*(each.content for each in messages if each.role == "system"), listed]).strip()
        rest = [_turn(each) for each in messages if each.role != "system"]
        return [*([Message(role="system", content=head)] if head else []), *rest]

    def read(self, text: str) -> ParsedAnswer:
        for begin in islice(_BEGIN.finditer(text), MAX_TRIES):
            calls = _calls(text, begin.end())
            if calls:
                return ParsedAnswer(content=text[: begin.start()], calls=calls)
        return ParsedAnswer(content=text)

    def safe_length(self, text: str) -> int:
        begin = _BEGIN.search(text) or _MAYBE.search(text)
        return begin.start() if begin is not None else len(text)


def _turn(message: Message) -> Message:
    if message.role == "tool":
        return Message(role="user", content=_dump({"result_of": message.name, "result": message.content}))
    calls = [{"tool": each.name, "arguments": each.arguments} for each in message.tool_calls]
    written = _dump(calls[0] if len(calls) == 1 else calls) if calls else ""
    return Message(role=message.role, content="\n".join(each for each in (message.content, written) if each))


def _calls(text: str, at: int) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The calls in the JSON at a position; empty if the JSON is not a call. Raises ModelError for broken JSON that
    begins like a call."""
    try:
        found, end = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, at)
    except (ValueError, RecursionError):
        if re.match(r'(?:\[\s*)?\{\s*"tool"\s*:', text[at : at + 200]):
            raise malformed("its JSON is broken or cut off") from None
        return ()
    entries = found if isinstance(found, list) else [found]
    if not entries or not all(_is_call(each) for each in entries) or _FENCE.fullmatch(text, end) is None:
        return ()
    if _is_deeper(entries, MAX_DEPTH):
        raise malformed(f"it is nested deeper than {MAX_DEPTH} levels")
    return tuple((each["tool"], each.get("arguments", {})) for each in entries)


def _is_call(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str) or not value["tool"]:
        return False
    return value.keys() <= _FIELDS and isinstance(value.get("arguments", {}), dict)


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
