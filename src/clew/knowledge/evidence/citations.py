"""Citations: the text that names a source and leads a reader back to it."""

from __future__ import annotations

import re

from clew.catalog.text import inline
from clew.fences import is_unseen
from clew.knowledge.lines import cut
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node

COMMIT_PREFIX = "commit:"
"""Prefix of the ids of commits."""
MAX_ADDRESS = 5_000
"""Longer paths and urls are cut: no machine resolves them."""
_SHORT_HASH = 10
_MARKUP = re.compile(r"\A(?:[#+-](?=#*\s)|\d(?=\d*[.)]\s))|[`<>*\\]|[^\S ]|\A | \Z|(?<= ) |(?<=\])\(")


def name_of(node: Node) -> str:
    """Domain and place of a node on one line without markup, such as `Code: src/a.py:3-9`."""
    match node.domain:
        case NodeDomain.CODE:
            return f"Code: {place_of(node)}"
        case NodeDomain.HISTORY:
            return f"History: {inline(node.name)} ({node.at:%Y-%m-%d})"
        case _:
            return f"Academic: {inline(node.name)}" + (f" ({on_one_line(node.url)})" if node.url else "")


def place_of(node: Node) -> str:
    """Path, lines and content hash, such as `src/a.py:3-9@0f3a9c2b11`, as far as they are known."""
    place = on_one_line(node.path) if node.path else inline(node.name)
    if node.line_start is not None:
        last = node.line_end if node.line_end is not None else node.line_start
        place += f":{node.line_start}" + (f"-{last}" if last > node.line_start else "")
    return f"{place}@{node.content_hash[:_SHORT_HASH]}" if node.content_hash else place


def citation_of(node: Node) -> str:
    """The shortest text that leads back to a source: a place in a file, a commit with its date, a url, or else the id
    of the node."""
    if node.path:
        return place_of(node)
    if node.id.startswith(COMMIT_PREFIX):
        return f"commit {node.id.removeprefix(COMMIT_PREFIX)[:_SHORT_HASH]} {node.at:%Y-%m-%d}"
    return on_one_line(node.url) if node.url else node.id


def on_one_line(address: str) -> str:
    """A path or url with invisible characters and markup escaped as `\\x1b`, and backslashes doubled. Two different
    addresses never look the same."""
    marked = {found.start() for found in _MARKUP.finditer(address)}
    shown = (_escape(each) if at in marked or is_unseen(each) else each for at, each in enumerate(address))
    return cut("".join(shown), MAX_ADDRESS)


def _escape(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"
