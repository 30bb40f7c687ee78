"""Hybrid search over the passages of a folder, and the questions that nothing in it answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from clew.knowledge.answering.messages import WHOLE, find_messages
from clew.knowledge.answering.question import (
    ASKING,
    CHANGED,
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
from clew.lazy_pattern import lazy_pattern
from clew.trail.search.text import STOP

SHOWN = 6
"""The passages of an answer."""
LOOKED_AT = 60
WEAK, FAINT = 0.45, 0.05
"""If the best passage covers less of the question than WEAK, it is a weak match; below FAINT it is unrelated to the
question."""
HALF = 0.5
"""The cover from which a passage answers a question with a name that no file has. A missing word is ignored if its
importance is below this share of the mean importance of the question's words."""
PADDING = 0.4
"""A passage with less than this share of the best score only pads the answer."""
FOCUS = 3
"""A question without names is about its first content words. If these are missing, other matches do not answer it."""
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
MAX_WITH_WORD, MAX_WITH_BOTH = 2_000, 200
"""Passages with a part of a name and with both parts that are looked at."""
EVERYWHERE = Shares(test=1.0, aside=1.0, text=1.0, changelog=1.0)
_BEFORE_VERB_WORDS = """
    i you we they he she it who what which that to will would can could should may might must do does did not be been
    being am is are was were has have had get gets got getting still never always just also only and
"""
_BEFORE_VERBS = frozenset(_BEFORE_VERB_WORDS.split())
_AFTER_VERB_WORDS = "up out off away down back over around behind into onto me him it us them itself"
_AFTER_VERBS = frozenset(_AFTER_VERB_WORDS.split())
_DESCRIPTIVE = lazy_pattern(r"(?:ly|ed|ing|est|ful)$")
_TOKEN = lazy_pattern(r"[A-Za-z][\w']*|[^\sA-Za-z]")
_NUMBER = lazy_pattern(r"(?<![\w.])\d")
_NUMBERED = lazy_pattern(r"(?<![\w/.-])([A-Za-z]+)[/-](\d+(?:\.\d+)*)(?![\w/-]|\.\w)")
"""A word and a number that are one name, such as HTTP/3 or SHA-256. The index has its parts."""


class FoundPassages(NamedTuple):
    """The passages for a question, best first, and the largest cover among them. If nothing answers the question,
    `nearest` is the best passage and `missing` are the nouns of the question that occur nowhere. With `has_message`,
    the first have a message that the question quotes or consists of."""

    hits: list[PassageHit]
    nearest: PassageHit | None = None
    missing: tuple[str, ...] = ()
    cover: float = 0.0
    has_message: bool = False


async def search_passages(code: CodeGraph, question: ParsedQuestion) -> FoundPassages:
    """Hybrid search by words and vectors: implementation before tests, near-identical hits folded, and no hits if the
    words of the question do not occur in the repository. Passages with a text that the question quotes come first."""
    words = [word for spelled in code.text.correct(question.words) for word in spelled]
    shares = SHARES[question.kind]
    if question.tests in (Tests.ALSO, Tests.ONLY):
        shares = shares._replace(test=1.0)
    hits = await code.passages(words, shares=shares, limit=LOOKED_AT)
    messages = _wanted(question, await find_messages(code, question, hits, shares))
    hits = _wanted(question, hits)
    if messages:
        return FoundPassages(_fold([*messages, *hits]), cover=WHOLE, has_message=True)
    best = max((hit.cover for hit in hits[:SHOWN]), default=0.0)
    missing = _missing_nouns(question, code) if best < WEAK else []
    is_absent = best < FAINT or (not question.names and not set(question.words[:FOCUS]).isdisjoint(missing))
    if is_absent or (question.kind is QuestionKind.QUANTITY and not await _has_number(code, question, hits[:SHOWN])):
        missing = missing or _missing_nouns(question, code)
        return FoundPassages([], hits[0] if hits else None, tuple(missing))
    return FoundPassages(_fold(hit for hit in hits if hit.score >= PADDING * hits[0].score), cover=best)


async def find_absent_name(code: CodeGraph, question: ParsedQuestion) -> str:
    """A name in the question, made of a word and a number, that no passage has in any spelling. Empty if too many
    passages have both parts to check all."""
    for found in _NUMBERED.finditer(question.text):
        word, number = found.groups()
        both = await code.passages([word, number], shares=EVERYWHERE, limit=MAX_WITH_WORD, cover=WHOLE)
        beginning = word.lower()  # first in the expression, because a search for plain letters is much faster
        spelled = re.compile(rf"{beginning}(?<![a-z]{beginning})[\s/_.-]?{re.escape(number)}(?!\d)")
        places = [hit.place for hit in both]
        if len(both) <= MAX_WITH_BOTH and not await code.find_in(places, partial(_search, spelled), limit=1):
            return found[0]
    return ""


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.search(text.lower())


def _wanted(question: ParsedQuestion, hits: list[PassageHit]) -> list[PassageHit]:
    """The hits without tests, or only tests, if the question asks for that."""
    if question.tests not in (Tests.ONLY, Tests.NEVER):
        return hits
    is_asked = question.tests is Tests.ONLY
    return [hit for hit in hits if bool(kind_of(hit.place.path, hit.place.name) & TEST) is is_asked]


def _fold(hits: Iterable[PassageHit]) -> list[PassageHit]:
    """The first hits without those that overlap a better one, or are the same function in a sibling file."""
    kept: list[PassageHit] = []
    for hit in hits:
        if not any(_overlap(hit.place, one.place) or _are_twins(hit.place, one.place) for one in kept):
            kept.append(hit)
        if len(kept) == SHOWN:
            break
    return kept


def _missing_nouns(question: ParsedQuestion, code: CodeGraph) -> list[str]:
    """Important words of a question in the position of a noun that occur nowhere, not even with another spelling."""
    tokens = _TOKEN.findall(question.text)
    lower = [token.lower() for token in tokens]
    found = []
    for at, word in enumerate(lower):
        before, after = (lower[at - 1] if at else ""), (lower[at + 1] if at + 1 < len(lower) else "")
        if len(word) < 3 or not word.isalpha() or before in _BEFORE_VERBS or after in _AFTER_VERBS:
            continue
        is_noun = word not in STOP | ASKING and not _DESCRIPTIVE.search(word) and not CHANGED.fullmatch(word)
        if is_noun and not is_identifier(tokens[at]):
            found.append(tokens[at])
    known = code.text.rarity(found)
    absent = [word for word in found if not known[word]]
    missing = [word for word, spelled in zip(absent, code.text.correct(absent), strict=True) if spelled == (word,)]
    meaning = code.text.importance(question.words) if missing else {}
    return [word for word in missing if meaning.get(word, 1.0) >= HALF]


def _overlap(one: PassagePlace, other: PassagePlace) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end


def _are_twins(one: PassagePlace, other: PassagePlace) -> bool:
    """Whether two symbols have one qualified name and about the same length in different files."""
    is_same = one.kind in SYMBOL_KINDS and (one.kind, one.name) == (other.kind, other.name) and one.path != other.path
    return is_same and abs((one.end - one.start) - (other.end - other.start)) <= 1 + (one.end - one.start) // 10


async def _has_number(code: CodeGraph, question: ParsedQuestion, hits: Sequence[PassageHit]) -> bool:
    """Whether a passage has a number next to the words for the counted objects and half of the other words."""
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
