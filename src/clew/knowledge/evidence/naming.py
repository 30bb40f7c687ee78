"""What a source is called, so that a reader finds it again: a place in code at a content, a day of history, a work."""

from __future__ import annotations

import re

from clew.catalog.text import inline
from clew.fences import is_unseen
from clew.knowledge.lines import cut
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node

COMMIT_PREFIX = "commit:"
"""What the id of a commit begins with."""
MAX_ADDRESS = 5_000
"""Characters of an address, over which it leads nowhere on any machine."""
_SHORT_HASH = 10
_MARKED = re.compile(r"\A(?:[#+-](?=#*\s)|\d(?=\d*[.)]\s))|[`<>*\\]|[^\S ]|\A | \Z|(?<= ) |(?<=\])\(")


def name_of(node: Node) -> str:
    """Domain and place of a node on one line, such as `Code: src/a.py:3-9`. Nothing in it is markup."""
    match node.domain:
        case NodeDomain.CODE:
            return f"Code: {place_of(node)}"
        case NodeDomain.HISTORY:
            return f"History: {inline(node.name)} ({node.at:%Y-%m-%d})"
        case _:
            return f"Academic: {inline(node.name)}" + (f" ({on_one_line(node.url)})" if node.url else "")


def place_of(node: Node) -> str:
    """Where code stands: path and lines, and the content that they hold for, as far as these are known."""
    place = on_one_line(node.path) if node.path else inline(node.name)
    if node.line_start is not None:
        last = node.line_end if node.line_end is not None else node.line_start
        place += f":{node.line_start}" + (f"-{last}" if last > node.line_start else "")
    return f"{place}@{node.content_hash[:_SHORT_HASH]}" if node.content_hash else place


def citation_of(node: Node) -> str:
    """The shortest text that leads back to a source: the place in a file, a commit and its day, an
    address, or else the node's id."""
    if node.path:
        return place_of(node)
    if node.id.startswith(COMMIT_PREFIX):
        return f"commit {node.id.removeprefix(COMMIT_PREFIX)[:_SHORT_HASH]} {node.at:%Y-%m-%d}"
    return on_one_line(node.url) if node.url else node.id


def on_one_line(address: str) -> str:
    """A path or url as it is, brackets and all: it has to lead somewhere. What nobody sees in it or would be markup is
    spelled out, as `\\x1b`, and a backslash doubled, so that no two look the same."""
    marked = {found.start() for found in _MARKED.finditer(address)}
    shown = (_spelled(each) if at in marked or is_unseen(each) else each for at, each in enumerate(address))
    return cut("".join(shown), MAX_ADDRESS)


def _spelled(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"
