"""Retrieval in steps: a few sources, a look at whether they suffice, a better question for what is missing, and so on
until they do or a bound is met. Who looks is a function; without a model it counts which words are covered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal

import msgspec

from clew.knowledge.membership import telling_words, terms_of
from clew.llm.tokens import estimate_tokens
from clew.trail.nodes import ScoredNode

Stop = Literal["sufficient", "depth", "tokens", "exhausted"]
Search = Callable[[str, int, Collection[str]], Awaitable[list[ScoredNode]]]
"""From a question, a number and the ids to leave out to the best of what is left."""


class RetrievalConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How much is fetched a step, how many steps there are at most, from which confidence on it is enough, and the most
    tokens that all of it may take."""

    initial_k: int = 5
    max_depth: int = 4
    confidence_threshold: float = 0.8
    max_retrieval_tokens: int = 4_000


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """How far what is there answers the question, from 0 to 1, and what to ask next; empty to ask the same again."""

    confidence: float
    refined: str = ""


Judge = Callable[[str, Sequence[ScoredNode]], Awaitable[Judgement]]


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """What was retrieved, in order, and why it ended there."""

    found: tuple[ScoredNode, ...]
    stopped: Stop
    depth: int
    confidence: float
    tokens: int


DEFAULT = RetrievalConfig()


async def judge_by_words(question: str, found: Sequence[ScoredNode]) -> Judgement:
    """The share of the question's words that the best single source has; next, the question with more weight on the
    words that none has."""
    wanted = {word: terms_of(word) for word in telling_words(question)}
    if not wanted or not found:
        return Judgement(confidence=0.0)
    held = [terms_of(f"{each.node.name}\n{each.node.content}") for each in found]
    best = max(sum(terms <= one for terms in wanted.values()) for one in held)
    missing = [word for word, terms in wanted.items() if not any(terms <= one for one in held)]
    refined = f"{question} {' '.join(missing)}" if missing else ""
    return Judgement(confidence=best / len(wanted), refined=refined)


async def retrieve(
    search: Search, question: str, config: RetrievalConfig = DEFAULT, judge: Judge = judge_by_words
) -> Retrieved:
    """Retrieve in steps, nothing twice. What is too long for the tokens that are left is passed over."""
    kept: list[ScoredNode] = []
    seen: set[str] = set()
    query, tokens, judgement = question, 0, Judgement(confidence=0.0)
    for depth in range(1, config.max_depth + 1):
        found = [each for each in await search(query, config.initial_k, seen) if each.node.id not in seen]
        if not found:
            return _ended(kept, "exhausted", depth, judgement, tokens)
        seen.update(each.node.id for each in found)
        fitting, tokens = _fitting(found, tokens, config.max_retrieval_tokens)
        kept += fitting
        if not fitting:
            return _ended(kept, "tokens", depth, judgement, tokens)
        judgement = await judge(question, kept)
        if judgement.confidence >= config.confidence_threshold:
            return _ended(kept, "sufficient", depth, judgement, tokens)
        query = judgement.refined or question
    return _ended(kept, "depth", config.max_depth, judgement, tokens)


def _fitting(found: Sequence[ScoredNode], used: int, most: int) -> tuple[list[ScoredNode], int]:
    """Those that fit into what is left, and what is used then."""
    fitting = []
    for each in found:
        tokens = estimate_tokens(f"{each.node.name}\n{each.node.content}")
        if used + tokens <= most:
            fitting.append(each)
            used += tokens
    return fitting, used


def _ended(kept: Sequence[ScoredNode], stopped: Stop, depth: int, judgement: Judgement, tokens: int) -> Retrieved:
    return Retrieved(found=tuple(kept), stopped=stopped, depth=depth, confidence=judgement.confidence, tokens=tokens)
