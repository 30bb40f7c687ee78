"""Names of tools in a text: languages, frameworks, services, programs (`known_tools.txt`). A question that names a tool
which no skill mentions is about work that these skills do not cover."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

Name = tuple[str, ...]
"""The words of a name, in lower case."""

_WORD = re.compile(r"\.?[^\W_][\w.+#/'-]*")
_PART = re.compile(r"[^/-]+")
_ENDS_SENTENCE = frozenset(".!?:\n")


class _NameTable(msgspec.Struct, frozen=True):
    """The names by their first word, the longest first, and those that are common words too."""

    by_first: Mapping[str, Sequence[Name]]
    common: frozenset[Name]


def find_tools(text: str, *, is_lenient: bool = False) -> frozenset[str]:
    """Return the tools that a text names, in lower case. If names overlap, the first and longest is used. A common
    word counts only if it is written as a name; with `is_lenient` it always counts."""
    listed, text = _read(), text.replace("’", "'")
    found = list(_split(text, listed))
    words, names, at = [word for _, word in found], set(), 0
    while at < len(words):
        starting = listed.by_first.get(words[at], ())
        name = next((each for each in starting if tuple(words[at : at + len(each)]) == each), ())
        if name and (is_lenient or name not in listed.common or _is_proper(text, found[at][0])):
            names.add(" ".join(name))
        at += len(name) or 1
    return frozenset(names)


def _split(text: str, listed: _NameTable) -> Iterator[tuple[int, str]]:
    """The words and their positions. Words joined by hyphens or slashes are split unless a name is written so."""
    for match in _WORD.finditer(text):
        whole = match[0].rstrip(".'/-").lower()
        if whole in listed.by_first:
            yield match.start(), whole
        else:
            yield from ((match.start() + part.start(), _bare(part[0])) for part in _PART.finditer(match[0]))


def _bare(word: str) -> str:
    return word.rstrip(".'").removesuffix("'s").lower()


def _is_proper(text: str, start: int) -> bool:
    """Whether a word is capitalised, and not only because it begins a sentence."""
    before = text[:start].rstrip(" \t\"'(*_`")
    return text[start].isupper() and bool(before) and before[-1] not in _ENDS_SENTENCE


@lru_cache(maxsize=1)
def _read() -> _NameTable:
    text = files("clew.skills.discovery").joinpath("known_tools.txt").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    written = [name.split() for name in re.split(r",|\n\n", lines) if name.strip()]
    names = [tuple(word.lower() for word in name) for name in written]
    by_first: dict[str, list[Name]] = {}
    for name in sorted(names, key=len, reverse=True):
        by_first.setdefault(name[0], []).append(name)
    common = frozenset(name for name, words in zip(names, written, strict=True) if words[0][0].isupper())
    return _NameTable(by_first, common)
