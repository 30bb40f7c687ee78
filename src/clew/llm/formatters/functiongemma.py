"""FunctionGemma's control tokens: declarations, calls and responses in its own notation, with texts between `<escape>`
tokens.

The notation cannot escape a control token inside a text, so there its `<` becomes `‹`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.llm.formatters.parsed_answer import MAX_DEPTH, ParsedAnswer, malformed
from clew.llm.messages import Message, ToolSpec

TRIGGER = "You are a model that can do function calling with the following functions"
ESCAPE = "<escape>"
CALL, END_CALL = "<start_function_call>", "<end_function_call>"
DECLARATION, END_DECLARATION = "<start_function_declaration>", "<end_function_declaration>"
RESPONSE, END_RESPONSE = "<start_function_response>", "<end_function_response>"
END_TURN = "<end_of_turn>"

_TOKEN = re.compile(r"<(?=(?:escape|(?:start|end)_function_(?:call|declaration|response)|(?:start|end)_of_turn)>)")
_HEAD = re.compile(r"\s*call:([^\s{}<>]{1,200})\s*(?=\{)")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*")
_KEY = re.compile(r"\s*([^\s:{}\[\],<>][^:{}\[\],<>]*?)\s*:")
_BARE = re.compile(r"[^,{}\[\]<]*")
MAX_NODES = 500
"""The maximum number of parts of a schema that are written."""
_TYPES = ("string", "number", "integer", "boolean", "array", "object")


class FunctionGemma:
    """See `Formatter`."""

    def write(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
        system = [_plain(each.content) for each in messages if each.role == "system"]
        declared = "".join(f"{DECLARATION}{_declaration(each)}{END_DECLARATION}" for each in tools)
        head = "\n".join([*([TRIGGER] if tools else []), *system]) + declared
        rest = [_turn(each) for each in messages if each.role != "system"]
        return [*([Message(role="system", content=head)] if head else []), *rest]

    def read(self, text: str) -> ParsedAnswer:
        spoken, at = _before(text, END_TURN, RESPONSE), text.find(CALL)
        if not 0 <= at < len(spoken):
            return ParsedAnswer(content=spoken)
        return ParsedAnswer(content=text[:at], calls=tuple(_calls(text[at + len(CALL) :])))

    def safe_length(self, text: str) -> int:
        at = text.rfind("<", max(0, len(text) - len(DECLARATION)))
        ends = [found for token in (CALL, END_TURN, RESPONSE) if (found := text.find(token)) >= 0]
        is_begun = at >= 0 and any(token.startswith(text[at:]) for token in (CALL, END_TURN, RESPONSE))
        return min([*ends, at if is_begun else len(text)])


def _turn(message: Message) -> Message:
    if message.role == "tool":
        content = f"{RESPONSE}response:{message.name or 'tool'}{_result(message.content)}{END_RESPONSE}"
        return Message(role="user", content=content)
    calls = "".join(f"{CALL}call:{each.name}{_object(each.arguments)}{END_CALL}" for each in message.tool_calls)
    return Message(role=message.role, content=_plain(message.content) + calls)


def _declaration(tool: ToolSpec) -> str:
    parameters = _SchemaWriter(tool.schema).write(tool.schema, 0)
    return f"declaration:{tool.name}{{description:{_text(tool.description)},parameters:{parameters}}}"


class _SchemaWriter:
    """Writes a JSON Schema in the notation of FunctionGemma. Features that it cannot express are left out, and
    references are resolved. A recursive or very large schema is truncated."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_NODES

    def write(self, schema: Any, depth: int) -> str:
        self._left -= 1
        found = _resolve(schema, self._root)
        parts: dict[str, str] = {}
        if isinstance(found.get("description"), str) and depth:
            parts["description"] = _text(found["description"])
        if isinstance(found.get("enum"), list):
            parts["enum"] = _value(found["enum"])
        if depth < MAX_DEPTH and self._left > 0:
            parts |= self._inner(found, depth + 1)
        parts["type"] = _text(_kind(found, is_whole=depth == 0).upper())
        return f"{{{','.join(f'{name}:{value}' for name, value in parts.items())}}}"

    def _inner(self, schema: Mapping[str, Any], depth: int) -> dict[str, str]:
        parts: dict[str, str] = {}
        if "items" in schema:
            parts["items"] = self.write(schema["items"], depth)
        if isinstance(schema.get("properties"), dict):
            inner = (f"{_key(name)}:{self.write(each, depth)}" for name, each in sorted(schema["properties"].items()))
            parts["properties"] = f"{{{','.join(inner)}}}"
        if isinstance(schema.get("required"), list) and schema["required"]:
            parts["required"] = _value(schema["required"])
        return parts


def _kind(schema: Mapping[str, Any], *, is_whole: bool) -> str:
    kind = schema.get("type")
    kind = next((each for each in kind if each != "null"), None) if isinstance(kind, list) else kind
    if kind in _TYPES:
        return str(kind)
    return "object" if is_whole or "properties" in schema else "string"


def _resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the references and the alternatives of a schema. For alternatives, the first that is not null is used."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = root
            for step in reference[2:].split("/"):
                target = target.get(step, {}) if isinstance(target, dict) else {}
            schema = {**{key: value for key, value in schema.items() if key != "$ref"}, **target}
            continue
        choices = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(choices, list) or "type" in schema:
            return schema
        first = next((each for each in choices if isinstance(each, dict) and each.get("type") != "null"), {})
        schema = {**{key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}, **first}
    return {}


def _result(content: str) -> str:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = content
    return _object(found if isinstance(found, dict) else {"value": found})


def _object(value: Mapping[str, Any]) -> str:
    return f"{{{','.join(f'{_key(key)}:{_value(each)}' for key, each in sorted(value.items()))}}}"


def _value(value: Any) -> str:
    match value:
        case str():
            return _text(value)
        case dict():
            return _object(value)
        case list() | tuple():
            return f"[{','.join(map(_value, value))}]"
        case _:
            return json.dumps(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return f"{ESCAPE}{_plain(text)}{ESCAPE}"


def _plain(text: str) -> str:
    """A text in which nothing is a control token."""
    return _TOKEN.sub("‹", text)


def _before(text: str, *tokens: str) -> str:
    return text[: min([len(text), *(at for token in tokens if (at := text.find(token)) >= 0)])]


def _calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parse consecutive calls. Text after the last call is invented by the model and ignored. `text` starts after the
    mark of the first call."""
    at = 0
    while True:
        head = _HEAD.match(text, at)
        if head is None:
            raise malformed("it does not begin with call:NAME{")
        value, at = _read_object(text, head.end(), 0)
        yield head[1], value
        at = _skip(text, at)
        at = _skip(text, at + len(END_CALL)) if text.startswith(END_CALL, at) else at
        if not text.startswith(CALL, at):
            return
        at += len(CALL)


def _read_object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """The object whose opening brace is at `at`, and the position of its end."""
    found: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        key, at = _read_key(text, at)
        found[key], at = _read_value(text, at, depth)
        at = _next(text, at, "}")
    return found, at + 1


def _read_list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        value, at = _read_value(text, at, depth)
        found.append(value)
        at = _next(text, at, "]")
    return found, at + 1


def _read_key(text: str, at: int) -> tuple[str, int]:
    if text.startswith(ESCAPE, at):
        key, at = _read_text(text, at)
        at = _skip(text, at)
        if not text.startswith(":", at):
            raise malformed("a name is not followed by a colon")
        return key, at + 1
    bare = _KEY.match(text, at)
    if bare is None:
        raise malformed("a name is missing")
    return bare[1].strip("\"'"), bare.end()


def _read_value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth >= MAX_DEPTH:
        raise malformed(f"it is nested deeper than {MAX_DEPTH} levels")
    at = _skip(text, at)
    if text.startswith(ESCAPE, at):
        return _read_text(text, at)
    if text.startswith("{", at):
        return _read_object(text, at, depth + 1)
    if text.startswith("[", at):
        return _read_list(text, at, depth + 1)
    bare = _BARE.match(text, at)
    word = bare[0].strip() if bare is not None else ""
    if bare is None or not word:
        raise malformed("a value is missing")
    return _bare_value(word), bare.end()


def _bare_value(word: str) -> Any:
    """A number, true, false or null; anything else is a text that the model forgot to escape."""
    try:
        return json.loads(word, parse_constant=str)
    except ValueError:
        return word


def _read_text(text: str, at: int) -> tuple[str, int]:
    begin = at + len(ESCAPE)
    end = text.find(ESCAPE, begin)
    if end < 0:
        raise malformed(f"a string has no closing {ESCAPE}")
    return text[begin:end], end + len(ESCAPE)


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1)
    if not text.startswith(closing, at):
        raise malformed(f"it ends without {closing}")
    return at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
