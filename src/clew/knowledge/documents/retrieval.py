"""Progressive retrieval: fetch a few sources, judge whether they suffice, refine the query, and stop when they do or a
limit is reached (SYL-100)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal

import msgspec

from clew.knowledge.membership import telling_words, terms_of
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


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """How well the sources answer the question, from 0 to 1, and the next query; empty to repeat the question."""

    confidence: float
    refined: str = ""


Judge = Callable[[str, Sequence[ScoredNode]], Awaitable[Judgement]]


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """The retrieved sources in order, and why retrieval stopped."""

    found: tuple[ScoredNode, ...]
    stopped: Stop
    depth: int
    confidence: float
    tokens: int


DEFAULT = RetrievalConfig()


async def judge_by_words(question: str, found: Sequence[ScoredNode]) -> Judgement:
    """Confidence is the share of the question's words in the best source. The refined query repeats the words that no
    source has."""
    wanted = {word: terms_of(word) for word in telling_words(question)}
    if not wanted or not found:
        return Judgement(confidence=0.0)
    held = [terms_of(f"{each.node.name}\n{each.node.content}") for each in found]
    best = max(sum(terms <= one for terms in wanted.values()) for one in held)
    missing = [word for word, terms in wanted.items() if not any(terms <= one for one in held)]
    return Judgement(confidence=best / len(wanted), refined=f"{question} {' '.join(missing)}" if missing else "")


async def retrieve(
    search: Search, question: str, config: RetrievalConfig = DEFAULT, judge: Judge = judge_by_words
) -> Retrieved:
    """Retrieve step by step, no source twice. Sources that exceed the rest of the token budget are skipped."""
    kept: list[ScoredNode] = []
    seen: set[str] = set()
    query, tokens, depth, confidence = question, 0, 0, 0.0
    stopped: Stop = "depth"
    while depth < config.max_depth:
        depth += 1
        found = [each for each in await search(query, config.initial_k, seen) if each.node.id not in seen]
        seen.update(each.node.id for each in found)
        fitting, tokens = _fitting(found, tokens, config.max_retrieval_tokens)
        if not fitting:
            stopped = "tokens" if found else "exhausted"
            break
        kept += fitting
        judgement = await judge(question, kept)
        confidence, query = judgement.confidence, judgement.refined or question
        if confidence >= config.confidence_threshold:
            stopped = "sufficient"
            break
    return Retrieved(found=tuple(kept), stopped=stopped, depth=depth, confidence=confidence, tokens=tokens)


def _fitting(found: Sequence[ScoredNode], used: int, most: int) -> tuple[list[ScoredNode], int]:
    """The sources that fit the rest of the budget, and the tokens used then."""
    fitting = []
    for each in found:
        tokens = estimate_tokens(f"{each.node.name}\n{each.node.content}")
        if used + tokens <= most:
            fitting.append(each)
            used += tokens
    return fitting, used
