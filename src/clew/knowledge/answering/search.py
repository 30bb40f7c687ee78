"""Hybrid search over the passages of a folder: words and vectors, implementation before tests, near-identical hits
folded, and an honest "not here" where the words of a question are not in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clew.knowledge.answering.question import (
    ASKING,
    QUANTITY,
    ParsedQuestion,
    QuestionKind,
    Tests,
    content_words,
    is_identifier,
)
from clew.knowledge.code.files import TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.passages import SYMBOL_KINDS
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.search.ranking import Shares
from clew.knowledge.code.search.search_index import PassageHit
from clew.trail.search.text import STOP

SHOWN = 6
LOOKED_AT = 60
WEAK, FAINT = 0.45, 0.05
"""A best passage that covers less of the question is weak; below FAINT it has nothing to do with it."""
PADDING = 0.4
"""A passage with less than this share of the best score only pads the answer."""
FOCUS = 3
"""A question is about its first content words. If these are missing, other matches do not answer it."""
MAX_NUMBER_GAP, MAX_EXCERPT = 2, 200
"""Lines between the words of a quantity and its number."""

SHARES = {
    QuestionKind.CODE: Shares(text=0.75, changelog=0.6),
    QuestionKind.EXPLAIN: Shares(text=0.75, changelog=0.6),
    QuestionKind.HOWTO: Shares(text=1.1, changelog=0.6),
    QuestionKind.HISTORY: Shares(text=1.0, changelog=1.2),
    QuestionKind.QUANTITY: Shares(text=1.0, changelog=0.6),
    QuestionKind.OVERVIEW: Shares(text=1.2, changelog=0.6),
}
_BEFORE_VERB_WORDS = """
    i you we they he she it who what which that to will would can could should may might must do does did not be been
    being am is are was were has have had get gets got getting still never always just also only and
"""
_BEFORE_VERBS = frozenset(_BEFORE_VERB_WORDS.split())
_AFTER_VERB_WORDS = "up out off away down back over around behind into onto me him it us them itself"
_AFTER_VERBS = frozenset(_AFTER_VERB_WORDS.split())
_DESCRIPTIVE = re.compile(r"(?:ly|ed|ing|est|ful)$")
_TOKEN = re.compile(r"[A-Za-z][\w']*|[^\sA-Za-z]")
_NUMBER = re.compile(r"(?<![\w.])\d")


class FoundPassages(NamedTuple):
    """The passages for a question, best first. `nearest` is the best where nothing answers the question, and `missing`
    are its nouns that occur nowhere."""

    hits: list[PassageHit]
    nearest: PassageHit | None = None
    missing: tuple[str, ...] = ()


async def search(code: CodeGraph, question: ParsedQuestion, *, limit: int = SHOWN) -> FoundPassages:
    """Search for all words of a question."""
    words = [word for spelled in code.correct(question.words) for word in spelled]
    shares = SHARES[question.kind]
    if question.tests in (Tests.ALSO, Tests.ONLY):
        shares = shares._replace(test=1.0)
    hits = await code.passages(words, shares=shares, limit=LOOKED_AT)
    if question.tests in (Tests.ONLY, Tests.NEVER):
        is_asked = question.tests is Tests.ONLY
        hits = [hit for hit in hits if bool(kind_of(hit.place.path, hit.place.name) & TEST) is is_asked]
    best = max((hit.cover for hit in hits[:limit]), default=0.0)
    missing = missing_nouns(question.text, code) if best < WEAK else []
    is_absent = best < FAINT or not set(question.words[:FOCUS]).isdisjoint(missing)
    if is_absent or (question.kind is QuestionKind.QUANTITY and not await _has_number(code, question, hits[:limit])):
        missing = missing or missing_nouns(question.text, code)
        return FoundPassages([], hits[0] if hits else None, tuple(missing))
    return FoundPassages(fold((hit for hit in hits if hit.score >= PADDING * hits[0].score), limit))


def fold(hits: Iterable[PassageHit], limit: int) -> list[PassageHit]:
    """The first hits without those that overlap a better one, or are the same function in a sibling file."""
    kept: list[PassageHit] = []
    for hit in hits:
        if not any(_overlap(hit.place, one.place) or _are_twins(hit.place, one.place) for one in kept):
            kept.append(hit)
        if len(kept) == limit:
            break
    return kept


def missing_nouns(text: str, code: CodeGraph) -> list[str]:
    """Words of a question in the position of a noun that occur nowhere, not even with another spelling."""
    tokens = _TOKEN.findall(text)
    lower = [token.lower() for token in tokens]
    found = []
    for at, word in enumerate(lower):
        before, after = (lower[at - 1] if at else ""), (lower[at + 1] if at + 1 < len(lower) else "")
        if len(word) < 3 or not word.isalpha() or before in _BEFORE_VERBS or after in _AFTER_VERBS:
            continue
        is_noun = word not in STOP | ASKING and not _DESCRIPTIVE.search(word)
        if is_noun and not is_identifier(tokens[at]):
            found.append(tokens[at])
    known = code.rarity(found)
    absent = [word for word in found if not known[word]]
    return [word for word, spelled in zip(absent, code.correct(absent), strict=True) if spelled == (word,)]


def _overlap(one: PassagePlace, other: PassagePlace) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end


def _are_twins(one: PassagePlace, other: PassagePlace) -> bool:
    """Whether two symbols have one qualified name and about the same length in different files."""
    is_same = one.kind in SYMBOL_KINDS and (one.kind, one.name) == (other.kind, other.name) and one.path != other.path
    return is_same and abs((one.end - one.start) - (other.end - other.start)) <= 1 + (one.end - one.start) // 10


async def _has_number(code: CodeGraph, question: ParsedQuestion, hits: Sequence[PassageHit]) -> bool:
    """Whether a passage has a number next to the words for what is counted and half of the other words."""
    asked = QUANTITY.search(question.text)
    counted = [word.lower().rstrip("s") for word in content_words(asked["what"])] if asked is not None else []
    wanted = {word.lower().rstrip("s") for word in question.words}
    for excerpt in await code.excerpts([hit.place for hit in hits]):
        lines = excerpt.lines[:MAX_EXCERPT]
        for at, line in enumerate(lines):
            near = " ".join(lines[max(0, at - MAX_NUMBER_GAP) : at + MAX_NUMBER_GAP + 1]).lower()
            is_near = all(word in near for word in counted) and 2 * sum(word in near for word in wanted) >= len(wanted)
            if is_near and _NUMBER.search(line):
                return True
    return False
