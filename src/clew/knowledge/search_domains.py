"""Search over the three domains: code, history (entries and commits) and literature (documents of the repository and
ingested ones). A query without any known word is not searched for (SYL-91, SYL-92)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.errors import NotFound
from clew.knowledge.answering.question import content_words
from clew.knowledge.answering.sources import describe, passage_node
from clew.knowledge.code.files import is_changelog
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import PREFIX
from clew.knowledge.code.search.ranking import Shares
from clew.knowledge.code.search.search_index import PassageHit
from clew.knowledge.evidence.trust import citation_of, freshness_of, rank_by_freshness
from clew.knowledge.git.commits import Commits, commit_node
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.history.decisions import Decisions
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import Node, NodeFields, NodeFilter, ScoredNode
from clew.knowledge.text import share_of, stems
from clew.knowledge.upsert import keyed_id
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.store import Trail

Thoroughness = Literal["quick", "moderate", "thorough"]
PER_DOMAIN = 5
TOKEN_BUDGET = 1_000
ENOUGH: dict[Thoroughness, int] = {"quick": 3, "moderate": 8, "thorough": 20}
FIRST_BATCH, BATCH_GROWS, MOST_BATCHES = 3, 2, 10
KNOWN_SHARE = 0.5
"""A domain has something on a query if its best result has this share of the words of the query."""
LOOKED_AT = 200
"""The number of passages that are searched for sections of documents."""
SHARES = Shares(test=0.5, aside=1.0, text=1.0, changelog=0.0)


class SmartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Results of all domains whose lines fit a budget of tokens."""

    results: tuple[ScoredNode, ...] = ()
    tokens_used: int = 0
    budget: int = TOKEN_BUDGET


class SearchDomains:
    """One search over each domain, with the same results: nodes with their similarity from 0 to 1, best first."""

    def __init__(self, trail: Trail, code: CodeGraph, commits: Commits, decisions: Decisions) -> None:
        self._trail = trail
        self._code, self._commits, self._decisions = code, commits, decisions

    async def search(
        self,
        domain: NodeDomain,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        types: Sequence[NodeType] = (),
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """The best of a domain without the excluded ids; `types` limits literature."""
        match domain:
            case NodeDomain.CODE:
                found = await self._search_code(query, limit + len(exclude))
            case NodeDomain.HISTORY:
                found = await self._search_nodes(domain, query, by, limit, (), exclude)
                found += await self._search_commits(query, limit, exclude)
                found += await self._decisions.search(query, limit + len(exclude))
            case _:
                found = await self._search_nodes(domain, query, by, limit, types, exclude)
                found += await self._search_sections(query, types)
        left = [each for each in found if each.node.id not in exclude]
        return sorted(left, key=lambda each: -each.similarity)[:limit]

    async def get(self, domain: NodeDomain, id: str, *, by: Principal) -> Node:
        """A node by its id. Raises NotFound."""
        if domain is NodeDomain.CODE:
            return await self._code.symbol(id)
        if id.startswith(COMMIT_PREFIX):
            commit = await self._commits.find(id.removeprefix(COMMIT_PREFIX))
            if commit is None:
                raise NotFound("commit", id)
            return commit_node(commit)
        found = await (self._section(id) if id.startswith(PREFIX) else NodeGraph(self._trail, by).get_node(id))
        if found.domain is not domain:
            raise NotFound(f"{domain.label} node", id)
        return found

    async def also_in(self, domain: NodeDomain, query: str, *, by: Principal) -> tuple[str, ...]:
        """The other domains with a relevant result for a query (SYL-92)."""
        wanted, found = stems(query), []
        for other in NodeDomain:
            if other is not domain and wanted:
                best = await self.search(other, query, by=by, limit=1)
                found += [other.label for each in best if share_of(wanted, text_of(each.node)) >= KNOWN_SHARE]
        return tuple(found)

    async def search_all(
        self,
        query: str,
        *,
        by: Principal,
        at: datetime,
        domains: Sequence[str] = (),
        limit_per_domain: int = PER_DOMAIN,
    ) -> dict[str, list[ScoredNode]]:
        """The results of several domains, all by default; empty for a domain without matches."""
        asked = [domain for domain in NodeDomain if not domains or domain.label in domains]
        return {
            domain.label: rank_by_freshness(await self.search(domain, query, by=by, limit=limit_per_domain), at)
            for domain in asked
        }

    async def smart_search(
        self,
        query: str,
        *,
        by: Principal,
        at: datetime,
        token_budget: int = TOKEN_BUDGET,
        thoroughness: Thoroughness = "moderate",
    ) -> SmartAnswer:
        """Growing batches of results of all domains until there are enough, or the budget is used up. A result that
        exceeds the rest of the budget is skipped; none comes twice."""
        chosen: list[ScoredNode] = []
        used, seen = 0, set[str]()
        for batch in range(MOST_BATCHES):
            found = await self._next_batch(query, by, at, FIRST_BATCH + batch * BATCH_GROWS, seen)
            for each in found:
                tokens = count_tokens(result_line(each.node, at))
                if used + tokens <= token_budget and len(chosen) < ENOUGH[thoroughness]:
                    chosen.append(each)
                    used += tokens
            if not found or len(chosen) >= ENOUGH[thoroughness]:
                break
        return SmartAnswer(results=tuple(chosen), tokens_used=used, budget=token_budget)

    async def _next_batch(self, query: str, by: Principal, at: datetime, size: int, seen: set[str]) -> list[ScoredNode]:
        found = [
            each for domain in NodeDomain for each in await self.search(domain, query, by=by, limit=size, exclude=seen)
        ]
        best = rank_by_freshness(found, at)[:size]
        seen.update(each.node.id for each in best)
        return best

    # -- the single searches -----------------------------------------------------------------------------------

    async def _search_code(self, query: str, limit: int) -> list[ScoredNode]:
        await self._code.look()
        return await self._code.search(query, limit=limit) if self._code.contains(query) else []

    async def _search_nodes(
        self,
        domain: NodeDomain,
        query: str,
        by: Principal,
        limit: int,
        types: Sequence[NodeType],
        exclude: Collection[str],
    ) -> list[ScoredNode]:
        nodes = NodeGraph(self._trail, by)
        if not await nodes.knows(query, domain):
            return []
        return await nodes.search(query, NodeFilter(domain=domain, node_types=types), limit=limit, exclude=exclude)

    async def _search_commits(self, query: str, limit: int, exclude: Collection[str]) -> list[ScoredNode]:
        await self._commits.catch_up()
        if not self._commits.contains(query):
            return []
        return await self._commits.search(query, limit=limit, exclude=exclude)

    async def _search_sections(self, query: str, types: Sequence[NodeType]) -> list[ScoredNode]:
        """Sections of the repository's own documents, by the share of the query's words that they have."""
        if (types and NodeType.DOCUMENTATION not in types) or not self._code.contains(query):
            return []
        words = content_words(query)
        hits = await self._code.passages(words, shares=SHARES, limit=LOOKED_AT)
        sections = [hit for hit in hits if hit.place.kind == "section" and hit.score > 0]
        wanted = [hit for hit in sections if not is_changelog(hit.place.path)]
        excerpts = await self._code.excerpts([hit.place for hit in wanted])
        return [passage_node(hit._replace(score=hit.cover), each) for hit, each in zip(wanted, excerpts, strict=True)]

    # -- sections of documents ---------------------------------------------------------------------------------

    async def _section(self, id: str) -> Node:
        path, _, line = id.removeprefix(PREFIX).rpartition(":")
        place = await self._code.passage_at(path, int(line)) if line.isdigit() else None
        if place is None or place.kind != "section":
            raise NotFound("document", id)
        [excerpt] = await self._code.excerpts([place])
        return passage_node(PassageHit(place, 1.0, 1.0), excerpt).node

    async def save_section(self, id: str, *, by: Principal) -> str:
        """The id of a document on the trail. A section of a file is saved there as it is now, so that edges can lead to
        it. Raises NotFound."""
        saved = await self.find_saved(id, by=by)
        if not saved.startswith(PREFIX):
            return saved
        node = await self._section(id)
        place, metadata = f"{node.path}#L{node.line_start}", {"section": id, "blob": node.content_hash}
        fields: NodeFields = {"id": _saved_id(id, by), "url": place, "trust": node.trust, "metadata": metadata}
        graph = NodeGraph(self._trail, by)
        return (await graph.add_node(node.name, NodeDomain.ACADEMIC, node.node_type, node.content, **fields)).id

    async def find_saved(self, id: str, *, by: Principal) -> str:
        """The id under which a section was saved, or the given id if it was not saved."""
        try:
            return (await NodeGraph(self._trail, by).get_node(_saved_id(id, by))).id if id.startswith(PREFIX) else id
        except NotFound:
            return id


def text_of(node: Node) -> str:
    """The words of a node: name, path, signature and content."""
    return "\n".join(filter(None, (node.name, node.path, node.signature, node.content)))


def result_line(node: Node, at: datetime) -> str:
    """A result on one line: name, text, citation and warning."""
    warning = freshness_of(node, at).warning
    name = "" if node.domain is NodeDomain.CODE else f"{inline(mask_keys(node.name))}: "
    return f"- {name}{describe(node)} ({citation_of(node)}{f'; {warning}' if warning else ''})"


def _saved_id(id: str, by: Principal) -> str:
    return keyed_id(by.owner_id, f"section:{id}")
