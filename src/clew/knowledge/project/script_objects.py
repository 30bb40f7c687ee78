"""Reads the literal values of an object in JavaScript without running it. What is computed is passed over."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LEAVES, MAX_DEPTH = 5_000, 20
_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\$]|\\.)*+`)"
    r"|(?P<word>[\w$.-]+)|(?P<mark>[{}\[\]:,()])|.",
    re.DOTALL,
)


class Leaf(NamedTuple):
    """A literal value: the keys that lead to it, and where in the text the last of them stands. The items of an array
    are one value, with commas."""

    path: tuple[str, ...]
    value: str
    position: int


def read_object(text: str, start: int) -> list[Leaf]:
    """The literal values of the object whose brace is at `start`, in their order."""
    return _Reader(text, start).read()


class _Reader:
    """Goes over the marks of an object once. `_said` are the words since the last mark, `_key` what they are for."""

    def __init__(self, text: str, start: int) -> None:
        self._tokens = (found for found in _TOKEN.finditer(text, start) if not _is_space(found[0]))
        self._leaves: list[Leaf] = []
        self._keys: list[str] = []
        self._opened: list[str] = []
        self._begin()

    def read(self) -> list[Leaf]:
        for token in self._tokens:
            mark = token["mark"] or ""
            if self._opened[-1:] == ["["]:
                self._take_item(token, mark)
            elif mark:
                self._take_mark(token, mark)
            else:
                self._take_word(token)
            if not self._opened or len(self._opened) > MAX_DEPTH or len(self._leaves) >= MAX_LEAVES:
                break
        return self._leaves

    def _begin(self) -> None:
        self._key: tuple[str, int] | None = None
        self._said: list[str] = []
        self._is_plain = True

    def _take_item(self, token: re.Match[str], mark: str) -> None:
        if mark == "]":
            self._opened.pop()
        elif mark == "[":
            self._opened.append(mark)
        elif mark != ",":
            self._take_word(token)

    def _take_mark(self, token: re.Match[str], mark: str) -> None:
        if mark == "{":
            self._opened.append(mark)
            self._keys.append(self._key[0] if self._key else "")
            self._begin()
        elif mark == "[":
            self._opened.append(mark)
        elif mark == ":" and self._key is None:
            self._key, self._said = (self._said[-1] if self._said else "", token.start()), []
        elif mark in (",", "}"):
            self._end_value(mark)
        else:
            self._is_plain = False

    def _end_value(self, mark: str) -> None:
        if self._key and self._said and self._is_plain:
            path = (*self._keys[1:], self._key[0])
            self._leaves.append(Leaf(path, ", ".join(self._said), self._key[1]))
        self._begin()
        if mark == "}":
            self._opened.pop()
            self._keys.pop()

    def _take_word(self, token: re.Match[str]) -> None:
        if token["string"] or token["word"]:
            self._said.append(token[0].strip("\"'`"))
        else:
            self._is_plain = False


def _is_space(text: str) -> bool:
    return not text.strip() or text.startswith(("//", "/*"))
