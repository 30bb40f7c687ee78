"""Progressive retrieval: fetch a few sources, judge whether they suffice, refine the query, and stop when they do or a
limit is reached (SYL-100)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal

import msgspec

from clew.knowledge.text import stems, telling_words
from clew.llm.tokens import estimate_tokens
from clew.trail.nodes import ScoredNode

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
