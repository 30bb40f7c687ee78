"""Fixes of front matter: replace a value, rename a key, or remove a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.problems import Fix
from clew.skills.files.document import MarkdownDocument
from clew.skills.files.front_matter import FieldPlace

_BARE = lazy_pattern(r"[A-Za-z][A-Za-z0-9._/-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def written(value: str) -> str:
    """Write text as YAML text: without quotes for a plain word, else in quotes."""
    is_bare = _BARE.fullmatch(value) is not None and value.casefold() not in _WORDS
    return value if is_bare else json.dumps(value, ensure_ascii=False)


def written_list(values: Iterable[str]) -> str:
    return f"[{', '.join(written(each) for each in values)}]"


def replace_value(document: MarkdownDocument, path: str, text: str, says: str) -> Fix | None:
    """Replace a value by `text`. None if the place of the value is unknown."""
    place = document.values.get(path)
    return _replace(document, place, text, says) if place is not None else None


def rename_key(document: MarkdownDocument, path: str, name: str, says: str) -> Fix | None:
    """Rename a key. None if its place is unknown."""
    place = document.keys.get(path)
    return _replace(document, place, name, says) if place is not None else None


def remove_key(document: MarkdownDocument, key: str, says: str) -> Fix | None:
    """Remove a top-level key with its value. None if it shares a line with another key."""
    place = document.keys.get(key)
    if place is None or place.column != 1:
        return None
    last = max(document.values[key].last, place.line) if key in document.values else place.line
    return Fix(first=place.line, last=last, says=says, was=document.head[place.line - 1 : last])


def quote_value(document: MarkdownDocument, path: str) -> Fix | None:
    """Put quotes around a value, so that YAML reads text. None for a value of several lines."""
    place = document.values.get(path)
    if place is None or place.last != place.line or place.end <= place.column:
        return None
    raw = document.head[place.line - 1][place.column - 1 : place.end - 1]
    return _replace(document, place, json.dumps(raw, ensure_ascii=False), "put quotes around the value")


def without_item(document: MarkdownDocument, path: str, kept: Iterable[str]) -> Fix | None:
    """Remove the item at `path` from a list; the items in `kept` stay."""
    place = document.values.get(path)
    whole = document.values.get(path.rpartition("[")[0])
    if place is None or whole is None:
        return None
    line = document.head[place.line - 1]
    says = "remove it"
    if re.fullmatch(r"\s*-\s+", line[: place.column - 1]) and not line[place.end - 1 :].strip():
        return Fix(first=place.line, last=place.last, says=says, was=document.head[place.line - 1 : place.last])
    is_flow = document.head[whole.line - 1][whole.column - 1] == "["
    return _replace(document, whole, written_list(kept), says) if is_flow else None


def _replace(document: MarkdownDocument, place: FieldPlace, text: str, says: str) -> Fix | None:
    if place.last > len(document.head):
        return None
    before = document.head[place.line - 1][: place.column - 1]
    behind = document.head[place.last - 1][place.end - 1 :]
    was = document.head[place.line - 1 : place.last]
    return Fix(first=place.line, last=place.last, text=(f"{before}{text}{behind}",), says=says, was=was)
