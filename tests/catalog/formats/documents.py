"""Sample documents, and checks that apply to every tree of a format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from clew.catalog.formats import ALL, find_format
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import parse_route


def document(body: str | bytes | dict[str, Any] | list[Any], content_type: str, id: str = "guide.md") -> RawContent:
    if isinstance(body, dict | list):
        body = msgspec.json.encode(body)
    raw = body.encode() if isinstance(body, str) else body
    return RawContent(id=id, name=id.rpartition("/")[2], content_type=content_type, body=raw)


def read(
    body: str | bytes | dict[str, Any] | list[Any], content_type: str, *, id: str = "guide.md", base: str = ""
) -> ResourceNode:
    """The checked root node that the shipped formats build from a document."""
    found = find_format(content_type, ALL)
    assert found is not None, content_type
    roots = found.parse(document(body, content_type, id), base)
    check_tree(roots)
    (root,) = roots
    return root


def walk(roots: Sequence[ResourceNode]) -> Iterator[ResourceNode]:
    for node in roots:
        yield node
        yield from walk(node.children)


def paths(root: ResourceNode) -> list[str]:
    return [node.path for node in walk([root])]


def check_tree(roots: Sequence[ResourceNode]) -> None:
    """Every path is a route of its own, every id is distinct, every node has a name on one line."""
    nodes = list(walk(roots))
    longest_domain = "d" * 63
    for node in nodes:
        assert str(parse_route(f"{longest_domain}://resources/{node.path}")).endswith(node.path)
        assert node.name.strip()
        assert len(node.name.splitlines()) == 1
        assert len(node.description) <= 300
    assert len({node.path for node in nodes}) == len(nodes)
    assert len({node.id for node in nodes}) == len(nodes)


def check_nothing_lost(text: str, root: ResourceNode) -> None:
    """The contents in order are the text, blanks aside; and lines are not torn."""
    source = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    nodes = list(walk([root]))
    assert _without_blanks("".join(node.content for node in nodes)) == _without_blanks(source)
    kept = {line.strip() for node in nodes for line in node.content.split("\n")}
    for line in source.split("\n"):
        assert len(line) > 1_000 or not line.strip() or line.strip() in kept


def _without_blanks(text: str) -> str:
    return re.sub(r"\s", "", text)
