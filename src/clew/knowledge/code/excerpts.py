"""The texts of passages and files, read from the files as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from clew.knowledge.code import queries
from clew.knowledge.code.file_content import FileContent, decode_text, masked_lines, read_content
from clew.knowledge.code.models import to_node
from clew.knowledge.code.search.passages import SYMBOL_KINDS
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.store import CodeStore
from clew.knowledge.nodes.node_store import Node
from clew.sqlite_file import Sql

T = TypeVar("T")


class Excerpt(NamedTuple):
    """The lines of a passage, the blob of its file, and its symbol if it is one."""

    lines: list[str]
    blob: str
    symbol: Node | None


def read_excerpts(store: CodeStore, root: str, places: Sequence[PassagePlace]) -> list[Excerpt]:
    """The lines of passages without keys, each with the symbol that it is."""
    contents = {path: read_content(root, path) for path in {place.path for place in places}}
    with store.reading() as sql:
        return [_excerpt(sql, place, contents[place.path]) for place in places]


def _excerpt(sql: Sql, place: PassagePlace, content: FileContent | None) -> Excerpt:
    row = queries.find_place(sql, place.path, place.name) if place.kind in SYMBOL_KINDS else None
    symbol = to_node(row) if row is not None else None
    if content is None:
        return Excerpt([], "", symbol)
    return Excerpt(masked_lines(content.body).part(place.start, place.end), content.blob, symbol)


def find_in_texts(
    root: str, places: Iterable[PassagePlace], find: Callable[[str], T | None], limit: int
) -> list[tuple[PassagePlace, T]]:
    """The first passages in which `find` finds something, each with the result. The searched text is not masked and may
    hold keys."""
    lines: dict[str, list[str]] = {}

    def text_of(place: PassagePlace) -> str:
        if place.path not in lines:
            content = read_content(root, place.path)
            lines[place.path] = decode_text(content.body).split("\n") if content is not None else []
        return "\n".join(lines[place.path][place.start - 1 : place.end])

    found = ((place, find(text_of(place))) for place in places)
    return list(islice(((place, each) for place, each in found if each is not None), limit))
