"""Research over documents: by topic, paper or approach, and compared with the code (SYL-97, SYL-27)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, ConfigError, InvalidInput, ModelError, NotFound
from clew.knowledge.code.issue_text import find_paths
from clew.knowledge.documents.findings import (
    NOTHING,
    Findings,
    Request,
    TextCache,
    build_findings,
    find_gaps,
    with_text,
    write_text,
)
from clew.knowledge.documents.ingest import Ingested, NewSource, ingest_source, verify_source
from clew.knowledge.documents.packages import Packages
from clew.knowledge.documents.retrieval import RetrievalConfig, Retrieved, retrieve
from clew.knowledge.evidence.conflicts import Conflict, detect, record_conflicts
from clew.knowledge.history.links import CrossDomain
from clew.knowledge.membership import telling_words
from clew.knowledge.searching import KNOWN_SHARE, Shelves
from clew.llm.requests import Model
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, NodeFilter, ScoredNode
from clew.trail.store import Trail

Depth = Literal["quick", "standard", "deep"]
DEPTHS: dict[str, int] = {"quick": 1, "standard": 2, "deep": 3}
RESULTS_A_DEPTH = 10
PER_APPROACH = PER_DOMAIN = DEFAULT_LIMIT = 5
MAX_TOKENS = 100_000
MAX_QUERY = 4_000
MOST_CONFLICTS = 20
MAX_LEARNED = 3
"""Packages that one question may read."""

ACADEMIC = tuple(each for each in NodeType if each >= NodeType.PAPER)
DOCS = (NodeType.DOCUMENTATION, NodeType.RFC, NodeType.TUTORIAL)
ADVICE = (NodeType.BEST_PRACTICE, NodeType.DOCUMENTATION)
_HEADINGS = {
    NodeDomain.CODE: "What the code does",
    NodeDomain.HISTORY: "What was decided before",
    NodeDomain.ACADEMIC: "What others wrote",
}


class Library:
    """The documents that one principal sees. Calls raise InvalidInput for bad arguments, and errors of the trail.
    `packages` are read when a question names them; `root` is the folder of relative paths."""

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
        self.trail, self.clock = trail, clock
        self._by, self._shelves, self._model = by, shelves, model
        self._packages, self._root = packages, root

    async def research(
        self,
        query: str,
        depth: int | Depth = 2,
        focus_areas: Sequence[str] = (),
        include_papers: bool = True,
        include_docs: bool = True,
        *,
        confidence_threshold: float | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> Findings:
        """What documents say on a topic: ten a step of depth, each step looking for the words that the last one lacked.
        With a `confidence_threshold` research stops as soon as a source has this share of the query's words."""
        steps = DEPTHS.get(depth, 0) if isinstance(depth, str) else depth
        if not 1 <= steps <= 3:
            raise InvalidInput("depth", "must be 1, 2 or 3", hint="1 is quick, 2 is standard, 3 is deep")
        await self._learn(query)
        left_out = (*(() if include_papers else (NodeType.PAPER,)), *(() if include_docs else DOCS))
        types = tuple(each for each in ACADEMIC if each not in left_out) if left_out else ()
        config = RetrievalConfig(
            initial_k=RESULTS_A_DEPTH,
            max_depth=steps,
            confidence_threshold=float("inf") if confidence_threshold is None else confidence_threshold,
            max_retrieval_tokens=max_tokens,
        )
        retrieved = await self._retrieve(" ".join((query, *focus_areas)), types, config)
        focus = f" Look at {', '.join(focus_areas)} above all." if focus_areas else ""
        task = f"What do the sources say on this: {query}{focus}"
        settings = {"focus": list(focus_areas)}
        request = Request(skill="research", question=query, settings=settings, task=task, suggests=True)
        found = await self._answer(request, retrieved.found)
        stopped = f"{retrieved.stopped} after {retrieved.depth} of {steps} steps"
        return msgspec.structs.replace(found, stopped=stopped)

    async def find_best_practices(self, topic: str, technology: str = "", limit: int = DEFAULT_LIMIT) -> Findings:
        """Recommendations on a topic, for a technology if one is given."""
        query = f"{technology} {topic} best practices" if technology else topic
        found = await self._search(NodeDomain.ACADEMIC, query, limit, ADVICE)
        task = f"Which practices do the sources recommend for {query}?"
        settings = {"technology": technology}
        request = Request(skill="find_best_practices", question=topic, settings=settings, task=task, suggests=True)
        return await self._answer(request, found)

    async def find_papers(
        self, query: str, limit: int = DEFAULT_LIMIT, min_year: int | None = None, venues: Sequence[str] = ()
    ) -> Findings:
        """Papers on a topic, each once, without a model. `min_year` drops older and undated papers; papers of `venues`
        come first."""
        most = min(100, _checked(limit) * RESULTS_A_DEPTH)
        papers: dict[str, ScoredNode] = {}
        for each in await self._search(NodeDomain.ACADEMIC, query, most, (NodeType.PAPER,)):
            if min_year is None or (each.node.published_at and each.node.published_at.year >= min_year):
                papers.setdefault(str(each.node.metadata.get("document", each.node.id)), each)
        wanted = {venue.casefold() for venue in venues}
        ranked = sorted(
            papers.values(), key=lambda each: str(each.node.metadata.get("venue", "")).casefold() not in wanted
        )
        return await self._answer(Request(skill="find_papers", question=query, suggests=True), ranked[:limit])

    async def compare_approaches(
        self, approaches: Sequence[str], context: str = "", criteria: Sequence[str] = ()
    ) -> Findings:
        """Compare two to four approaches by five sources each."""
        names = list(dict.fromkeys(each.strip() for each in approaches if each.strip()))
        if not 2 <= len(names) <= 4:
            raise InvalidInput("approaches", "must be two to four that differ", hint="For example REST and gRPC")
        found: dict[str, ScoredNode] = {}
        groups: dict[str, list[str]] = {}
        for name in names:
            query = f"{name} for {context}" if context else name
            for each in await self._search(NodeDomain.ACADEMIC, query, PER_APPROACH):
                found.setdefault(each.node.id, each)
                groups.setdefault(each.node.id, []).append(name)
        question = " or ".join(names) + (f" for {context}" if context else "")
        by = f" by {', '.join(criteria)}" if criteria else ""
        request = Request(
            skill="compare_approaches",
            question=question,
            settings={"criteria": list(criteria)},
            task=f"Compare {question}{by}. Say what speaks for and against each.",
            headings=names,
            groups=groups,
            criteria=criteria,
        )
        return await self._answer(request, list(found.values()))

    async def synthesize_with_codebase(self, topic: str, show_gaps: bool = False) -> Findings:
        """Recommendations beside the code. `show_gaps` adds recommendations of which the code shows nothing."""
        found = await self._search_domains(topic, (NodeDomain.ACADEMIC, NodeDomain.CODE))
        gaps = find_gaps(found[NodeDomain.ACADEMIC], found[NodeDomain.CODE]) if show_gaps else ()
        task = f"How is this done here, and how do others do it: {topic}" + (" Name the gaps." if show_gaps else "")
        request = Request(skill="synthesize_with_codebase", question=topic, settings={"gaps": show_gaps}, task=task)
        return await self._answer_by_domain(request, found, gaps)

    async def design_proposal(self, request: str, context: str = "") -> Findings:
        """The frame of a proposal: existing code, earlier decisions, recommendations, and open questions as gaps."""
        query = f"{request} {context}".strip()
        found = await self._search_domains(query, (NodeDomain.CODE, NodeDomain.HISTORY, NodeDomain.ACADEMIC))
        gaps = find_gaps(found[NodeDomain.ACADEMIC], found[NodeDomain.CODE])
        task = f"Write a design proposal, with the problem, options, a recommendation and open questions: {query}"
        title = f"Design proposal: {request}"
        asked = Request(skill="design_proposal", question=request, settings={"for": context}, task=task, title=title)
        return await self._answer_by_domain(asked, found, gaps)

    async def get_code_for_academic(self, academic_id: str, limit: int = DEFAULT_LIMIT) -> Findings:
        """The code that a document describes or that implements it, then the most similar code; `how` tells which.
        Raises NotFound."""
        node = await self._document(academic_id)
        if node.path and node.source is None:  # a section of a file has no edges: its text names the code
            linked = await self._named_code(node)
        else:
            linked = await CrossDomain(self.trail, self._by).linked(academic_id, NodeDomain.CODE)
        return await self._around("get_code_for_academic", node, linked, NodeDomain.CODE, limit)

    async def get_history_for_academic(self, academic_id: str, limit: int = RESULTS_A_DEPTH) -> Findings:
        """The history that a document led to, then the most similar history. Raises NotFound."""
        node = await self._document(academic_id)
        is_section = node.path and node.source is None
        graph = CrossDomain(self.trail, self._by)
        linked = [] if is_section else await graph.linked(academic_id, NodeDomain.HISTORY)
        return await self._around("get_history_for_academic", node, linked, NodeDomain.HISTORY, limit)

    async def _named_code(self, node: Node) -> list[Node]:
        """The files that a section names by their paths."""
        found = []
        for path in dict.fromkeys(find_paths(node.content)):
            with suppress(ClewError):
                found.append(await self._shelves[NodeDomain.CODE].get(path, by=self._by))
        return found

    async def ingest_source(self, source: NewSource) -> Ingested:
        """Ingest a source. See `ingest.ingest_source`."""
        return await ingest_source(self.trail, source, by=self._by, root=self._root, at=self.clock.now())

    async def verify_source(self, id: str) -> Ingested:
        """Verify an ingested source as a person. See `ingest.verify_source`."""
        return await verify_source(self.trail, id, by=self._by, at=self.clock.now())

    # -- answers -----------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, found: Sequence[ScoredNode]) -> Findings:
        """The findings, with a model's text if there is a model and the request has a task for it."""
        elsewhere = await self._elsewhere(request.question) if request.suggests else ()
        if not found:
            text = f"{NOTHING} Try {', '.join(elsewhere)}." if elsewhere else NOTHING
            empty = Findings(skill=request.skill, question=request.question, status="no_matches", text=text)
            return msgspec.structs.replace(empty, also_exists_in=elsewhere)
        now, nodes = self.clock.now(), [each.node for each in found]
        conflicts = detect(nodes, now)[:MOST_CONFLICTS]
        await self._record(conflicts)
        plain = build_findings(request, found, conflicts, now)
        plain = msgspec.structs.replace(plain, also_exists_in=elsewhere)
        if self._model is None or not request.task:
            return plain
        cache = TextCache(self.trail, self.clock, self._by)
        cached = await cache.get(request, nodes)
        try:
            written = cached or await write_text(self._model, request, found, conflicts, now)
        except ModelError as error:
            warning = f"the model did not answer ({error.kind}); these are the sources' own words"
            return msgspec.structs.replace(plain, warnings=(*plain.warnings, warning))
        if cached is None:
            await cache.put(request, nodes, written)
        return msgspec.structs.replace(with_text(plain, written, found, now), is_cached=cached is not None)

    async def _answer_by_domain(
        self, request: Request, found: Mapping[NodeDomain, Sequence[ScoredNode]], gaps: Sequence[str]
    ) -> Findings:
        groups = {each.node.id: [_HEADINGS[domain]] for domain, own in found.items() for each in own}
        headings = [_HEADINGS[domain] for domain in found]
        request = msgspec.structs.replace(request, headings=headings, groups=groups, gaps=gaps)
        return await self._answer(request, [each for own in found.values() for each in own])

    async def _around(self, skill: str, node: Node, linked: Sequence[Node], domain: NodeDomain, limit: int) -> Findings:
        found = [ScoredNode(node=each, similarity=1.0) for each in linked][: _checked(limit)]
        how = {each.id: "edge" for each in linked}
        if len(found) < limit:
            alike = await self._search(domain, f"{node.name} {node.content[:500]}", limit, exclude=how.keys())
            found += alike[: limit - len(found)]
        how = {each.node.id: how.get(each.node.id, "similarity") for each in found}
        return await self._answer(Request(skill=skill, question=node.name, how=how), found)

    async def _record(self, conflicts: Sequence[Conflict]) -> None:
        """Record conflicts for `list_conflicts`, if the caller may write and the trail is the user's own."""
        if not self._by.may("create"):
            return
        try:
            await record_conflicts(self.trail, conflicts, by=self._by)
        except ConfigError:
            return

    # -- search ------------------------------------------------------------------------------------------------

    async def _document(self, id: str) -> Node:
        shelf = self._shelves.get(NodeDomain.ACADEMIC)
        if shelf is None:
            raise NotFound("academic node", id)
        return await shelf.get(id, by=self._by)

    async def _retrieve(self, query: str, types: Sequence[NodeType], config: RetrievalConfig) -> Retrieved:
        async def search(text: str, limit: int, exclude: Collection[str]) -> list[ScoredNode]:
            refined = text if text == query else text[:MAX_QUERY]
            return await self._search(NodeDomain.ACADEMIC, refined, limit, types, exclude=exclude)

        return await retrieve(search, query, config)

    async def _search_domains(
        self, query: str, domains: Sequence[NodeDomain]
    ) -> dict[NodeDomain, Sequence[ScoredNode]]:
        return {domain: await self._search(domain, query, PER_DOMAIN) for domain in domains}

    async def _search(
        self,
        domain: NodeDomain,
        query: str,
        limit: int,
        types: Sequence[NodeType] = (),
        *,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """The best visible nodes that nothing supersedes. A query without any known word is not searched for."""
        self._by.require("read")
        if not query.strip():
            raise InvalidInput("query", "is empty", hint="Say in a few words what you want to know")
        if len(query) > MAX_QUERY:
            raise InvalidInput("query", f"has over {MAX_QUERY:,} characters", hint="Ask for one thing at a time")
        shelf = self._shelves.get(domain)
        if shelf is None:
            return []
        await shelf.catch_up()
        if not shelf.contains(query, by=self._by):
            return []
        plain, most = " ".join(query.split()), min(200, 2 * _checked(limit))
        wanted = NodeFilter(node_types=types)
        found = await shelf.search(plain, by=self._by, limit=most, filter=wanted, exclude=exclude)
        return [each for each in found if each.node.superseded_by is None][:limit]

    async def _elsewhere(self, query: str) -> tuple[str, ...]:
        """The other domains that know at least half of the words of a query (SYL-92)."""
        words, found = telling_words(query), []
        for shelf in self._shelves.values() if words else ():
            if shelf.domain is not NodeDomain.ACADEMIC:
                await shelf.catch_up()
                known = sum(shelf.contains(word, by=self._by) for word in words)
                found += [shelf.domain.label] if known >= KNOWN_SHARE * len(words) else []
        return tuple(found)

    async def _learn(self, query: str) -> None:
        """Read the packages that a query names."""
        if self._packages is None or not (self._by.may("create") and self._by.may("update")):
            return
        for named in (await self._packages.mentioned(query))[:MAX_LEARNED]:
            try:
                await self._packages.learn(named.name)
            except NotFound:
                continue  # declared, but not installed here


def _checked(limit: int) -> int:
    if not 1 <= limit <= 100:
        raise InvalidInput("limit", "must be between 1 and 100")
    return limit
