"""The three domains of knowledge behind one interface: what a search over all of them needs of each. History and
literature are nodes on the trail; code has an index of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.membership import Membership, terms_of
from clew.knowledge.session_order import CANDIDATES
from clew.knowledge.session_order import boost_by_neighbours as lift
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.bulk import each_record
from clew.trail.closeness import closeness
from clew.trail.kinds import NodeDomain
from clew.trail.node import TEXTS
from clew.trail.nodes import EVERY_NODE, Node, NodeFilter, NodeGraph, ScoredNode, to_selector
from clew.trail.query import MAX_LIMIT, Hit, SearchRequest
from clew.trail.store import Trail

_log = logging.getLogger(__name__)
_BATCH = 200
WEIGHTS = {"title": 1.5, "content": 1.0}
"""How much words in the name and in the content of a node count: unlike with records at large, the content is what a
node has to say."""
_OVERFETCH = 5
"""How many times as many are asked for where some of what comes back may not be meant."""

Audience = tuple[str, ...]
"""The scopes that a reader must hold."""


class Shelf(Protocol):
    """One domain of knowledge."""

    @property
    def domain(self) -> NodeDomain: ...

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """The best for a question, best first, without those to exclude. Similarity is from 0 to 1."""
        ...

    async def get(self, id: str, *, by: Principal) -> Node:
        """Raises NotFound."""
        ...

    async def catch_up(self) -> None:
        """Let `contains` know of everything that was written before this was called."""
        ...

    def contains(self, text: str, *, by: Principal) -> bool:
        """Whether the domain may have anything on a text. Only a no is certain."""
        ...


class Truth(Protocol):
    """What holds nodes against the files that they tell of."""

    async def catch_up(self) -> None:
        """Have on the trail what files say now."""
        ...

    async def hold(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        """What is found when all that it tells of files is what they say now."""
        ...


class AsFound:
    """For nodes that tell of no files."""

    async def catch_up(self) -> None:
        return None

    async def hold(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        return await find()


class NodeShelf:
    """A domain whose nodes are on the trail. `keeper` is who reads for the filter what it may see. Others of the same
    owner are told only of what they may see, and all of what `truth` lets stand."""

    def __init__(self, trail: Trail, domain: NodeDomain, keeper: Principal, truth: Truth | None = None) -> None:
        self._trail = trail
        self._truth = truth or AsFound()
        self._domain = domain
        self._keeper = keeper
        self._selector = to_selector(NodeFilter(domain=domain))
        self._members: dict[Audience, Membership] = {}
        self._cursor: int | None = None
        self._turn = asyncio.Lock()
        self._rebuilds: set[asyncio.Task[None]] = set()

    @property
    def domain(self) -> NodeDomain:
        return self._domain

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """By words and meaning, without what has neither in common; history also by what stands next to it. The
        similarity of the best is how close it is to the question; that of the others follows from their score."""
        selector = to_selector(msgspec.structs.replace(filter, domain=self._domain))
        request = SearchRequest(
            text=query,
            limit=max(limit, CANDIDATES),
            selector=selector,
            weights=WEIGHTS,
            exclude=tuple(exclude)[:MAX_LIMIT],
        )

        async def find() -> list[ScoredNode]:
            hits = (await self._trail.index.search(request, by=by)).hits
            best = await self._best(hits, limit, by)
            nodes = await NodeGraph(self._trail, by).as_nodes([hit.breadcrumb for hit, _ in best])
            return [
                ScoredNode(node=node, similarity=similarity) for node, (_, similarity) in zip(nodes, best, strict=True)
            ]

        return await self._truth.hold(find)

    def graph(self, by: Principal) -> NodeGraph:
        """The nodes that a caller may see."""
        return NodeGraph(self._trail, by)

    async def get(self, id: str, *, by: Principal) -> Node:
        async def find() -> list[ScoredNode]:
            return [ScoredNode(node=await NodeGraph(self._trail, by).get_node(id), similarity=1.0)]

        found = await self._truth.hold(find)
        if not found or found[0].node.domain is not self._domain:
            raise NotFound(f"{self._domain.label} node", id)
        return found[0].node

    async def catch_up(self) -> None:
        """Cheap when nothing was written: a look at the files that are told of, and one at the head of the log."""
        await self._truth.catch_up()
        async with self._turn:
            head = await self._trail.log.head()
            if self._cursor is None:
                await self._fill()
                self._cursor = head
            while self._cursor < head:
                await self._read_on()

    def contains(self, text: str, *, by: Principal) -> bool:
        """True as well before the first `catch_up`, and for who may see what the keeper does not: other owners, and
        holders of other scopes."""
        if self._cursor is None or by.owner_id != self._keeper.owner_id or not by.scopes <= self._keeper.scopes:
            return True
        return any(
            member.contains(text) for audience, member in self._members.items() if by.scopes.issuperset(audience)
        )

    @property
    def is_rebuilding(self) -> bool:
        """Whether a filter is being made anew in the background."""
        return bool(self._rebuilds)

    async def settled(self) -> None:
        """Wait until nothing runs in the background. Raises what went wrong there."""
        await asyncio.gather(*self._rebuilds)

    async def close(self) -> None:
        """End what still runs in the background."""
        for each in self._rebuilds:
            each.cancel()
        await asyncio.gather(*self._rebuilds, return_exceptions=True)

    async def _best(self, hits: Sequence[Hit], limit: int, by: Principal) -> list[tuple[Hit, float]]:
        """The best hits with their similarity, best first."""
        scores = {hit.breadcrumb.id: hit.score for hit in hits if hit.score > 0}
        if self._domain is NodeDomain.HISTORY:
            scores = await lift(self._trail, scores, by=by)
        close = max(map(closeness, hits), default=0.0)
        most = max(scores.values(), default=1.0) * (1 + close) / close if close > 0 else 0.0
        known = [(hit, scores[hit.breadcrumb.id]) for hit in hits if hit.breadcrumb.id in scores and most > 0]
        ranked = sorted(known, key=lambda each: -each[1])[:limit]
        return [(hit, min(1.0, score / most)) for hit, score in ranked]

    async def _fill(self) -> None:
        for audience, terms in (await self._read_terms()).items():
            self._members[audience] = Membership(terms)

    async def _read_on(self) -> None:
        events, self._cursor = await self._trail.log.read(
            self._cursor or 0, by=self._keeper, selector=self._selector, limit=_BATCH
        )
        for found in (event.breadcrumb for event in events if event.breadcrumb is not None):
            self._members.setdefault(found.scopes, Membership()).add(text_of(found))
        for audience, member in self._members.items():
            if member.is_due:
                self._begin_rebuild(audience, member)

    def _begin_rebuild(self, audience: Audience, member: Membership) -> None:
        async def read() -> Iterable[int]:
            return (await self._read_terms()).get(audience, set())

        task = asyncio.create_task(member.rebuild(read))
        self._rebuilds.add(task)
        task.add_done_callback(self._rebuilt)

    def _rebuilt(self, task: asyncio.Task[None]) -> None:
        self._rebuilds.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("the filter of %s was not made anew; the present one serves on: %s", self._domain.label, error)

    async def _read_terms(self) -> dict[Audience, set[int]]:
        """All terms of the domain, by who may see them."""
        terms: dict[Audience, set[int]] = {}
        waiting: list[Breadcrumb] = []
        async for each in each_record(self._trail, self._selector, by=self._keeper):
            waiting.append(each)
            if len(waiting) == _BATCH:
                await asyncio.to_thread(_take_in, waiting, terms)
                waiting = []
        await asyncio.to_thread(_take_in, waiting, terms)
        return terms


def text_of(breadcrumb: Breadcrumb) -> str:
    """All that a node can be found by."""
    context = breadcrumb.context
    texts = (context.get(key) for key in ("content", *TEXTS))
    return "\n".join(filter(None, (breadcrumb.title, *(text for text in texts if isinstance(text, str)))))


def _take_in(found: Sequence[Breadcrumb], terms: dict[Audience, set[int]]) -> None:
    for each in found:
        terms.setdefault(each.scopes, set()).update(terms_of(text_of(each)))


class CodeSearch(Protocol):
    """What the shelf of code needs of the graph of code."""

    async def search(
        self, query: str, *, limit: int = 10, symbol_type: str | None = None, file_pattern: str | None = None
    ) -> list[ScoredNode]: ...

    async def symbol(self, ref: str) -> Node: ...

    async def look(self) -> None: ...

    def contains(self, text: str) -> bool: ...


class CodeShelf:
    """The code of a repository. Whoever reads the repository may see all of it."""

    def __init__(self, code: CodeSearch) -> None:
        self._code = code

    @property
    def domain(self) -> NodeDomain:
        return NodeDomain.CODE

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """By path and type; code belongs to no session and has no metadata, so filters by these leave nothing."""
        if filter.session_id is not None or filter.metadata or filter.created_after is not None:
            return []
        wanted = (limit + len(exclude)) * (_OVERFETCH if filter.node_types else 1)
        found = await self._code.search(query, limit=wanted, file_pattern=filter.path)
        meant = (each for each in found if not filter.node_types or each.node.node_type in filter.node_types)
        return [each for each in meant if each.node.id not in exclude][:limit]

    async def get(self, id: str, *, by: Principal) -> Node:
        return await self._code.symbol(id)

    async def catch_up(self) -> None:
        """Cheap where the files are watched, or were looked at just now."""
        await self._code.look()

    def contains(self, text: str, *, by: Principal) -> bool:
        return self._code.contains(text)
