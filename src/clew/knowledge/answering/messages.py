"""Questions that quote or consist of a message, such as an error. The answer is the lines that contain the message, or
the string literals with placeholders that match it, such as `unknown command %q for %q`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import NamedTuple

from clew.knowledge.answering.question import IS_QUESTION, ParsedQuestion, content_words
from clew.knowledge.answering.sources import LINE
from clew.knowledge.code.files import TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.search.ranking import Shares
from clew.knowledge.code.search.search_index import PassageHit
from clew.lazy_pattern import lazy_pattern

MAX_QUOTED, MAX_WITH_WORDS, MAX_PLACES = 2, 2_000, 60
"""Limits: the quotations that are searched, the best passages that are searched for all words of one, and the passages
that are read."""
PASTED_WORDS = 4
"""A text with fewer words that asks nothing is searched like a question."""
MAX_SEARCHED, MAX_LITERALS = 30, 3
"""The best passages that are searched for literals with placeholders, and the literals that are shown."""
LEAST_WORDS, LEAST_LETTERS, LEAST_SHARE = 2, 10, 0.3
"""The least number of words and letters in the constant parts of a literal, and their least share of the letters of the
message."""
MAX_LINE = 500
"""Letters of a line that are searched for literals."""
WHOLE = 0.99
"""The cover of a passage that has all words."""
_PROSE = ("section", "text")
_QUOTED_WORD = r"(?:(?!(?P=quote)(?!\w))\S){1,60}"
_QUOTED = lazy_pattern(rf"(?<!\w)(?P<quote>[\"'`])(?P<text>{_QUOTED_WORD}(?: {_QUOTED_WORD}){{1,20}})(?P=quote)(?!\w)")
"""A quotation of several words, such as a message."""
_PLAIN_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))
_LITERALS = {quote: lazy_pattern(rf"{quote}((?:[^{quote}\\]|\\.)*)(?:{quote}|$)") for quote in "\"'`"}
_PLACEHOLDER = lazy_pattern(
    r"%(?:\(\w{1,60}\))?[-+#.*$\d]{0,20}(?:hh?|ll?|[zjt])?[A-Za-z@%]|[$#]?\{(?:[^{}]|\{[^{}]*\})*\}"
)
_ESCAPE = lazy_pattern(r"\\(.)")
_WORD = lazy_pattern(r"[^\W\d_]{3,}")


class MessageLines(NamedTuple):
    """Lines of a passage that have a message, counted from 0, and how many of its letters they have."""

    first: int
    last: int
    letters: int


def is_pasted(question: ParsedQuestion) -> bool:
    """Whether a text asks nothing, and is long enough to be a message."""
    return not IS_QUESTION.search(question.text) and len(question.text.split()) >= PASTED_WORDS


async def find_messages(
    code: CodeGraph, question: ParsedQuestion, hits: Sequence[PassageHit], shares: Shares
) -> list[PassageHit]:
    """The lines with a message that the question quotes or consists of, among the hits of the question and the passages
    with all words of the message. If only tests or documents have the message, literals with placeholders come
    first."""
    found: list[PassageHit] = []
    for message in map(str.lower, _messages_in(question)):
        exact = await _find_exact(code, message, hits, shares)
        if not any(_is_product(hit) for hit in exact):
            found += await _find_literals(code, message, hits)
        found += exact
        if found and is_pasted(question):
            break
    return found


def _messages_in(question: ParsedQuestion) -> list[str]:
    """The quoted texts of a question. A text that asks nothing is a message itself. It is also searched without the
    words before its first colon, which may be the name of an error."""
    plain = " ".join(question.text.translate(_PLAIN_QUOTES).split())
    quoted = [each["text"] for each in islice(_QUOTED.finditer(plain), MAX_QUOTED)]
    if not is_pasted(question):
        return quoted
    return [*(each for each in (plain, plain.partition(": ")[2]) if len(each.split()) >= PASTED_WORDS), *quoted]


async def _find_exact(code: CodeGraph, message: str, hits: Sequence[PassageHit], shares: Shares) -> list[PassageHit]:
    words, inner = content_words(message), content_words(" ".join(message.split()[1:-1]))
    with_words = await code.passages(words, shares=shares, limit=MAX_WITH_WORDS, cover=WHOLE)
    # the first and the last word may be parts of longer ones
    likely = code.text.without_lacking(hits, inner)
    possible: dict[PassagePlace, PassageHit] = {}
    for hit in (*with_words[:MAX_PLACES], *likely):
        possible.setdefault(hit.place, hit)
    found = await code.find_in(list(possible), partial(_lines_with, message), limit=len(possible))
    return [_at_lines(possible[place], lines) for place, lines in found]


async def _find_literals(code: CodeGraph, message: str, hits: Sequence[PassageHit]) -> list[PassageHit]:
    """The literals of the best passages that match a message: the message contains their constant parts in order. Those
    with most letters come first."""
    possible = {hit.place: hit for hit in hits[:MAX_SEARCHED] if _is_product(hit)}
    words = frozenset(_WORD.findall(message))
    found = await code.find_in(list(possible), partial(_literal_in, message, words), limit=len(possible))
    best = sorted(found, key=lambda each: -each[1].letters)[:MAX_LITERALS]
    return [_at_lines(possible[place], lines) for place, lines in best]


def _at_lines(hit: PassageHit, lines: MessageLines) -> PassageHit:
    """The lines of a message in a passage of code, or the whole passage of a document."""
    place = hit.place
    if place.kind in _PROSE:
        return hit
    return hit._replace(place=place._replace(kind=LINE, start=place.start + lines.first, end=place.start + lines.last))


def _is_product(hit: PassageHit) -> bool:
    """Whether a passage is code, and no test."""
    return hit.place.kind not in _PROSE and not kind_of(hit.place.path, hit.place.name) & TEST


def _lines_with(message: str, text: str) -> MessageLines | None:
    """The first lines of a text that have a message in lower case, in any spacing."""
    lower = text.lower()
    if not all(word in lower for word in message.split()):
        return None
    lines = {number: " ".join(line.split()) for number, line in enumerate(lower.split("\n")) if line.strip()}
    at = " ".join(lines.values()).find(message)
    if at < 0:
        return None
    numbers, ends = list(lines), list(accumulate(len(line) + 1 for line in lines.values()))
    first, last = (numbers[bisect_right(ends, place)] for place in (at, at + len(message) - 1))
    return MessageLines(first, last, len(message))


def _literal_in(message: str, words: frozenset[str], text: str) -> MessageLines | None:
    """The line of a text with the literal whose constant parts have most letters of a message."""
    best = MessageLines(0, 0, 0)
    for number, line in enumerate(each[:MAX_LINE] for each in text.lower().split("\n")):
        if any(quote in line for quote in _LITERALS) and len(words.intersection(_WORD.findall(line))) >= LEAST_WORDS:
            letters = max((_constant_letters(literal, message) for literal in _literals_in(line)), default=0)
            if letters > best.letters:
                best = MessageLines(number, number, letters)
    least = max(LEAST_LETTERS, LEAST_SHARE * sum(map(str.isalnum, message)))
    return best if best.letters >= least else None


def _literals_in(line: str) -> Iterator[str]:
    for quote, pattern in _LITERALS.items():
        if quote in line:
            yield from (found[1] for found in pattern.finditer(line) if len(found[1]) >= LEAST_LETTERS)


def _constant_letters(literal: str, message: str) -> int:
    """The number of letters and digits in the constant parts of a literal, if a message has all of them in this order;
    else 0."""
    parts = _PLACEHOLDER.split(" ".join(_ESCAPE.sub(_unescape, literal).split()))
    at = letters = 0
    for part in parts:
        found = message.find(part, at)
        if found < 0:
            return 0
        at = found + len(part)
        letters += sum(map(str.isalnum, part))
    return letters if len(_WORD.findall(" ".join(parts))) >= LEAST_WORDS else 0


def _unescape(found: re.Match[str]) -> str:
    return " " if found[1] in "nrt" else found[1]
