"""History as a search domain: entries on the trail, and commits for questions about the past."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection

from clew.access import Principal
from clew.knowledge.evidence.citations import COMMIT_PREFIX
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.search import named_commits, names_ticket
from clew.knowledge.shelves import NodeShelf
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import EVERY_NODE, Node, NodeFilter, ScoredNode

_OF_PAST = re.compile(
    r"\b(?:commit(?:s|ted)?|why|when (?:was|were|did)"
    r"|who (?:\w+ed|broke|wrote)|(?:what|which) (?:change|release|version|broke|fixed)\w*"
    r"|(?:was|were|been|got) (?:\w+ ){0,3}?\w+ed"
    r"|removed|dropped|reverted|introduced|deprecated|broke|broken|went wrong|regressions?|bisect|history|decided"
    r"|chosen|decisions?|before|previously|used to|in the past|changed|happened)\b",
    re.IGNORECASE,
)


def asks_of_past(text: str) -> bool:
    """Whether a question is about past work: why, when, by which commit; or names a ticket or a commit."""
    return _OF_PAST.search(text) is not None or names_ticket(text) or bool(named_commits(text))


class HistoryShelf:
    """Entries and commits as one search domain."""

    def __init__(self, nodes: NodeShelf, commits: Commits) -> None:
        self._nodes, self._commits = nodes, commits

    @property
    def commits(self) -> Commits:
        return self._commits

    @property
    def domain(self) -> NodeDomain:
        return self._nodes.domain

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
        if is_other or not asks_of_past(query):
            return found
        await self._commits.catch_up()
        found += await self._commits.search(query, limit=limit, since=filter.created_after, exclude=exclude)
        return sorted(found, key=lambda each: -each.similarity)[:limit]

    async def get(self, id: str, *, by: Principal) -> Node:
        if id.startswith(COMMIT_PREFIX):
            return await asyncio.to_thread(self._commits.get, id)
        return await self._nodes.get(id, by=by)

    async def recent(self, limit: int) -> list[ScoredNode]:
        """The newest commits, newest first."""
        return await self._commits.recent(limit)

    async def catch_up(self) -> None:
        await self._nodes.catch_up()
        await self._commits.catch_up()

    def contains(self, text: str, *, by: Principal) -> bool:
        return self._nodes.contains(text, by=by) or self._commits.contains(text)
