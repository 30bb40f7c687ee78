"""Findings of research: the passages that answer a request, each with its source; and the text that a model writes from
them, checked against the sources it cites. Unverified text is marked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.knowledge.evidence.citations import citation_of
from clew.knowledge.evidence.conflicts import Conflict
from clew.knowledge.evidence.prompt import build_trust_prompt, parse_response
from clew.knowledge.evidence.provenance import annotate, cited
from clew.knowledge.evidence.trust import Evidence, evidence_of, freshness_of, level_of, trust_of
from clew.knowledge.membership import telling_words, terms_of
from clew.knowledge.upsert import find_keyed, keep_keyed
from clew.llm.messages import Message
from clew.llm.requests import Model, ModelRequest
from clew.llm.tokens import count_tokens
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Draft
from clew.trail.kinds import NodeDomain
from clew.trail.node import as_text, marked
from clew.trail.nodes import UNVERIFIED, Node, ScoredNode
from clew.trail.store import Trail

NOTHING = "No reference here says anything on that."
EXCERPT, SHOWN_TO_MODEL = 300, 1_000
SUPPORTED = 0.5
"""The share of a statement's words that its cited sources must contain."""
MIN_WORDS, LONG_HEADING = 4, 8
"""Shorter lines, and headings of fewer words, are not statements."""
MOST_DOUBTS, MOST_GAPS = 5, 10
SCHEMA = "system.research.v1"
LIFETIME = timedelta(days=1)
"""How long the cache keeps a model's text."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?!\[\d)|(?<=[.!?] \[\d\])\s+|\n+")
_ADVISES = re.compile(r"\b(?:should|must|always|never|avoid|recommend(?:s|ed)?|prefer|ensure)\b", re.IGNORECASE)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A research request. `settings` are part of its cache key; `task` is the instruction for a model, empty to ask
    none. `groups` assigns ids of nodes to `headings`; `how` tells how a node was found; `suggests` names other
    domains to ask."""

    skill: str
    question: str
    settings: Mapping[str, Any] = {}
    task: str = ""
    title: str = ""
    headings: Sequence[str] = ()
    groups: Mapping[str, Sequence[str]] = {}
    criteria: Sequence[str] = ()
    how: Mapping[str, str] = {}
    gaps: Sequence[str] = ()
    suggests: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source with the passage that fits the question best. `place` leads back to the source."""

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
    groups: tuple[str, ...] = ()
    how: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request. `text` cites its sources by number; a text that its sources do not support begins with
    a mark. `gaps` are recommendations that the code does not seem to follow, `also_exists_in` other domains to ask."""

    skill: str
    question: str
    status: Literal["ok", "no_matches"]
    text: str
    sources: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    also_exists_in: tuple[str, ...] = ()
    stopped: str = ""
    is_verified: bool = True
    is_cached: bool = False
    is_synthesised: bool = False
    tokens: int = 0


def build_findings(
    request: Request, found: Sequence[ScoredNode], conflicts: Sequence[Conflict], at: datetime
) -> Findings:
    """The findings in the words of their sources."""
    sources = tuple(_finding(request, each.node, number, at) for number, each in enumerate(found, 1))
    return Findings(
        skill=request.skill,
        question=request.question,
        status="ok",
        text=_render(request, sources),
        sources=sources,
        warnings=tuple(dict.fromkeys(each.warning for each in sources if each.warning)),
        conflicts=tuple(mask_keys(f"{each.description}; believe {each.resolution}") for each in conflicts),
        gaps=tuple(request.gaps),
    )


def _finding(request: Request, node: Node, number: int, at: datetime) -> Finding:
    trust = trust_of(node, at)
    level, known = level_of(trust)
    text = passage(node.content or node.signature or node.name, request.question, EXCERPT)
    shown = inline(mask_keys(text), EXCERPT)
    return Finding(
        number=number,
        id=node.id,
        name=inline(mask_keys(node.name)),
        place=_place(node),
        domain=node.domain.label,
        type=node.node_type.label,
        trust=int(trust),
        level=level,
        excerpt=marked(shown) if _is_unverified(node) else shown,
        warning=freshness_of(node, at).warning or known,
        groups=tuple(request.groups.get(node.id, ())),
        how=request.how.get(node.id, ""),
        authors=tuple(inline(each, 100) for each in node.authors),
        year=node.published_at.year if node.published_at else None,
        venue=inline(str(node.metadata.get("venue", "")), 100),
    )


def _is_unverified(node: Node) -> bool:
    return node.domain is not NodeDomain.CODE and not node.verified


def _place(node: Node) -> str:
    """The citation of a node; for a package, the file and lines of the installed version."""
    file = node.metadata.get("file")
    if node.package is None or not file:
        return citation_of(node)
    return f"{inline(node.source or node.package, 100)}: {citation_of(msgspec.structs.replace(node, path=str(file)))}"


def passage(text: str, question: str, limit: int) -> str:
    """The part of a text with the most words of a question, about `limit` characters long."""
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


def _render(request: Request, sources: Sequence[Finding]) -> str:
    """A line for each source, below the headings of the request."""
    parts = [f"# {inline(request.title, 200)}"] if request.title else []
    for heading in request.headings:
        own = [each for each in sources if heading in each.groups]
        lines = [f"## {inline(heading, 100)}", *(map(_line, own) if own else ["Nothing was found."])]
        for criterion in request.criteria:
            wanted = [terms_of(word) for word in telling_words(criterion)]
            matched = [f"[{each.number}]" for each in own if any(terms <= terms_of(each.excerpt) for terms in wanted)]
            lines.append(f"{inline(criterion, 100)}: {' '.join(matched) or 'nothing was found'}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if request.headings else "\n".join(map(_line, sources))


def _line(source: Finding) -> str:
    about = ", ".join(filter(None, (*source.authors[:3], str(source.year or ""), source.venue)))
    named = f"{source.name} ({about})" if about else source.name
    return f"[{source.number}] {named} <{source.place}>: {source.excerpt}"


def find_gaps(theory: Sequence[ScoredNode], practice: Sequence[ScoredNode]) -> tuple[str, ...]:
    """Recommendations of which the found code shows less than half of the words: hints for a person to check."""
    code = [terms_of(f"{each.node.name}\n{each.node.signature or ''}\n{each.node.content}") for each in practice]
    found = []
    for each in theory:
        for sentence in _SENTENCE.split(each.node.content):
            words = [terms_of(word) for word in telling_words(sentence)]
            is_seen = any(sum(terms <= held for terms in words) >= len(words) / 2 for held in code)
            if _ADVISES.search(sentence) and len(words) > 2 and not is_seen:
                text = inline(mask_keys(sentence.removeprefix(UNVERIFIED)), 200)
                shown = marked(text) if _is_unverified(each.node) else text
                found.append(f"not seen in the code: {shown} ({inline(each.node.name, 80)})")
    return tuple(dict.fromkeys(found))[:MOST_GAPS]


# -- text of a model -------------------------------------------------------------------------------------------


class ModelText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a model with keys masked, and its cost in tokens."""

    text: str
    tokens: int


async def write_text(
    model: Model, request: Request, found: Sequence[ScoredNode], conflicts: Sequence[Conflict], at: datetime
) -> ModelText:
    """Let a model answer the task from the numbered sources. Raises ModelError."""
    evidence = [_evidence(each, request.question, at) for each in found]
    prompt = mask_keys(build_trust_prompt(request.task, evidence, conflicts))
    answer = await model.answer(ModelRequest(messages=(Message(role="user", content=prompt),)))
    tokens = count_tokens(prompt) + count_tokens(answer.content)
    return ModelText(text=mask_keys(answer.content).strip(), tokens=tokens)


def with_text(plain: Findings, written: ModelText, found: Sequence[ScoredNode], at: datetime) -> Findings:
    """The findings with a model's text and the list of sources that its [n] lead to. A text with doubts is marked, and
    annotated with its likely sources."""
    nodes = [each.node for each in found]
    doubts = find_doubts(written.text, nodes, [_evidence(each, plain.question, at) for each in found])
    annotated = annotate(written.text, nodes, at)
    shown = marked(annotated.text) if doubts else written.text
    return msgspec.structs.replace(
        plain,
        text=f"{shown}\n\n{annotated.sources}",
        is_verified=not doubts,
        is_synthesised=True,
        warnings=(*plain.warnings, *doubts),
        tokens=written.tokens,
    )


def find_doubts(text: str, nodes: Sequence[Node], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Reasons not to believe a text: unknown or unverified sources, inferences, and statements without support."""
    parsed = parse_response(text, evidence)
    doubts = [f"it cites [{number}], which is no source" for number in parsed.unknown]
    doubts += [f"it concludes by itself: {inline(each, 120)}" for each in parsed.inferences]
    known = sorted({number for number in cited(text) if 1 <= number <= len(nodes)})
    doubts += [f"[{number}] is unverified" for number in known if _is_unverified(nodes[number - 1])]
    doubts += [] if parsed.sources else ["it cites no source"]
    doubts += [
        f"no source bears out: {inline(each, 120)}" for each in _statements(text) if not _has_support(each, nodes)
    ]
    return tuple(doubts[:MOST_DOUBTS])


def _evidence(found: ScoredNode, question: str, at: datetime) -> Evidence:
    evidence = evidence_of(found, at)
    shown = passage(evidence.content, question, SHOWN_TO_MODEL)
    return msgspec.structs.replace(evidence, content=marked(shown) if _is_unverified(found.node) else shown)


def _statements(text: str) -> list[str]:
    lines = ((each.strip(), len(telling_words(each))) for each in _SENTENCE.split(text))
    return [line for line, words in lines if words >= (LONG_HEADING if line.startswith("#") else MIN_WORDS)]


def _has_support(statement: str, nodes: Sequence[Node]) -> bool:
    """Whether the cited sources contain most words of a statement."""
    used = [nodes[number - 1] for number in cited(statement) if 1 <= number <= len(nodes)]
    held = terms_of("\n".join(f"{node.name}\n{node.signature or ''}\n{node.content}" for node in used))
    words = [terms_of(word) for word in telling_words(statement) if not word.isdigit()]
    return bool(used) and sum(terms <= held for terms in words) >= SUPPORTED * len(words)


# -- cache -----------------------------------------------------------------------------------------------------


class TextCache:
    """Texts of a model on the trail, shared by all sessions of an owner with the same scopes (SYL-34). The key covers
    the request and the content of its sources. A cached text is checked again like a new one."""

    def __init__(self, trail: Trail, clock: Clock, by: Principal) -> None:
        self._trail, self._clock, self._by = trail, clock, by

    async def get(self, request: Request, nodes: Sequence[Node]) -> ModelText | None:
        """The text for the same request and sources, unless it has expired."""
        found = await find_keyed(self._trail, self._key(request, nodes), by=self._by)
        if found is None or found.schema_name != SCHEMA or str(found.context.get("until", "")) <= self._now():
            return None
        try:
            return msgspec.convert(found.context, ModelText)
        except msgspec.ValidationError:
            return None  # another program wrote this record

    async def put(self, request: Request, nodes: Sequence[Node], written: ModelText) -> None:
        """Store a text. Does nothing for a caller who may not write."""
        context = {**msgspec.to_builtins(written), "until": as_text(self._clock.now() + LIFETIME, "until")}
        title = inline(mask_keys(f"{request.skill}: {request.question}"), 200)
        draft = Draft(title=title, context=context, schema_name=SCHEMA)
        await keep_keyed(self._trail, self._key(request, nodes), draft, by=self._by)

    def _key(self, request: Request, nodes: Sequence[Node]) -> str:
        content = [(node.id, node.content, node.content_hash, node.verified) for node in nodes]
        asked = (request.skill, " ".join(request.question.split()), request.settings)
        plain = msgspec.json.encode([asked, sorted(self._by.scopes), content], order="deterministic")
        return f"research:{hashlib.sha256(plain).hexdigest()}"

    def _now(self) -> str:
        return as_text(self._clock.now(), "now")
