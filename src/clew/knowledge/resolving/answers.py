"""Answers as they are given: in the words of their sources, or in those of a model, with a line for each source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from clew.catalog.answers import Source
from clew.catalog.text import code_span, inline, plain
from clew.knowledge.evidence.conflicts import Conflict
from clew.knowledge.evidence.naming import COMMIT_PREFIX, citation_of
from clew.knowledge.evidence.quality import Evidence
from clew.knowledge.evidence.trust import level_of
from clew.knowledge.history.changelog import CHANGELOG
from clew.knowledge.resolving.excerpts import MOST_LETTERS, excerpt
from clew.knowledge.resolving.intents import Classified
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.uses import Use, UseQuestion
from clew.secrecy import mask_keys
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import UNVERIFIED, Node

Layer = Literal["cache", "graph", "model"]
EXCERPT = 160
WORTH_SHOWING = 20
"""Fewer letters of a description say nothing."""
DISAGREE = "Sources disagree:"
NOTHING = "Nothing that is known here answers that."
STILL_READING = "Not all files have been read yet: ask again in a moment."


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `status` is no_matches where nothing is known; then there is no source. `is_verified` says whether the
    text is what the sources say; what a model put into words (`is_worded`) and no check bore out is marked in the text
    as well, and `problem` says why a model that was asked did not do so."""

    question: str
    status: Literal["ok", "no_matches"]
    text: str
    layer: Layer
    target: Target
    intent: Intent
    subject: str
    sources: tuple[Source, ...] = ()
    conflicts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_verified: bool = True
    is_worded: bool = False
    problem: str = ""
    tokens: int = 0
    saved_tokens: int = 0
    latency_ms: float = 0.0


def with_warnings(answer: Resolved, *warnings: str) -> Resolved:
    return msgspec.structs.replace(answer, warnings=(*answer.warnings, *warnings))


def for_now(answer: Resolved) -> Resolved:
    """An answer that there is nothing, while not all is known: it may be there all the same."""
    first, *others = answer.text.split("\n")
    text = "\n".join((f"{first} {STILL_READING}", *others))
    return with_warnings(msgspec.structs.replace(answer, text=text, is_verified=False), STILL_READING)


def extracted(
    question: str, what: Classified, chosen: Sequence[Evidence], used: Sequence[Node], conflicts: Sequence[Conflict]
) -> Resolved:
    """An answer in the words of its sources."""
    sources = cited_sources(chosen, used)
    cited = zip(sources, used, strict=True)
    lines = [
        f"[{source.number}] {source.place}: {gist(node, question)}{_beside(node, question)}" for source, node in cited
    ]
    told = [f"{DISAGREE} {each.description}; believe {each.resolution}" for each in conflicts]
    return build_answer(question, what, "\n".join([*told, *lines]), "graph", sources, conflicts)


def _beside(node: Node, question: str) -> str:
    """What belongs to a source beside what it says: the version and day of a change, and who committed, where that is
    the question."""
    if said := version_of(node):
        return said
    if node.id.startswith(COMMIT_PREFIX) and node.authors and question.lower().startswith("who"):
        return f" · {inline(mask_keys(node.authors[0]), EXCERPT)}"
    return ""


def version_of(node: Node) -> str:
    """The version and the day of a change that a changelog tells of; nothing for any other source."""
    if node.metadata.get("kind") != CHANGELOG:
        return ""
    at = node.timestamp
    said = [str(node.metadata.get("version") or "unreleased"), *([f"{at:%Y-%m-%d}"] if at is not None else [])]
    return f" · {inline(', '.join(said), EXCERPT)}"


def told_uses(
    question: str, what: Classified, asked: UseQuestion, uses: Sequence[Use], shown: Sequence[Evidence]
) -> Resolved:
    """An answer on what uses what: a line for each use that is shown, with the place where it stands, and how many
    more there are."""
    sources = cited_sources(shown, [use.place for use in uses[: len(shown)]])
    lines = [f"[{source.number}] {source.place}: {_told(use)}" for source, use in zip(sources, uses, strict=False)]
    left = len(uses) - len(shown)
    return build_answer(
        question, what, "\n".join([*lines, *([f"… and {left:,} more"] if left else [])]), "graph", sources
    )


def told_no_use(question: str, what: Classified, none: str, definition: Node, shown: Sequence[Evidence]) -> Resolved:
    """The same where nothing was found: that, and where it is defined."""
    sources = cited_sources(shown, [definition])
    lines = [none, f"[1] {sources[0].place}: {gist(definition)}"]
    return build_answer(question, what, "\n".join(lines), "graph", sources)


def _told(use: Use) -> str:
    guess = " (by its name alone)" if use.is_guess else ""
    return f"{code_span(mask_keys(use.user), EXCERPT)} {use.does} {code_span(mask_keys(use.used), EXCERPT)}{guess}"


def gist(node: Node, question: str = "") -> str:
    """What a node says, on one line: code as it is written, prose without markup, and of long prose what speaks of the
    question. The mark of what is unverified stays."""
    if node.domain is NodeDomain.CODE:
        return _code_gist(node)
    bare = node.content.removeprefix(UNVERIFIED)
    said = mask_keys((bare or node.name)[:MOST_LETTERS])  # before it is taken apart: a key may go over lines
    shown = inline(excerpt(said, question, EXCERPT), EXCERPT)
    return shown if bare == node.content else f"{UNVERIFIED} {shown}"


def _code_gist(node: Node) -> str:
    """The signature, and what is left of EXCERPT for what it says of itself."""
    said = node.signature or node.name
    code = code_span(mask_keys(said[: EXCERPT * 4]), EXCERPT)
    doc = node.content.removeprefix(node.signature or "").strip()
    left = EXCERPT - len(code)
    return f"{code} · {inline(mask_keys(doc[: EXCERPT * 4]), left)}" if doc and left >= WORTH_SHOWING else code


def cited_sources(chosen: Sequence[Evidence], used: Sequence[Node]) -> tuple[Source, ...]:
    return tuple(
        Source(
            number=number,
            id=node.id,
            place=citation_of(node),
            name=plain(mask_keys(node.name), EXCERPT),
            trust=level_of(each.parts.trust)[0],
            warning=each.warning or level_of(each.parts.trust)[1],
        )
        for number, (each, node) in enumerate(zip(chosen, used, strict=True), 1)
    )


def build_answer(
    question: str,
    what: Classified,
    text: str,
    layer: Layer,
    sources: tuple[Source, ...] = (),
    conflicts: Sequence[Conflict] = (),
    *,
    status: Literal["ok", "no_matches"] = "ok",
    is_verified: bool = True,
) -> Resolved:
    return Resolved(
        question=question,
        status=status,
        text=text,
        layer=layer,
        target=what.target,
        intent=what.intent,
        subject=what.subject,
        sources=sources,
        conflicts=tuple(f"{each.description}; believe {each.resolution}" for each in conflicts),
        warnings=tuple(dict.fromkeys(each.warning for each in sources if each.warning)),
        is_verified=is_verified,
    )
