"""The shelf of documents: sections of the repository's own documents, and documents that somebody ingested."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.answering.question import content_words
from clew.knowledge.answering.sources import passage_node
from clew.knowledge.code.graph import Excerpt
from clew.knowledge.code.postings import Place
from clew.knowledge.code.ranking import Shares
from clew.knowledge.code.search_index import PassageHit
from clew.knowledge.shelves import NodeShelf
from clew.knowledge.upsert import keyed_id
from clew.trail.globs import glob_matches
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import EVERY_NODE, Node, NodeFilter, ScoredNode

PREFIX = "code:"
LOOKED_AT = 200
"""Passages among which sections of documents are looked for."""
SHARES = Shares(test=0.5, aside=1.0, text=1.0, changelog=0.0)

_LESSON = re.compile(
    r"(?:^|[/_-])(?:tutorials?|getting[-_]?started|quick[-_]?start|how[-_]?to)(?:[/._-]|$)", re.IGNORECASE
)
_ADVICE = re.compile(r"(?:^|[/_-])best[-_]?practices?(?:[/._-]|$)", re.IGNORECASE)


class Sections(Protocol):
    """The passages of the code graph."""

    async def passages(
        self, words: Sequence[str], *, shares: Shares, is_changelog: Callable[[str], bool], limit: int = LOOKED_AT
    ) -> list[PassageHit]: ...

    async def passage_at(self, path: str, line: int) -> Place | None: ...

    async def excerpts(self, places: Sequence[Place]) -> list[Excerpt]: ...

    def contains(self, text: str) -> bool: ...


class DocumentShelf:
    """See `Shelf`. Sections of files belong to no session and have no metadata: filters by these leave only ingested
    documents."""

    def __init__(self, nodes: NodeShelf, code: Sections, is_changelog: Callable[[str], bool]) -> None:
        self._nodes, self._code, self._is_changelog = nodes, code, is_changelog

    @property
    def domain(self) -> NodeDomain:
        return NodeDomain.ACADEMIC

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """The best of both, by the share of the query's words that they have or by closeness."""
        found = await self._nodes.search(query, by=by, limit=limit, filter=filter, exclude=exclude)
        if filter.session_id is None and not filter.metadata and filter.created_after is None:
            found = [*found, *(each for each in await self._sections(query, filter) if each.node.id not in exclude)]
        return sorted(found, key=lambda each: -each.similarity)[:limit]

    async def get(self, id: str, *, by: Principal) -> Node:
        if not id.startswith(PREFIX):
            return await self._nodes.get(id, by=by)
        path, _, line = id.removeprefix(PREFIX).rpartition(":")
        place = await self._code.passage_at(path, int(line)) if line.isdigit() else None
        if place is None or place.kind != "section":
            raise NotFound("document", id)
        [excerpt] = await self._code.excerpts([place])
        return _typed(passage_node(PassageHit(place, 1.0, 1.0), excerpt, is_changelog=False)).node

    async def save(self, id: str, *, by: Principal) -> str:
        """The id of a document on the trail. A section of a file is saved there as it is now, so that edges can lead to
        it. Raises NotFound."""
        if not id.startswith(PREFIX):
            return id
        node = await self.get(id, by=by)
        key, graph = _saved_key(id, by), self._nodes.graph(by)
        try:
            return (await graph.get_node(key)).id
        except NotFound:
            metadata = {"section": id, "blob": node.content_hash}
            saved = await graph.add_node(
                node.name,
                NodeDomain.ACADEMIC,
                node.node_type,
                node.content,
                id=key,
                url=f"{node.path}#L{node.line_start}",
                trust=node.trust,
                metadata=metadata,
            )
            return saved.id

    async def find_saved(self, id: str, *, by: Principal) -> str:
        """The id that a section was saved under; the same id where it was not."""
        try:
            return (await self._nodes.graph(by).get_node(_saved_key(id, by))).id if id.startswith(PREFIX) else id
        except NotFound:
            return id

    async def catch_up(self) -> None:
        await self._nodes.catch_up()

    def contains(self, text: str, *, by: Principal) -> bool:
        return self._nodes.contains(text, by=by) or self._code.contains(text)

    async def _sections(self, query: str, filter: NodeFilter) -> list[ScoredNode]:
        words = content_words(query)
        hits = await self._code.passages(words, shares=SHARES, is_changelog=self._is_changelog, limit=LOOKED_AT)
        wanted = [hit for hit in hits if hit.place.kind == "section" and hit.score > 0]
        wanted = [hit for hit in wanted if filter.path is None or glob_matches(filter.path, hit.place.path)]
        excerpts = await self._code.excerpts([hit.place for hit in wanted])
        nodes = [
            _typed(passage_node(hit._replace(score=hit.cover), each, is_changelog=False))
            for hit, each in zip(wanted, excerpts, strict=True)
        ]
        return [each for each in nodes if not filter.node_types or each.node.node_type in filter.node_types]


def _saved_key(id: str, by: Principal) -> str:
    return keyed_id(by.owner_id, f"section:{id}")


def _typed(found: ScoredNode) -> ScoredNode:
    """A section with the type that its path tells."""
    path = found.node.path or ""
    kind = NodeType.BEST_PRACTICE if _ADVICE.search(path) else NodeType.TUTORIAL if _LESSON.search(path) else None
    if kind is None:
        return found
    return msgspec.structs.replace(found, node=msgspec.structs.replace(found.node, node_type=kind))
