"""The library: what others wrote, asked by topic, by paper, by approach, and beside what the code does. Without a model
an answer is the passages themselves; with one it is put into words and held against its sources. Answers are kept
across sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.history.links import CrossDomain
from clew.knowledge.references.answering import Answering, Asked
from clew.knowledge.references.answers import Findings
from clew.knowledge.references.ingesting import Ingested, NewSource, ingest_source
from clew.knowledge.references.packages import Packages
from clew.knowledge.references.remembering import Memory
from clew.knowledge.references.wording import compared, gaps_in, proposed, side_by_side
from clew.knowledge.searching import Shelves
from clew.llm.requests import Model
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, NodeFilter, ScoredNode
from clew.trail.store import Trail

Depth = Literal["quick", "standard", "deep"]
DEPTHS: dict[str, int] = {"quick": 1, "standard": 2, "deep": 3}
DEFAULT_DEPTH, RESULTS_A_DEPTH = 2, 10
DEFAULT_LIMIT = 5
PER_APPROACH = 5
PER_DOMAIN = 5
MAX_QUERY = 4_000
MAX_LEARNED = 3
"""Packages that one question has read."""

ACADEMIC = tuple(each for each in NodeType if each >= NodeType.PAPER)
DOCS = (NodeType.DOCUMENTATION, NodeType.RFC, NodeType.TUTORIAL)
ADVICE = (NodeType.BEST_PRACTICE, NodeType.DOCUMENTATION)
_MORE = 10


class Library:
    """What one principal sees of the references. Calls raise InvalidInput for what cannot be asked, and what the trail
    raises. `packages` are read when a question names them; `root` is where the paths of sources begin."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        by: Principal,
        shelves: Shelves,
        model: Model | None = None,
        *,
        packages: Packages | None = None,
        root: Path | None = None,
    ) -> None:
        self._trail, self._by, self._shelves = trail, by, shelves
        self._packages, self._root = packages, root
        self._answers = Answering(Memory(trail, clock, by), clock, model)

    async def research(
        self,
        query: str,
        depth: int | Depth = DEFAULT_DEPTH,
        focus_areas: Sequence[str] = (),
        include_papers: bool = True,
        include_docs: bool = True,
    ) -> Findings:
        """What references say on a topic, from ten of them for each step of depth."""
        steps = DEPTHS.get(depth, 0) if isinstance(depth, str) else depth
        if not 1 <= steps <= 3:
            raise InvalidInput("depth", "must be 1, 2 or 3", hint="1 is quick, 2 is standard, 3 is deep")
        await self._learn(query)
        left_out = (*(() if include_papers else (NodeType.PAPER,)), *(() if include_docs else DOCS))
        types = tuple(each for each in ACADEMIC if each not in left_out) if left_out else ()
        asked = " ".join((query, *focus_areas))
        found = await self._search(NodeDomain.ACADEMIC, asked, steps * RESULTS_A_DEPTH, types)
        focus = f" Look at {', '.join(focus_areas)} above all." if focus_areas else ""
        task = f"What do the sources say on this: {query}{focus}"
        settings = {"depth": steps, "focus": list(focus_areas), "papers": include_papers, "docs": include_docs}
        return await self._answers.answer(Asked(skill="research", question=query, settings=settings, task=task), found)

    async def find_best_practices(self, topic: str, technology: str = "", limit: int = DEFAULT_LIMIT) -> Findings:
        """What is recommended on a topic, with a technology where one is named."""
        query = f"{technology} {topic} best practices" if technology else topic
        found = await self._search(NodeDomain.ACADEMIC, query, limit, ADVICE)
        task = f"Which practices do the sources recommend for {query}?"
        settings = {"technology": technology, "limit": limit}
        asked = Asked(skill="find_best_practices", question=topic, settings=settings, task=task)
        return await self._answers.answer(asked, found)

    async def find_papers(
        self, query: str, limit: int = DEFAULT_LIMIT, min_year: int | None = None, venues: Sequence[str] = ()
    ) -> Findings:
        """Papers on a topic, each once. With `min_year` only those that say that they are not older; those of `venues`
        come first. Their own words are shown, whether there is a model or not."""
        most = min(200, _at_least_one(limit) * _MORE)
        pages = await self._search(NodeDomain.ACADEMIC, query, most, (NodeType.PAPER,))
        papers: dict[str, ScoredNode] = {}
        for each in pages:
            is_new = min_year is None or (each.node.published_at and each.node.published_at.year >= min_year)
            if is_new:
                papers.setdefault(str(each.node.metadata.get("document", each.node.id)), each)
        wanted = {venue.casefold() for venue in venues}
        ranked = sorted(
            papers.values(), key=lambda each: str(each.node.metadata.get("venue", "")).casefold() not in wanted
        )
        settings = {"limit": limit, "min_year": min_year, "venues": list(venues)}
        asked = Asked(skill="find_papers", question=query, settings=settings)
        return await self._answers.answer(asked, ranked[:limit])

    async def compare_approaches(
        self, approaches: Sequence[str], context: str = "", criteria: Sequence[str] = ()
    ) -> Findings:
        """What references say on two to four approaches, each by itself, from five of them each."""
        names = list(dict.fromkeys(each.strip() for each in approaches if each.strip()))
        if not 2 <= len(names) <= 4:
            raise InvalidInput("approaches", "must be two to four that differ", hint="For example REST and gRPC")
        found, approach = await self._search_each(names, context)
        question = " or ".join(names) + (f" for {context}" if context else "")
        by = f" by {', '.join(criteria)}" if criteria else ""
        asked = Asked(
            skill="compare_approaches",
            question=question,
            settings={"approaches": names, "criteria": list(criteria)},
            compose=lambda sources: compared(names, criteria, sources),
            task=f"Compare {question}{by}. Say what speaks for and against each.",
            approach=approach,
        )
        return await self._answers.answer(asked, found)

    async def synthesize_with_codebase(self, topic: str, show_gaps: bool = False) -> Findings:
        """What others recommend beside what the code does. With `show_gaps`, also the recommendations of which the code
        shows nothing."""
        theory = await self._search(NodeDomain.ACADEMIC, topic, PER_DOMAIN)
        practice = await self._search(NodeDomain.CODE, topic, PER_DOMAIN)
        task = f"How is this done here, and how do others do it: {topic}" + (" Name the gaps." if show_gaps else "")
        asked = Asked(
            skill="synthesize_with_codebase",
            question=topic,
            settings={"gaps": show_gaps},
            compose=side_by_side,
            task=task,
            gaps=gaps_in(theory, practice) if show_gaps else (),
        )
        return await self._answers.answer(asked, [*theory, *practice])

    async def get_code_for_academic(self, academic_id: str, limit: int = DEFAULT_LIMIT) -> Findings:
        """The code that a reference documents, or that implements or uses it; then the code most like it. `how` tells
        which. Raises NotFound."""
        node = await self._reference(academic_id)
        linked = await CrossDomain(self._trail, self._by).code_for_academic(academic_id)
        return await self._around("get_code_for_academic", node, linked, NodeDomain.CODE, limit)

    async def get_history_for_academic(self, academic_id: str, limit: int = RESULTS_A_DEPTH) -> Findings:
        """What was decided or done because of a reference; then the history most like it. Raises NotFound."""
        node = await self._reference(academic_id)
        linked = await CrossDomain(self._trail, self._by).history_for_academic(academic_id)
        return await self._around("get_history_for_academic", node, linked, NodeDomain.HISTORY, limit)

    async def design_proposal(self, request: str, context: str = "") -> Findings:
        """A proposal for something that is to be built: what is asked, what there is, what was decided, what others
        wrote, and what is open."""
        query = f"{request} {context}".strip()
        theory = await self._search(NodeDomain.ACADEMIC, query, PER_DOMAIN)
        practice = await self._search(NodeDomain.CODE, query, PER_DOMAIN)
        past = await self._search(NodeDomain.HISTORY, query, PER_DOMAIN)
        gaps = gaps_in(theory, practice)
        task = f"Write a design proposal, with the problem, options, a recommendation and open questions: {query}"
        asked = Asked(
            skill="design_proposal",
            question=request,
            settings={"context": context},
            compose=lambda sources: proposed(request, sources, gaps),
            task=task,
            gaps=gaps,
        )
        return await self._answers.answer(asked, [*practice, *past, *theory])

    async def ingest_source(self, source: NewSource) -> Ingested:
        """Take a source in. Raises as `ingesting.ingest_source`."""
        return await ingest_source(self._trail, source, by=self._by, root=self._root)

    async def _around(self, skill: str, node: Node, linked: Sequence[Node], domain: NodeDomain, limit: int) -> Findings:
        _at_least_one(limit)
        how = {each.id: "edge" for each in linked}
        found = [ScoredNode(node=each, similarity=1.0) for each in linked][:limit]
        if len(found) < limit:
            query = f"{node.name} {node.content[:500]}"
            alike = await self._search(domain, query, limit, exclude=how.keys())
            found += alike[: limit - len(found)]
        how = {each.node.id: how.get(each.node.id, "similarity") for each in found}
        asked = Asked(skill=skill, question=node.name, settings={"id": node.id, "limit": limit}, how=how)
        return await self._answers.answer(asked, found)

    async def _search_each(self, names: Sequence[str], context: str) -> tuple[list[ScoredNode], dict[str, str]]:
        """What is found for some approaches, each source once, and the approaches that it was found for."""
        found: dict[str, ScoredNode] = {}
        belongs: dict[str, list[str]] = {}
        for name in names:
            query = f"{name} for {context}" if context else name
            for each in await self._search(NodeDomain.ACADEMIC, query, PER_APPROACH):
                found.setdefault(each.node.id, each)
                belongs.setdefault(each.node.id, []).append(name)
        return list(found.values()), {id: ", ".join(of) for id, of in belongs.items()}

    async def _reference(self, id: str) -> Node:
        shelf = self._shelves.get(NodeDomain.ACADEMIC)
        if shelf is None:
            raise NotFound("academic node", id)
        return await shelf.get(id, by=self._by)

    async def _search(
        self,
        domain: NodeDomain,
        query: str,
        limit: int,
        types: Sequence[NodeType] = (),
        *,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """The best that still stand; what may not be seen, or was superseded, is not there."""
        self._by.require("read")
        _check(query)
        shelf = self._shelves.get(domain)
        if shelf is None:
            return []
        await shelf.catch_up()
        if not shelf.contains(query, by=self._by):
            return []
        wanted = NodeFilter(node_types=types)
        plain = " ".join(query.split())
        found = await shelf.search(
            plain, by=self._by, limit=min(200, 2 * _at_least_one(limit)), filter=wanted, exclude=exclude
        )
        return [each for each in found if each.node.superseded_by is None][:limit]

    async def _learn(self, query: str) -> None:
        """Have the packages read that a question names."""
        if self._packages is None or not (self._by.may("create") and self._by.may("update")):
            return
        for named in (await self._packages.mentioned(query))[:MAX_LEARNED]:
            try:
                await self._packages.learn(named.name)
            except NotFound:
                continue  # named, but not installed here

    compare = compare_approaches
    best_practices = find_best_practices


def _check(query: str) -> None:
    if not query.strip():
        raise InvalidInput("query", "is empty", hint="Say in a few words what you want to know")
    if len(query) > MAX_QUERY:
        raise InvalidInput("query", f"has over {MAX_QUERY:,} characters", hint="Ask for one thing at a time")


def _at_least_one(limit: int) -> int:
    if not 1 <= limit <= 100:
        raise InvalidInput("limit", "must be between 1 and 100")
    return limit
