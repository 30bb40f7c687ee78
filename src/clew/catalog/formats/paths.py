"""Paths of the nodes of a document: distinct, valid in a route, and readable."""

from __future__ import annotations

import hashlib
import unicodedata

from clew.catalog.route import MAX_ROUTE, join_path
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.tags import path_part

MAX_PATH = MAX_ROUTE - 100
"""The maximum length of a path. It leaves room for the longest domain name, `://resources/` and a number that
distinguishes two paths."""

MAX_SLUG = 120
_DIGEST = 16
_BROKEN_ESCAPE = lazy_pattern(r"%[0-9A-F]?$")


class NodePaths:
    """Gives every node of one document a path of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def claim(self, *parts: str) -> str:
        """Join the parts, which are paths themselves, into a unique path. The path is shortened if it is too long for a
        route, and gets a number from 2 on if it was already claimed."""
        path = shorten(join_path(*parts))
        free, number = path, self._numbers.get(path, 1)
        while free in self._taken:
            number += 1
            free = f"{path}-{number}"
        self._numbers[path] = number
        self._taken.add(free)
        return free


def document_path(base_path: str, id: str) -> str:
    """The path of a document: its id, part by part, below the base path."""
    return join_path(base_path, *(path_part(part) for part in id.split("/") if part.strip())) or "_"


def slug(name: str) -> str:
    """The words of a heading in lower case, joined by `-`, as one part of a path of at most MAX_SLUG characters."""
    normal = unicodedata.normalize("NFC", name[:MAX_SLUG].lower())
    words = "".join(character if _is_of_word(character) else " " for character in normal).split()
    text = "-".join(words)
    while len(encoded := path_part(text)) > MAX_SLUG:
        text = text[:-1].rstrip("-")
    return encoded


def shorten(path: str) -> str:
    """The path itself, or its beginning and a digest of the whole when it is over MAX_PATH."""
    if len(path) <= MAX_PATH:
        return path
    digest = hashlib.sha256(path.encode()).hexdigest()[:_DIGEST]
    head = _BROKEN_ESCAPE.sub("", path[: MAX_PATH - _DIGEST - 1])
    return f"{head.rstrip('/')}~{digest}"


def _is_of_word(character: str) -> bool:
    """Whether a character belongs to a word. Combining marks do, since words of many scripts need them."""
    return character.isalnum() or unicodedata.category(character).startswith("M")
