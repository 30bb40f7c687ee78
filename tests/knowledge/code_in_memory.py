"""A graph of code that is in memory only."""

from __future__ import annotations

from collections.abc import Mapping

from clew.errors import NotFound
from clew.knowledge.membership import Membership
from clew.trail.nodes import Node, ScoredNode
from tests.knowledge.nodes import CODE, node


class Code:
    """Found by the words of its name and content; counts its searches."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = [
            node(CODE, name, content, id=f"code:src/{name}.py#{name}", path=f"src/{name}.py", line_start=1)
            for name, content in nodes.items()
        ]
        self._members = Membership()
        for each in self._nodes:
            self._members.add(f"{each.name} {each.content}")
        self.searches = 0

    async def search(
        self, query: str, *, limit: int = 10, symbol_type: str | None = None, file_pattern: str | None = None
    ) -> list[ScoredNode]:
        self.searches += 1
        words = set(query.lower().split())
        scored = [(len(words & set(f"{each.name} {each.content}".lower().split())), each) for each in self._nodes]
        found = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
        return [ScoredNode(node=each, similarity=hits / len(words)) for hits, each in found][:limit]

    async def look(self) -> None:
        """Its files never change."""

    async def symbol(self, ref: str) -> Node:
        for each in self._nodes:
            if each.id == ref:
                return each
        raise NotFound("symbol", ref)

    def contains(self, text: str) -> bool:
        return self._members.contains(text)
