"""How passages of several sources stand together: as a list, by approach, beside the code, as a proposal. Nothing is
added to them but numbers and headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.catalog.text import inline
from clew.knowledge.membership import telling_words, terms_of
from clew.knowledge.references.answers import Cited, is_doubtful
from clew.secrecy import mask_keys
from clew.trail.node import marked
from clew.trail.nodes import UNVERIFIED, ScoredNode

MOST_GAPS = 10
_ADVISES = re.compile(r"\b(?:should|must|always|never|avoid|recommend(?:s|ed)?|prefer|ensure)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SEEN = 0.5
"""The share of the words of a recommendation that code which follows it has."""


def listed(sources: Sequence[Cited]) -> str:
    """A line for each source."""
    return "\n".join(map(_line, sources))


def compared(approaches: Sequence[str], criteria: Sequence[str], sources: Sequence[Cited]) -> str:
    """The sources of each approach, and which of them speak of each criterion."""
    parts = []
    for name in approaches:
        own = [each for each in sources if name in each.approach.split(", ")]
        lines = [f"## {inline(name, 100)}", *(map(_line, own) if own else ["Nothing was found."])]
        for criterion in criteria:
            wanted = [terms_of(word) for word in telling_words(criterion)]
            spoken = [f"[{each.number}]" for each in own if any(terms <= terms_of(each.excerpt) for terms in wanted)]
            lines.append(f"{inline(criterion, 100)}: {' '.join(spoken) or 'nothing was found'}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def side_by_side(sources: Sequence[Cited]) -> str:
    """What others wrote, then what the code does."""
    return _sections(sources, (("What others wrote", "academic"), ("What the code does", "code")))


def proposed(request: str, sources: Sequence[Cited], gaps: Sequence[str]) -> str:
    """The frame of a proposal, filled with what is known."""
    domains = (("What exists", "code"), ("What was decided before", "history"), ("What others wrote", "academic"))
    asked = inline(request, 200)
    opened = "\n".join(f"- {gap}" for gap in gaps) or "- Which of the above applies here is to be decided."
    head = f"# Design proposal: {asked}\n\n## What is asked\n\n{asked}"
    return f"{head}\n\n{_sections(sources, domains)}\n\n## Open questions\n\n{opened}"


def gaps_in(theory: Sequence[ScoredNode], practice: Sequence[ScoredNode]) -> tuple[str, ...]:
    """Recommendations of references of which the code that was found shows little; a hint for people to check."""
    code = [terms_of(f"{each.node.name}\n{each.node.signature or ''}\n{each.node.content}") for each in practice]
    found = []
    for each in theory:
        for sentence in _SENTENCE.split(each.node.content):
            words = [terms_of(word) for word in telling_words(sentence)]
            is_seen = any(sum(terms <= held for terms in words) >= _SEEN * len(words) for held in code)
            if _ADVISES.search(sentence) and len(words) > 2 and not is_seen:
                said = inline(mask_keys(sentence.removeprefix(UNVERIFIED)), 200)
                told = marked(said) if is_doubtful(each.node) else said
                found.append(f"not seen in the code: {told} ({inline(each.node.name, 80)})")
    return tuple(dict.fromkeys(found))[:MOST_GAPS]


def _sections(sources: Sequence[Cited], domains: Sequence[tuple[str, str]]) -> str:
    parts = []
    for heading, domain in domains:
        own = [each for each in sources if each.domain == domain]
        parts.append("\n".join((f"## {heading}", "", *(map(_line, own) if own else ["Nothing was found."]))))
    return "\n\n".join(parts)


def _line(source: Cited) -> str:
    about = ", ".join(filter(None, (*source.authors[:3], str(source.year or ""), source.venue)))
    named = f"{source.name} ({about})" if about else source.name
    return f"[{source.number}] {named} <{source.place}>: {source.excerpt}"
