"""History as a search domain: entries on the trail, and commits for questions about the past."""

from __future__ import annotations

from collections.abc import Callable, Collection

from clew.access import Principal
from clew.knowledge.git.commits import Commits
from clew.knowledge.shelves import NodeShelf
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import EVERY_NODE, Node, NodeFilter, ScoredNode


class HistoryShelf:
    """Entries and commits as one search domain. `is_past` tells whether a text asks about the past."""

    def __init__(self, nodes: NodeShelf, commits: Commits, is_past: Callable[[str], bool]) -> None:
        self._nodes, self._commits, self._is_past = nodes, commits, is_past

    @property
    def domain(self) -> NodeDomain:
        return NodeDomain.HISTORY

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """Both, best first. Commits have no session, path, type or metadata, so filters by these leave none."""
        found = await self._nodes.search(query, by=by, limit=limit, filter=filter, exclude=exclude)
        is_other = filter.session_id is not None or filter.metadata or filter.path or filter.node_types
        if is_other or not self._is_past(query):
            return found
        await self._commits.catch_up()
        found += await self._commits.search(query, limit=limit, since=filter.created_after, exclude=exclude)
        return sorted(found, key=lambda each: -each.similarity)[:limit]

    async def get(self, id: str, *, by: Principal) -> Node:
        return await self._nodes.get(id, by=by)

    async def catch_up(self) -> None:
        await self._nodes.catch_up()
        await self._commits.catch_up()

    def contains(self, text: str, *, by: Principal) -> bool:
        return self._nodes.contains(text, by=by) or self._commits.contains(text)
