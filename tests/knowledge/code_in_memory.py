"""A graph of code that is in memory only, and a repository without commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clew.errors import NotFound
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.text import stems
from tests.knowledge.nodes import CODE, node


class Code:
    """Found by the words of its name and content; counts its searches."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = [
            node(CODE, name, content, id=f"code:src/{name}.py#{name}", path=f"src/{name}.py", line_start=1)
            for name, content in nodes.items()
        ]
        self.searches = 0

    async def search(self, query: str, *, limit: int = 10) -> list[ScoredNode]:
        self.searches += 1
        words = stems(query)
        scored = [(len(words & stems(f"{each.name} {each.content}")), each) for each in self._nodes]
        found = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
        return [ScoredNode(node=each, similarity=hits / len(words)) for hits, each in found][:limit]

    async def look(self) -> None:
        """Its files never change."""

    async def state(self, paths: Iterable[str] = ()) -> str:
        return ""

    async def files(self) -> list[Any]:
        return []

    async def symbol(self, ref: str) -> Node:
        for each in self._nodes:
            if each.id == ref:
                return each
        raise NotFound("symbol", ref)

    async def passages(self, *_: Any, **__: Any) -> list[Any]:
        self.searches += 1
        return []

    async def excerpts(self, places: list[Any]) -> list[Any]:
        return []

    def contains(self, text: str) -> bool:
        return any(stems(text) & stems(f"{each.name} {each.content}") for each in self._nodes)


class NoCommits:
    """Of a folder without git."""

    async def catch_up(self) -> None:
        return None

    def contains(self, text: str) -> bool:
        return False
