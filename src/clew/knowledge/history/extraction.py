"""Facts in plain sentences, found by rule: defaults, requirements, what is used for what. What fits no rule is left as
the text that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from clew.knowledge.history.belief import Belief, Contradiction, Fact, Standing, find_contradictions, settle
from clew.knowledge.history.entries import Entry

MAX_TEXT = 50_000

_NAME = r"(?P<subject>`[^`\n]{1,80}`|[A-Za-z][\w./:#-]{0,79}(?: [\w./:#-]{1,40}){0,3}?)"
_UNIT = r"(?: (?:s|ms|min|minutes?|seconds?|hours?|days?|[KMG]i?B|or newer|or later|and newer))?"
_VALUE = rf"(?P<value>`[^`\n]{{1,80}}`|\"[^\"\n]{{1,80}}\"|'[^'\n]{{1,80}}'|[^\s,;]{{1,60}}{_UNIT})"
_VERSION = rf"(?P<value>(?:>= ?)?v?\d[\w.]*\+?{_UNIT})"
_PATH = r"(?P<value>`[^`\n]{1,120}`|[\w-]+(?:/[\w.-]+)+)"
_END = r"(?=[.,;:]?(?:\s|$))"
_STOP = r"(?=[.,;:\n]|$)"
_NOW = r"(?:now )?"
_SENTENCES = (
    ("default", rf"(?:the )?default (?:value )?(?:of|for) {_NAME} is {_NOW}{_VALUE}{_END}"),
    ("default", rf"{_NAME} {_NOW}defaults to {_VALUE}{_END}"),
    ("minimum version of {extra}", rf"{_NAME} {_NOW}(?:requires|needs) (?P<extra>[A-Z][\w-]{{1,30}}) {_VERSION}{_END}"),
    ("choice", rf"\bwe use (?P<value>`[^`\n]{{1,80}}`|[\w.+-]{{1,40}}) for (?P<subject>[\w -]{{2,60}}?){_STOP}"),
    ("place", rf"\bthe {_NAME} (?:is|lives|are|live) in {_PATH}{_END}"),
    ("limit", rf"(?:the )?limit (?:of|for) {_NAME} is {_NOW}{_VALUE}{_END}"),
)
_RULES = tuple((attribute, re.compile(sentence, re.IGNORECASE)) for attribute, sentence in _SENTENCES)


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of facts that disagree: those that count, those that were retired and by whom, those still open."""

    current: tuple[Standing, ...]
    retired: tuple[Standing, ...]
    open: tuple[Contradiction, ...]


def extract_facts(entry: Entry) -> list[Fact]:
    """The facts that an entry states, in order, each with the entry as its source. No model is asked."""
    return [
        Fact(
            subject=_bare(found["subject"]),
            attribute=attribute.format(extra=_bare(found["extra"]) if "{" in attribute else ""),
            value=_bare(found["value"]),
            valid_from=entry.created_at,
            source=f"chronicle of {entry.source or 'unknown'}",
            cite=entry.id,
            trust=entry.trust,
            text=found[0],
        )
        for attribute, found in _matches(entry.content[:MAX_TEXT])
    ]


def resolve_conflicts(entries: Sequence[Entry]) -> Resolved:
    """What entries state, and where they disagree. A later statement of the same writer retires the earlier; between
    writers both stay open. The entries themselves are left alone."""
    beliefs = [
        Belief(id=f"{entry.id}#{at}", fact=fact, recorded_at=entry.created_at)
        for entry in entries
        for at, fact in enumerate(extract_facts(entry))
    ]
    topics = dict.fromkeys(belief.fact.topic for belief in beliefs)
    groups = [settle([belief for belief in beliefs if belief.fact.topic == topic]) for topic in topics]
    standing = [each for group in groups for each in group]
    return Resolved(
        current=tuple(each for each in standing if each.retired_by is None),
        retired=tuple(each for each in standing if each.retired_by is not None),
        open=tuple(_all_open(groups)),
    )


def _all_open(groups: Iterable[Sequence[Standing]]) -> Iterator[Contradiction]:
    for group in groups:
        yield from find_contradictions(group)


def _matches(text: str) -> list[tuple[str, re.Match[str]]]:
    """What the rules find, in order; of two in the same place the first rule's."""
    found: list[tuple[str, re.Match[str]]] = []
    for attribute, rule in _RULES:
        for match in rule.finditer(text):
            if all(match.end() <= other.start() or match.start() >= other.end() for _, other in found):
                found.append((attribute, match))
    return sorted(found, key=lambda each: each[1].start())


def _bare(text: str) -> str:
    return text.strip().strip("`\"'").rstrip(".")
