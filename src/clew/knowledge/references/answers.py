"""Answers from references: the passages that fit a question, each with its source; or a model's words, held against the
sources that they cite. What nobody vouches for bears a mark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.catalog.text import inline
from clew.knowledge.evidence.conflicts import Conflict
from clew.knowledge.evidence.freshness import freshness_of
from clew.knowledge.evidence.naming import citation_of
from clew.knowledge.evidence.prompt import build_trust_prompt, parse_response
from clew.knowledge.evidence.provenance import annotate, cited
from clew.knowledge.evidence.quality import Evidence, evidence_of
from clew.knowledge.evidence.trust import level_of, trust_of
from clew.knowledge.membership import telling_words, terms_of
from clew.llm.messages import Message
from clew.llm.requests import Model, ModelRequest
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.kinds import NodeDomain
from clew.trail.node import marked
from clew.trail.nodes import UNVERIFIED, Node, ScoredNode

Status = Literal["ok", "no_matches"]
EXCERPT, SHOWN_TO_MODEL = 300, 1_000
NOTHING = "No reference here says anything on that."
SUPPORTED = 0.5
"""The share of the words of a statement that the sources it cites must have."""
MIN_WORDS = 4
"""Shorter lines state nothing: they are headings, or lead over to something."""
LONG_HEADING = 8
"""A heading of so many words states something after all."""
MOST_DOUBTS = 5

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?!\[\d)|(?<=[.!?] \[\d\])\s+|\n+")


class Cited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source as it is shown: `place` leads back to it; `warning` is what a reader should know; `approach` is what of
    several it was found for, `how` by which way."""

    number: int
    id: str
    name: str
    place: str
    domain: str
    type: str
    trust: int
    level: str
    excerpt: str
    warning: str = ""
    approach: str = ""
    how: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill found. `text` cites its sources by number; it is verified where it is what the sources say, and
    begins with a mark where it is not. `gaps` are recommendations that no code seems to follow."""

    skill: str
    question: str
    status: Status
    text: str
    sources: tuple[Cited, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    is_verified: bool = True
    is_cached: bool = False
    is_synthesised: bool = False
    tokens: int = 0


class Worded(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said, word for word but for keys, and what it cost. Empty where none was asked."""

    text: str = ""
    tokens: int = 0


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a model made of sources as it is shown, and what is wrong with it."""

    text: str
    is_verified: bool
    doubts: tuple[str, ...]


def is_doubtful(node: Node) -> bool:
    """Whether nobody vouches for a node. Code is what is so."""
    return node.domain is not NodeDomain.CODE and not node.verified


def cite(found: ScoredNode, number: int, question: str, at: datetime, *, approach: str = "", how: str = "") -> Cited:
    """A node as a source, with the passage that fits the question best."""
    node = found.node
    trust = trust_of(node, at)
    level, known = level_of(trust)
    shown = inline(mask_keys(passage(node.content or node.signature or node.name, question, EXCERPT)), EXCERPT)
    return Cited(
        number=number,
        id=node.id,
        name=inline(mask_keys(node.name)),
        place=_place(node),
        domain=node.domain.label,
        type=node.node_type.label,
        trust=int(trust),
        level=level,
        excerpt=marked(shown) if is_doubtful(node) else shown,
        warning=freshness_of(node, at).warning or known,
        approach=approach,
        how=how,
        authors=tuple(inline(each, 100) for each in node.authors),
        year=node.published_at.year if node.published_at else None,
        venue=inline(str(node.metadata.get("venue", "")), 100),
    )


def _place(node: Node) -> str:
    """Where a source is: of a package, the file and lines of the version that is installed."""
    file = node.metadata.get("file")
    if node.package is None or not file:
        return citation_of(node)
    bare = msgspec.structs.replace(node, path=str(file))
    return f"{inline(node.source or node.package, 100)}: {citation_of(bare)}"


def passage(text: str, question: str, limit: int) -> str:
    """The part of a text, of at most about `limit` letters, that has most of the words of a question."""
    plain = text.removeprefix(UNVERIFIED).strip()
    if len(plain) <= limit:
        return plain
    wanted = [terms_of(word) for word in telling_words(question)]
    sentences = [each for each in _SENTENCE.split(plain) if each.strip()]
    scores = [sum(terms <= (held := terms_of(each)) and bool(held) for terms in wanted) for each in sentences]
    at = max(range(len(scores)), key=lambda each: (scores[each], -each))
    chosen = sentences[at]
    for each in sentences[at + 1 :]:
        if len(chosen) + len(each) >= limit:
            break
        chosen += f" {each}"
    return chosen[:limit]


def evidence_for(found: ScoredNode, question: str, at: datetime) -> Evidence:
    """A node as evidence for a question, with the passage that fits it, marked where nobody vouches for it."""
    evidence = evidence_of(found, at)
    shown = passage(evidence.content, question, SHOWN_TO_MODEL)
    return msgspec.structs.replace(evidence, content=marked(shown) if is_doubtful(found.node) else shown)


async def ask_model(
    model: Model, task: str, found: Sequence[ScoredNode], conflicts: Sequence[Conflict], question: str, at: datetime
) -> Worded:
    """What a model makes of the sources, in this order. Raises ModelError."""
    evidence = [evidence_for(each, question, at) for each in found]
    prompt = mask_keys(build_trust_prompt(task, evidence, conflicts))
    answer = await model.answer(ModelRequest(messages=(Message(role="user", content=prompt),)))
    tokens = count_tokens(prompt) + count_tokens(answer.content)
    return Worded(text=mask_keys(answer.content).strip(), tokens=tokens)


def judge(text: str, found: Sequence[ScoredNode], question: str, at: datetime) -> Said:
    """A text that a model made of sources, held against them. Where there are doubts, it is marked, and cites what it
    seems to rest on."""
    nodes = [each.node for each in found]
    doubts = doubts_of(text, nodes, [evidence_for(each, question, at) for each in found])
    shown = marked(annotate(text, nodes, at).text) if doubts else text
    return Said(text=shown, is_verified=not doubts, doubts=doubts)


def doubts_of(text: str, nodes: Sequence[Node], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Why a text is not simply what its sources say: statements without a source, or that their sources do not bear
    out; numbers that no source has; conclusions; and sources that nobody vouches for."""
    parsed = parse_response(text, evidence)
    doubts = [f"it cites [{number}], which is no source" for number in parsed.unknown]
    doubts += [f"it concludes by itself: {inline(each, 120)}" for each in parsed.inferences]
    doubts += [
        f"[{n}] is unverified" for n in sorted(set(cited(text))) if n <= len(nodes) and n and is_doubtful(nodes[n - 1])
    ]
    doubts += [] if parsed.sources else ["it cites no source"]
    doubts += [f"no source bears out: {inline(each, 120)}" for each in _statements(text) if not _bears_out(each, nodes)]
    return tuple(doubts[:MOST_DOUBTS])


def _statements(text: str) -> list[str]:
    lines = ((each.strip(), len(telling_words(each))) for each in _SENTENCE.split(text))
    return [line for line, words in lines if words >= (LONG_HEADING if line.startswith("#") else MIN_WORDS)]


def _bears_out(statement: str, nodes: Sequence[Node]) -> bool:
    """Whether the sources that a statement cites have most of its words."""
    used = [nodes[number - 1] for number in cited(statement) if 1 <= number <= len(nodes)]
    held = terms_of("\n".join(f"{node.name}\n{node.signature or ''}\n{node.content}" for node in used))
    words = [terms_of(word) for word in telling_words(statement) if not word.isdigit()]
    return bool(used) and sum(terms <= held for terms in words) >= SUPPORTED * len(words)
