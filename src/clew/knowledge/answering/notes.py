"""Notes on the trail: decisions, failures, preferences and ingested documents that a question asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clew.access import Principal
from clew.knowledge.answering.history import cover_of
from clew.knowledge.answering.question import ParsedQuestion
from clew.knowledge.history.decisions import Decisions
from clew.knowledge.history.entries import list_all, newest_first
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import NodeFilter, ScoredNode, to_selector
from clew.lazy_pattern import lazy_pattern
from clew.trail.store import Trail

SHOWN, LOOKED_AT = 6, 20
MAX_LISTED = 1_000
RELATED, ABOUT = 0.34, 0.6
"""A note that covers at least the share RELATED of the question is related to it. From ABOUT on it comes before
code."""

_KINDS: tuple[tuple[re.Pattern[str], NodeType | str], ...] = (
    (lazy_pattern(r"\b(?:prefer\w*)\b", re.IGNORECASE), "preference"),
    (lazy_pattern(r"\b(?:mistakes?|failures?|broke|broken|went wrong|failed)\b", re.IGNORECASE), NodeType.FAILURE),
    (lazy_pattern(r"\b(?:decided?|decisions?|chose|chosen|agreed)\b", re.IGNORECASE), NodeType.DECISION),
)
_OURS = lazy_pattern(r"\b(?:we|i|my|our|the user|noted|was|were|did|list|before|known)\b", re.IGNORECASE)
_RESUME = lazy_pattern(
    r"\b(?:left off|leave off|where were we|where was i|what was i doing|continue where|what(?:'s| is) next"
    r"|resume (?:the |my |our )?(?:work|session))\b",
    re.IGNORECASE,
)
_KIND_WORDS = """
    mistake mistakes failure failures broke broken break fail failed went wrong gone make made note noted prefer prefers
    preferred preference preferences user before known past list all ever again far decide decided decision decisions
    chose chosen agreed
"""
_ASKING = frozenset(_KIND_WORDS.split())


class Notes:
    """The notes that a caller may see, and the decision records of the repository."""

    def __init__(self, trail: Trail, decisions: Decisions) -> None:
        self._trail, self._decisions = trail, decisions

    async def of_kind(self, question: ParsedQuestion, weights: Mapping[str, float], by: Principal) -> list[ScoredNode]:
        """Notes of the kind that a question names, if some are on its topic: the most relevant first, then the newest.
        Empty if the question names no kind."""
        kind = next((kind for pattern, kind in _KINDS if pattern.search(question.text)), None)
        if kind is None or not _OURS.search(question.text):
            return []
        types = (kind,) if isinstance(kind, NodeType) else ()
        wanted = to_selector(NodeFilter(domain=NodeDomain.HISTORY, node_types=types))
        nodes = await NodeGraph(self._trail, by).as_nodes(await list_all(self._trail, wanted, by, MAX_LISTED))
        nodes += await self._decisions.nodes() if kind is NodeType.DECISION else []
        noted = [node for node in newest_first(nodes) if types or node.metadata.get("summary_type") == kind]
        topic = {word: weight for word, weight in weights.items() if word.lower() not in _ASKING}
        scored = [ScoredNode(node=node, similarity=cover_of(node, topic) if topic else 1.0) for node in noted]
        meant = sorted((each for each in scored if each.similarity >= RELATED), key=lambda each: -each.similarity)
        is_about = bool(meant) and meant[0].similarity >= ABOUT
        return meant[:SHOWN] if is_about else []

    async def of_session(self, question: ParsedQuestion, by: Principal) -> list[ScoredNode]:
        """The newest notes of the caller's session, if the question asks to continue the session."""
        if not by.session or not _RESUME.search(question.text):
            return []
        wanted = to_selector(NodeFilter(domain=NodeDomain.HISTORY, session_id=by.session))
        nodes = await NodeGraph(self._trail, by).as_nodes(await list_all(self._trail, wanted, by, MAX_LISTED))
        return [ScoredNode(node=node, similarity=1.0) for node in newest_first(nodes)[:SHOWN]]

    async def search(self, question: ParsedQuestion, weights: Mapping[str, float], by: Principal) -> list[ScoredNode]:
        """Notes and ingested documents that have the words of a question, scored by the share that they have."""
        hits = await NodeGraph(self._trail, by).search(question.text, limit=LOOKED_AT)
        found = [each.node for each in hits if each.node.domain is not NodeDomain.CODE]
        scored = [ScoredNode(node=node, similarity=cover_of(node, weights)) for node in found]
        return sorted((each for each in scored if each.similarity >= RELATED), key=lambda each: -each.similarity)
