"""Research over documents: by topic, paper or approach, and compared with the code (SYL-97, SYL-27). Sources are
retrieved step by step (SYL-100)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, ModelError
from clew.knowledge.code.search.words import find_paths
from clew.knowledge.documents.findings import (
    NOTHING,
    ResearchFindings,
    ResearchRequest,
    build_findings,
    cache_key,
    find_gaps,
    find_text,
    keep_text,
    with_text,
    write_text,
)
from clew.knowledge.documents.ingest import Ingested, NewSource, ingest_source, verify_source
from clew.knowledge.evidence.conflicts import detect, record_conflicts
from clew.knowledge.history.links import CrossDomain, Limit, Query
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.search_domains import SearchDomains
from clew.knowledge.text import stems, telling_words
from clew.llm.requests import Model
from clew.llm.tokens import estimate_tokens
from clew.trail.store import Trail

ReferenceId = Annotated[str, msgspec.Meta(description="the id of a reference")]
Depth = Annotated[
    Literal[1, 2, 3, "quick", "standard", "deep"], msgspec.Meta(description="1 to 3: ten sources for each step")
]
Threshold = Annotated[
    float,
    msgspec.Meta(ge=0, le=1, description="stop as soon as a source has this share of the query's words; 0: never"),
]
Tokens = Annotated[int, msgspec.Meta(ge=1, description="the most tokens of all sources that are read")]
DEPTHS: dict[str, int] = {"quick": 1, "standard": 2, "deep": 3}
RESULTS_A_DEPTH = 10
PER_APPROACH = PER_DOMAIN = DEFAULT_LIMIT = 5
MAX_TOKENS = 100_000
MAX_QUERY = 4_000
MOST_CONFLICTS = 20

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
    `root` is the folder of relative paths."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        by: Principal,
        search: SearchDomains,
        root: Path,
        model: Model | None = None,
    ) -> None:
        self.trail, self.clock = trail, clock
        self._by, self._domains, self._root, self._model = by, search, root, model

    async def research(
        self,
        query: Query,
        depth: Depth = 2,
        focus_areas: Sequence[str] = (),
        include_papers: bool = True,
        include_docs: bool = True,
        *,
        confidence_threshold: Threshold = 0.0,
        max_tokens: Tokens = MAX_TOKENS,
    ) -> ResearchFindings:
        """Find what documents, papers and standards say on a topic, with their sources.

        Each step of depth searches for the words that are missing so far. With a `confidence_threshold`, the findings
        say why retrieval stopped.
        """
        steps = DEPTHS[depth] if isinstance(depth, str) else depth
        left_out = (*(() if include_papers else (NodeType.PAPER,)), *(() if include_docs else DOCS))
        types = tuple(each for each in ACADEMIC if each not in left_out) if left_out else ()
        config = RetrievalConfig(
            initial_k=RESULTS_A_DEPTH,
            max_depth=steps,
            confidence_threshold=confidence_threshold or float("inf"),
            max_retrieval_tokens=max_tokens,
        )
        whole = " ".join((query, *focus_areas))

        async def search(text: str, limit: int, exclude: Collection[str]) -> list[ScoredNode]:
            refined = text if text == whole else text[:MAX_QUERY]
            return await self._search(NodeDomain.ACADEMIC, refined, limit, types, exclude=exclude)

        retrieved = await retrieve(search, whole, config)
        focus = f" Look at {', '.join(focus_areas)} above all." if focus_areas else ""
        request = ResearchRequest(
            question=query, task=f"Summarize what the sources say on this:  {query}{focus}", suggests=True
        )
        stopped = f"{retrieved.stopped} after {retrieved.depth} of {steps} steps" if confidence_threshold else ""
        return msgspec.structs.replace(await self._answer(request, retrieved.found), stopped=stopped)

    async def find_best_practices(
        self, topic: str, technology: str = "", limit: Limit = DEFAULT_LIMIT
    ) -> ResearchFindings:
        """Find best practices: what is recommended on a topic."""
        query = f"{technology} {topic} best practices" if technology else topic
        found = await self._search(NodeDomain.ACADEMIC, query, limit, ADVICE)
        task = f"Which practices do the sources recommend for {query}?"
        return await self._answer(ResearchRequest(question=topic, task=task, suggests=True), found)

    async def find_papers(
        self, query: Query, limit: Limit = DEFAULT_LIMIT, min_year: int | None = None, venues: Sequence[str] = ()
    ) -> ResearchFindings:
        """Find ingested papers, each once. `min_year` drops older and undated papers; papers of `venues` come first."""
        papers: dict[str, ScoredNode] = {}
        for each in await self._search(NodeDomain.ACADEMIC, query, min(100, 10 * limit), (NodeType.PAPER,)):
            if min_year is None or (each.node.published_at and each.node.published_at.year >= min_year):
                papers.setdefault(str(each.node.metadata.get("document", each.node.id)), each)
        wanted = {venue.casefold() for venue in venues}
        ranked = sorted(
            papers.values(), key=lambda each: str(each.node.metadata.get("venue", "")).casefold() not in wanted
        )
        return await self._answer(ResearchRequest(question=query, suggests=True), ranked[:limit])

    async def compare_approaches(
        self,
        approaches: Annotated[Sequence[str], msgspec.Meta(description="two to four")],
        context: str = "",
        criteria: Sequence[str] = (),
    ) -> ResearchFindings:
        """Compare two to four approaches by what is written on each."""
        names = list(dict.fromkeys(each.strip() for each in approaches if each.strip()))
        if not 2 <= len(names) <= 4:
            raise InvalidInput("approaches", "must be two to four that differ", hint="For example REST and gRPC")
        groups = {}
        for name in names:
            query = f"{name} for {context}" if context else name
            groups[name] = await self._search(NodeDomain.ACADEMIC, query, PER_APPROACH)
        question = " or ".join(names) + (f" for {context}" if context else "")
        by = f" by {', '.join(criteria)}" if criteria else ""
        task = f"Compare {question}{by}. Say what speaks for and against each."
        return await self._answer_groups(ResearchRequest(question=question, task=task, criteria=criteria), groups)

    async def synthesize_with_codebase(self, topic: str, show_gaps: bool = False) -> ResearchFindings:
        """Compare recommendations of documents with the code. `show_gaps` adds those that the code does not show."""
        found = await self._search_each(topic, (NodeDomain.ACADEMIC, NodeDomain.CODE))
        gaps = find_gaps(found[NodeDomain.ACADEMIC], found[NodeDomain.CODE]) if show_gaps else ()
        task = f"How is this done here, and how do others do it: {topic}" + (" Name the gaps." if show_gaps else "")
        return await self._answer_groups(ResearchRequest(question=topic, task=task, gaps=gaps), _headed(found))

    async def design_proposal(self, request: str, context: str = "") -> ResearchFindings:
        """Draft a design proposal from the existing code, earlier decisions and what others recommend."""
        query = f"{request} {context}".strip()
        found = await self._search_each(query, (NodeDomain.CODE, NodeDomain.HISTORY, NodeDomain.ACADEMIC))
        gaps = find_gaps(found[NodeDomain.ACADEMIC], found[NodeDomain.CODE])
        task = f"Write a design proposal, with the problem, options, a recommendation and open questions: {query}"
        asked = ResearchRequest(question=request, task=task, title=f"Design proposal: {request}", gaps=gaps)
        return await self._answer_groups(asked, _headed(found))

    async def get_code_for_academic(self, academic_id: ReferenceId, limit: Limit = DEFAULT_LIMIT) -> ResearchFindings:
        """Find the code that a reference is about, then the most similar code."""
        node = await self._domains.get(NodeDomain.ACADEMIC, academic_id, by=self._by)
        if node.path and node.source is None:  # a section of a file has no edges: its text names the code
            linked = await self._named_code(node)
        else:
            linked = await CrossDomain(self.trail, self._by).linked(academic_id, NodeDomain.CODE)
        return await self._around(node, linked, NodeDomain.CODE, limit)

    async def get_history_for_academic(
        self, academic_id: ReferenceId, limit: Limit = RESULTS_A_DEPTH
    ) -> ResearchFindings:
        """Find what was decided or done because of a reference, then similar history."""
        node = await self._domains.get(NodeDomain.ACADEMIC, academic_id, by=self._by)
        saved = await self._domains.find_saved(academic_id, by=self._by)
        linked = await CrossDomain(self.trail, self._by).linked(saved, NodeDomain.HISTORY)
        return await self._around(node, linked, NodeDomain.HISTORY, limit)

    async def ingest_source(self, source: NewSource) -> Ingested:
        """Ingest a source. See `ingest.ingest_source`."""
        return await ingest_source(self.trail, source, by=self._by, root=self._root, at=self.clock.now())

    async def verify_source(self, id: str) -> Ingested:
        """Verify an ingested source as a person. See `ingest.verify_source`."""
        return await verify_source(self.trail, id, by=self._by, at=self.clock.now())

    # -- answers -----------------------------------------------------------------------------------------------

    async def _answer(self, request: ResearchRequest, found: Sequence[ScoredNode]) -> ResearchFindings:
        """The findings, with a model's text if there is a model and the request has a task for it."""
        elsewhere: tuple[str, ...] = ()
        if request.suggests:
            elsewhere = await self._domains.also_in(NodeDomain.ACADEMIC, request.question, by=self._by)
        if not found:
            text = f"{NOTHING} Try {', '.join(elsewhere)}." if elsewhere else NOTHING
            return ResearchFindings(status="no_matches", text=text, also_exists_in=elsewhere)
        now = self.clock.now()
        conflicts = detect([each.node for each in found], now)[:MOST_CONFLICTS]
        await record_conflicts(self.trail, conflicts, by=self._by)
        plain = build_findings(request, found, conflicts, now)
        plain = msgspec.structs.replace(plain, also_exists_in=elsewhere)
        if self._model is None or not request.task:
            return plain
        key = cache_key(request, [each.node for each in found], self._by)
        cached = await find_text(self.trail, key, by=self._by, now=now)
        try:
            text = cached if cached is not None else await write_text(self._model, request, found, conflicts, now)
        except ModelError as error:
            warning = f"the model did not answer ({error.kind}); these are the sources' own words"
            return msgspec.structs.replace(plain, warnings=(*plain.warnings, warning))
        if cached is None:
            await keep_text(self.trail, key, request, text, by=self._by, now=now)
        worded = with_text(plain, text, request.question, found, now)
        return msgspec.structs.replace(worded, is_cached=cached is not None)

    async def _answer_groups(
        self, request: ResearchRequest, found: Mapping[str, Sequence[ScoredNode]]
    ) -> ResearchFindings:
        """The answer with the findings grouped below headings, each source once."""
        groups = {heading: [each.node.id for each in own] for heading, own in found.items()}
        once = {each.node.id: each for own in found.values() for each in own}
        return await self._answer(msgspec.structs.replace(request, groups=groups), list(once.values()))

    async def _around(self, node: Node, linked: Sequence[Node], domain: NodeDomain, limit: int) -> ResearchFindings:
        found = [ScoredNode(node=each, similarity=1.0) for each in linked][:limit]
        if len(found) < limit:
            known = [each.node.id for each in found]
            found += await self._search(domain, f"{node.name} {node.content[:500]}", limit - len(found), exclude=known)
        return await self._answer(ResearchRequest(question=node.name), found)

    # -- search ------------------------------------------------------------------------------------------------

    async def _search_each(self, query: str, domains: Sequence[NodeDomain]) -> dict[NodeDomain, list[ScoredNode]]:
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
        """The best visible nodes that nothing supersedes."""
        self._by.require("read")
        if not query.strip():
            raise InvalidInput("query", "is empty", hint="Say in a few words what you want to know")
        if len(query) > MAX_QUERY:
            raise InvalidInput("query", f"has over {MAX_QUERY:,} characters", hint="Ask for one thing at a time")
        plain, most = " ".join(query.split()), min(200, 2 * limit)
        found = await self._domains.search(domain, plain, by=self._by, limit=most, types=types, exclude=exclude)
        return [each for each in found if each.node.superseded_by is None][:limit]

    async def _named_code(self, node: Node) -> list[Node]:
        """The files that a section names by their paths."""
        found = []
        for path in dict.fromkeys(find_paths(node.content)):
            with suppress(ClewError):
                found.append(await self._domains.get(NodeDomain.CODE, path, by=self._by))
        return found


def _headed(found: Mapping[NodeDomain, Sequence[ScoredNode]]) -> dict[str, Sequence[ScoredNode]]:
    return {_HEADINGS[domain]: own for domain, own in found.items()}


# -- progressive retrieval -------------------------------------------------------------------------------------

Stop = Literal["sufficient", "depth", "tokens", "exhausted"]
Search = Callable[[str, int, Collection[str]], Awaitable[list[ScoredNode]]]
"""Takes a query, a limit and ids to exclude, and returns the best nodes."""


class RetrievalConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Sources per step, the most steps, the confidence that suffices, and the most tokens of all sources."""

    initial_k: int = 5
    max_depth: int = 4
    confidence_threshold: float = 0.8
    max_retrieval_tokens: int = 4_000


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """The retrieved sources in order, and why retrieval stopped."""

    found: tuple[ScoredNode, ...]
    stopped: Stop
    depth: int
    confidence: float
    tokens: int


DEFAULT = RetrievalConfig()


def judge(question: str, found: Sequence[ScoredNode]) -> tuple[float, str]:
    """The share of the question's words in the best source, and the next query: the question with the words repeated
    that no source has."""
    wanted = {word: stems(word) for word in telling_words(question)}
    held = [stems(f"{each.node.name}\n{each.node.content}") for each in found]
    if not wanted or not found:
        return 0.0, question
    best = max(sum(terms <= one for terms in wanted.values()) for one in held)
    missing = [word for word, terms in wanted.items() if not any(terms <= one for one in held)]
    return best / len(wanted), " ".join((question, *missing))


async def retrieve(search: Search, question: str, config: RetrievalConfig = DEFAULT) -> Retrieved:
    """Retrieve step by step, no source twice. Sources that exceed the rest of the token budget are skipped."""
    kept: list[ScoredNode] = []
    seen: set[str] = set()
    query, tokens, depth, confidence = question, 0, 0, 0.0
    stopped: Stop = "depth"
    while depth < config.max_depth:
        depth += 1
        found = [each for each in await search(query, config.initial_k, seen) if each.node.id not in seen]
        seen.update(each.node.id for each in found)
        count = len(kept)
        for each in found:
            size = estimate_tokens(f"{each.node.name}\n{each.node.content}")
            if tokens + size <= config.max_retrieval_tokens:
                kept.append(each)
                tokens += size
        if len(kept) == count:
            stopped = "tokens" if found else "exhausted"
            break
        confidence, query = judge(question, kept)
        if confidence >= config.confidence_threshold:
            stopped = "sufficient"
            break
    return Retrieved(found=tuple(kept), stopped=stopped, depth=depth, confidence=confidence, tokens=tokens)
