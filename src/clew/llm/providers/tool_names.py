"""Tool names as providers allow them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from clew.llm.messages import Message, ToolSpec

MAX_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class ToolNames:
    """Maps tool names to names that providers allow, and back: letters, digits, `_` and `-`, at most 64 characters. The
    mapping is unique."""

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
    """The names of all tools that a request mentions."""
    said = (name for each in messages for name in (each.name, *(call.name for call in each.tool_calls)) if name)
    return ToolNames([*(tool.name for tool in tools), *said])
