"""Findings of research: the passages that answer a request, each with its source; and the text that a model writes from
them, checked against the sources it cites. Unverified text is marked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.knowledge.answering.sources import excerpt
from clew.knowledge.evidence.conflicts import SourceConflict
from clew.knowledge.evidence.prompt import ask_model, parse_response
from clew.knowledge.evidence.provenance import annotate, cited, source_list
from clew.knowledge.evidence.trust import Evidence, citation_of, evidence_of, freshness_of, level_of, trust_of
from clew.knowledge.nodes.kinds import NodeDomain
from clew.knowledge.nodes.node_store import UNVERIFIED, Node, ScoredNode, as_text, marked
from clew.knowledge.text import share_of, stems
from clew.knowledge.upsert import find_keyed, keep_keyed
from clew.lazy_pattern import lazy_pattern
from clew.llm.requests import Model
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import Draft
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

_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+(?!\[\d)|(?<=[.!?] \[\d\])\s+|\n+")
_ADVISES = lazy_pattern(r"\b(?:should|must|always|never|avoid|recommend(?:s|ed)?|prefer|ensure)\b", re.IGNORECASE)


class ResearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A research request. `task` is the instruction for a model, empty to ask none. `groups` are headings with the ids
    of their nodes; `suggests` names other domains to ask."""

    question: str
    task: str = ""
    title: str = ""
    groups: Mapping[str, Sequence[str]] = {}
    criteria: Sequence[str] = ()
    gaps: Sequence[str] = ()
    suggests: bool = False


class ResearchFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A source with the passage that fits the question best. `place` leads back to the source."""

    number: int
    node: Node
    name: str
    place: str
    excerpt: str
    warning: str = ""


class ResearchFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request. `text` cites its sources by number; a text that its sources do not support begins with
    a mark. `gaps` are recommendations that the code does not seem to follow, `also_exists_in` other domains to ask."""

    status: Literal["ok", "no_matches"]
    text: str
    sources: tuple[ResearchFinding, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    also_exists_in: tuple[str, ...] = ()
    stopped: str = ""
    is_verified: bool = True
    is_cached: bool = False
    is_synthesised: bool = False


def build_findings(
    request: ResearchRequest, found: Sequence[ScoredNode], conflicts: Sequence[SourceConflict], at: datetime
) -> ResearchFindings:
    """The findings in the words of their sources."""
    sources = tuple(_finding(request.question, each.node, number, at) for number, each in enumerate(found, 1))
    return ResearchFindings(
        status="ok",
        text=_render(request, sources),
        sources=sources,
        warnings=tuple(dict.fromkeys(each.warning for each in sources if each.warning)),
        conflicts=tuple(mask_keys(f"{each.description}; believe {each.resolution}") for each in conflicts),
        gaps=tuple(request.gaps),
    )


def _finding(question: str, node: Node, number: int, at: datetime) -> ResearchFinding:
    said = mask_keys((node.content or node.signature or node.name).removeprefix(UNVERIFIED))
    shown = inline(excerpt(said, question, EXCERPT), EXCERPT)
    _, warning = level_of(trust_of(node, at))
    return ResearchFinding(
        number=number,
        node=node,
        name=inline(mask_keys(node.name)),
        place=citation_of(node),
        excerpt=marked(shown) if _is_unverified(node) else shown,
        warning=freshness_of(node, at).warning or warning,
    )


def _is_unverified(node: Node) -> bool:
    return node.domain is not NodeDomain.CODE and not node.verified


def _render(request: ResearchRequest, sources: Sequence[ResearchFinding]) -> str:
    """A line for each source, below the headings of the request."""
    parts = [f"# {inline(request.title, 200)}"] if request.title else []
    for heading, ids in request.groups.items():
        own = [each for each in sources if each.node.id in ids]
        lines = [f"## {inline(heading, 100)}", *(map(_line, own) if own else ["Nothing was found."])]
        for criterion in request.criteria:
            matched = [f"[{each.number}]" for each in own if stems(criterion) & stems(each.excerpt)]
            lines.append(f"{inline(criterion, 100)}: {' '.join(matched) or 'nothing was found'}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if request.groups else "\n".join(map(_line, sources))


def _line(source: ResearchFinding) -> str:
    node = source.node
    published = str(node.published_at.year) if node.published_at else ""
    said = (*node.authors[:3], published, str(node.metadata.get("venue", "")))
    about = ", ".join(inline(each, 100) for each in said if each)
    return f"[{source.number}] {source.name}{f' ({about})' if about else ''} <{source.place}>: {source.excerpt}"


def find_gaps(theory: Sequence[ScoredNode], practice: Sequence[ScoredNode]) -> tuple[str, ...]:
    """Recommendations with less than half of their words in the found code. They are hints for a person to check."""
    code = [_text_of(each.node) for each in practice]
    found = []
    for node in (each.node for each in theory):
        for sentence in _SENTENCE.split(node.content.removeprefix(UNVERIFIED)):
            words = stems(sentence)
            if _ADVISES.search(sentence) and len(words) > 2 and not any(share_of(words, text) >= 0.5 for text in code):
                text = inline(mask_keys(sentence), 200)
                shown = marked(text) if _is_unverified(node) else text
                found.append(f"not seen in the code: {shown} ({inline(node.name, 80)})")
    return tuple(dict.fromkeys(found))[:MOST_GAPS]


def _text_of(node: Node) -> str:
    return f"{node.name}\n{node.signature or ''}\n{node.content}"


# -- text of a model -------------------------------------------------------------------------------------------


async def write_text(
    model: Model,
    request: ResearchRequest,
    found: Sequence[ScoredNode],
    conflicts: Sequence[SourceConflict],
    at: datetime,
) -> str:
    """Let a model answer the task from the numbered sources. Raises ModelError."""
    text, _ = await ask_model(model, request.task, [_evidence(each, request.question, at) for each in found], conflicts)
    return text


def with_text(
    plain: ResearchFindings, text: str, question: str, found: Sequence[ScoredNode], at: datetime
) -> ResearchFindings:
    """The findings with a model's text and the list of sources that its [n] lead to. A text with doubts is marked, and
    annotated with its likely sources."""
    nodes = [each.node for each in found]
    doubts = find_doubts(text, nodes, [_evidence(each, question, at) for each in found])
    shown = marked(annotate(text, nodes)) if doubts else text
    return msgspec.structs.replace(
        plain,
        text=f"{shown}\n\n{source_list(nodes, at)}",
        is_verified=not doubts,
        is_synthesised=True,
        warnings=(*plain.warnings, *doubts),
    )


def find_doubts(text: str, nodes: Sequence[Node], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The doubts about a text: unknown or unverified sources, inferences, and statements without support."""
    parsed = parse_response(text, evidence)
    doubts = [f"it cites [{number}], which is not a source" for number in parsed.unknown]
    doubts += [f"it concludes by itself: {inline(each, 120)}" for each in parsed.inferences]
    known = sorted({number for number in cited(text) if 1 <= number <= len(nodes)})
    doubts += [f"[{number}] is unverified" for number in known if _is_unverified(nodes[number - 1])]
    doubts += [] if parsed.sources else ["it cites no source"]
    statements = [each for each in _SENTENCE.split(text) if _is_statement(each.strip())]
    doubts += [f"no source bears out: {inline(each, 120)}" for each in statements if not _has_support(each, nodes)]
    return tuple(doubts[:MOST_DOUBTS])


def _evidence(found: ScoredNode, question: str, at: datetime) -> Evidence:
    evidence = evidence_of(found, at)
    content = evidence.content.removeprefix(UNVERIFIED)
    if len(content) > SHOWN_TO_MODEL and found.node.domain is not NodeDomain.CODE:
        content = excerpt(content, question, SHOWN_TO_MODEL)[:SHOWN_TO_MODEL]
    return msgspec.structs.replace(evidence, content=marked(content) if _is_unverified(found.node) else content)


def _is_statement(line: str) -> bool:
    return len(stems(line)) >= (LONG_HEADING if line.startswith("#") else MIN_WORDS)


def _has_support(statement: str, nodes: Sequence[Node]) -> bool:
    """Whether the cited sources contain most words of a statement."""
    used = [nodes[number - 1] for number in cited(statement) if 1 <= number <= len(nodes)]
    words = frozenset(word for word in stems(statement) if not word.isdigit())
    return bool(used) and share_of(words, "\n".join(map(_text_of, used))) >= SUPPORTED


# -- cache -----------------------------------------------------------------------------------------------------


def cache_key(request: ResearchRequest, nodes: Sequence[Node], by: Principal) -> str:
    """The key of a model's text, shared by all sessions of an owner with the same scopes (SYL-34). It covers the task
    and the content of its sources."""
    content = [(node.id, node.content, node.content_hash, node.verified) for node in nodes]
    plain = msgspec.json.encode([" ".join(request.task.split()), sorted(by.scopes), content])
    return f"research:{hashlib.sha256(plain).hexdigest()}"


async def find_text(trail: Trail, key: str, *, by: Principal, now: datetime) -> str | None:
    """The stored text, unless it has expired. It is checked again like a new one."""
    found = await find_keyed(trail, key, by=by)
    if found is None or found.schema_name != SCHEMA or str(found.context.get("until", "")) <= as_text(now, "now"):
        return None
    text = found.context.get("text")
    return text if isinstance(text, str) else None


async def keep_text(
    trail: Trail, key: str, request: ResearchRequest, text: str, *, by: Principal, now: datetime
) -> None:
    """Store a text. Does nothing for a caller who may not write."""
    context = {"text": text, "until": as_text(now + LIFETIME, "until")}
    title = inline(mask_keys(request.question), 200)
    await keep_keyed(trail, key, Draft(title=title, context=context, schema_name=SCHEMA), by=by)
