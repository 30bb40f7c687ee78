"""The interface of formatters, and their registry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

import msgspec

from clew.errors import ConfigError
from clew.llm.formatters.functiongemma import FunctionGemma
from clew.llm.formatters.json_text import JsonText
from clew.llm.formatters.parsed_answer import ParsedAnswer
from clew.llm.messages import Message, ToolSpec

__all__ = ["Formatter", "ParsedAnswer", "find_formatter", "join_turns", "register_formatter"]


class Formatter(Protocol):
    """Turns tools and calls into text for one family of models, and their text back into calls. Stateless."""

    def write(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """The conversation with tools, calls and results written as text. Text in messages and results cannot be
        mistaken for a call or a declaration."""
        ...

    def read(self, text: str) -> ParsedAnswer:
        """Parse an answer. `read` is the inverse of `write`: it returns the same calls that were written. Raises
        ModelError of the kind `malformed` for a call that cannot be parsed."""
        ...

    def safe_length(self, text: str) -> int:
        """Return the length of an unfinished answer that is certainly text, not the start of a call."""
        ...


_FORMATTERS: dict[str, Formatter] = {"functiongemma": FunctionGemma(), "json": JsonText()}


def find_formatter(name: str) -> Formatter | None:
    """The formatter of a name; None for models with tool calls of their own. Raises ConfigError."""
    if name == "native":
        return None
    if name not in _FORMATTERS:
        raise ConfigError(f"there is no formatter {name!r}", choices=("native", *_FORMATTERS))
    return _FORMATTERS[name]


def register_formatter(name: str, formatter: Formatter) -> None:
    """Add a formatter for the models whose catalogue entry names it. Raises ConfigError if the name is taken."""
    if name == "native" or _FORMATTERS.get(name, formatter) is not formatter:
        raise ConfigError(f"there is a formatter {name!r} already")
    _FORMATTERS[name] = formatter


def join_turns(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Join consecutive messages of the same role, because the templates of small models expect alternating turns."""
    joined: list[Message] = []
    for role, group in groupby(messages, key=lambda each: each.role):
        texts = [each.content for each in group if each.content]
        joined.append(msgspec.structs.replace(_EMPTY, role=role, content="\n\n".join(texts)))
    return tuple(each for each in joined if each.content)


_EMPTY: Any = Message(role="user")
