"""The default ranking: which of the candidates is best. Pure arithmetic on arrays; docs/decisions/0003 says why.

    score = 0.7 · lexical + 0.3 · cosine + 0.1 · share of the title that the query explains

`lexical` sums over the query's terms their rarity times a saturated, field-weighted count, adds a bonus for pairs
of words that stand side by side in query and record, and divides by length, the more so the longer the query is.
Lexical score and cosine are each divided by the best among the candidates.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from clew.trail.search.text import HEADER, MAX_QUERY_CHARS, STOP, pair_id, split_text, term_id

FIELD_WEIGHTS = {"title": 3.0, "description": 1.0, "content": 0.2}
SATURATION = 1.2
LENGTH_EXPONENT, LENGTH_HALF = 0.5, 15.0
PAIR_BONUS = 0.6
DENSE_SHARE = 0.3
TITLE_SHARE = 0.1
MAX_TERMS = 128
TABLE, FEW_KEYS = 1 << 16, 8

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int16]


class SearchQuestion(msgspec.Struct):
    """The terms of a query. `ids` have no repeats: words first, then identifiers as a whole. Pairs and names follow."""

    terms: list[int]
    pairs: dict[int, tuple[int, int]]
    names: list[int]
    words: list[str]


def parse_question(text: str, salt: int) -> SearchQuestion:
    """The terms of a query of the owner with this salt. A query of only stop words is taken literally."""
    words = split_text(text[:MAX_QUERY_CHARS])
    kept = [part for part in words.parts if part not in STOP] or words.parts
    ids = [term_id(part, salt) for part in kept]
    terms = dict.fromkeys((*ids, *(term_id(name, salt) for name in words.compounds)))
    pairs = {pair_id(first, second): (first, second) for first, second in pairwise(ids)}
    whole = "".join(words.parts)
    names = dict.fromkeys(term_name(name, salt) for name in (whole, *words.compounds) if name)
    return SearchQuestion(terms=list(terms), pairs=pairs, names=list(names), words=kept)


def term_name(joined: str, salt: int) -> int:
    """The id of a name whose parts are joined already; equals `name_id` of any of its spellings."""
    return zlib.crc32(joined.encode(), salt)


class Corpus(msgspec.Struct):
    """The records in the form that the ranking needs: their packed terms, the start of each record, a function for the
    rarity of terms (0 if no record has the term), their mean length and their number."""

    heap: Words
    at: Ints
    rarity: Callable[[Words], Floats]
    mean_length: float
    number: int


def rarity_of(records: npt.NDArray[np.integer[Any]], number: int) -> Floats:
    """The weight of terms, given how many of `number` records have each. It is higher for terms that fewer records
    have, and 0 if none has the term."""
    found = np.minimum(records, number)
    rarity: Floats = np.log(1 + (number - found + 0.5) / (found + 0.5)).astype(np.float32)
    rarity[found <= 0] = 0
    return rarity


class Weighed(msgspec.Struct):
    """The weights of a question in a corpus: the terms that occur in it and pairs of them, with their rarities. `whole`
    is the rarity of the whole question, including terms that no record has."""

    terms: Words
    rarity: Floats
    pairs: Words
    worth: Floats
    whole: float

    def rarest(self, limit: int, *, least: float = 0.0) -> list[int]:
        """Return up to `limit` terms with a rarity of at least `least`, rarest first."""
        order = np.argsort(-self.rarity, kind="stable")[:limit]
        found: list[int] = self.terms[order[self.rarity[order] >= least]].tolist()
        return found


def weigh(question: SearchQuestion, corpus: Corpus) -> Weighed:
    """Look up the rarities of the question's terms. If there are more than MAX_TERMS, the rarest are kept."""
    terms = np.array(question.terms, np.uint32)
    rarity = corpus.rarity(terms)
    known = np.flatnonzero(rarity > 0)
    whole = float(rarity.sum()) + (len(terms) - len(known)) * math.log(2 * corpus.number + 2)
    says = dict(zip(terms[known].tolist(), rarity[known].tolist(), strict=True))
    worth = {
        pair: min(says[first], says[second])
        for pair, (first, second) in question.pairs.items()
        if first in says and second in says
    }
    if len(known) > MAX_TERMS:
        known = np.sort(known[np.argsort(-rarity[known], kind="stable")[:MAX_TERMS]])
    return Weighed(
        terms=terms[known],
        rarity=rarity[known],
        pairs=np.fromiter(worth.keys(), np.uint32, len(worth)),
        worth=np.fromiter(worth.values(), np.float32, len(worth)),
        whole=whole,
    )


def score_lexical(
    weighed: Weighed, corpus: Corpus, slots: Ints, weights: Mapping[str, float], *, with_titles: bool = True
) -> tuple[Floats, Floats]:
    """For each candidate its lexical score and the share of its title that the query explains."""
    if not len(slots) or not len(weighed.terms):
        return np.zeros(len(slots), np.float32), np.zeros(len(slots), np.float32)
    heap, start = corpus.heap, corpus.at[slots]
    count = heap[start].astype(np.int64)
    position, row = ranges(start + HEADER, count)
    which = _lookup(weighed.terms, heap[position])
    hit = np.flatnonzero(which >= 0)
    hit_position, hit_row, hit_rarity = position[hit], row[hit], weighed.rarity[which[hit]]
    amount = _amount(heap[hit_position + count[hit_row]], {**FIELD_WEIGHTS, **weights})
    total = _sum(hit_row, hit_rarity * _saturate(amount), len(slots))
    total += _score_pairs(weighed, heap, start, count)
    known = int(np.count_nonzero(np.bincount(which[hit], minlength=1)))
    exponent = length_exponent(known)
    length = heap[start + 3] / 10.0
    total *= np.power(length / max(corpus.mean_length, 1.0), -exponent)
    titles = _score_titles(corpus, start, hit_position, hit_row, hit_rarity) if with_titles else np.zeros(len(slots))
    return total.astype(np.float32), titles.astype(np.float32)


def length_exponent(terms: int) -> float:
    """The exponent by which the length of a record lowers its score, for a question with this many terms."""
    return LENGTH_EXPONENT * terms * terms / (terms * terms + LENGTH_HALF**2)


def best_by_words(weighed: Weighed, corpus: Corpus, slots: Ints, wanted: int) -> Ints:
    """The records that score best by their words alone, without pairs and length. This is for very many records that
    lie close together in the heap, which is scanned once."""
    heap, slots = corpus.heap, slots[np.argsort(corpus.at[slots])]
    start = corpus.at[slots]
    count = heap[start].astype(np.int64)
    if not len(weighed.terms):
        return slots[:wanted]
    first, last = int(start[0]), int(start[-1] + HEADER + count[-1])
    which = _lookup(weighed.terms, heap[first:last])
    hit = np.flatnonzero(which >= 0)
    row = np.searchsorted(start, hit + first, side="right") - 1
    inside = hit + first - start[row] - HEADER
    is_term = (inside >= 0) & (inside < count[row])
    hit, row = hit[is_term], row[is_term]
    amount = _amount(heap[hit + first + count[row]], FIELD_WEIGHTS)
    score = _sum(row, weighed.rarity[which[hit]] * _saturate(amount), len(slots))
    best = np.argsort(-score, kind="stable")[:wanted]
    found: Ints = slots[best[score[best] > 0]]
    return found


def weigh_counts(counts: Words, weights: Mapping[str, float]) -> Floats:
    """The weight of the counts of a term, before its rarity."""
    return _saturate(_amount(counts, weights))


def _amount(counts: Words, weights: Mapping[str, float]) -> Floats:
    """The number of occurrences of a term, weighted by field."""
    title, description, content = counts & 255, counts >> 8 & 255, counts >> 16 & 255
    total = weights["title"] * title + weights["description"] * description + weights["content"] * content
    return np.asarray(total, np.float32)


def _saturate(amount: Floats) -> Floats:
    return amount * (SATURATION + 1) / (amount + SATURATION)


def _score_pairs(weighed: Weighed, heap: Words, start: Ints, count: Ints) -> npt.NDArray[np.float64]:
    """A bonus for each pair of the query that stands side by side in the record, by its less rare word."""
    if not len(weighed.pairs):
        return np.zeros(len(start))
    position, row = ranges(start + HEADER + 2 * count, heap[start + 1].astype(np.int64))
    which = _lookup(weighed.pairs, heap[position])
    hit = np.flatnonzero(which >= 0)
    return PAIR_BONUS * _sum(row[hit], weighed.worth[which[hit]], len(start))


def _score_titles(corpus: Corpus, start: Ints, position: Ints, row: Ints, rarity: Floats) -> npt.NDArray[np.float64]:
    """The share of the title that the query contains, weighted by the rarity of its terms."""
    heap = corpus.heap
    in_title = heap[start + 2].astype(np.int64)
    title_position, title_row = ranges(start + HEADER, in_title)
    whole = _sum(title_row, corpus.rarity(heap[title_position]), len(start))
    inside = position < (start + HEADER + in_title)[row]
    return _sum(row[inside], rarity[inside], len(start)) / np.maximum(whole, 1e-9)


def fuse(lexical: Floats, titles: Floats, cosine: Floats) -> Floats:
    """The default score from its three parts."""
    near = _of_best(np.maximum(cosine, 0))
    total: Floats = (1 - DENSE_SHARE) * _of_best(lexical) + DENSE_SHARE * near + TITLE_SHARE * titles
    return total


def relevance(lexical: float, cosine: float, whole: float) -> float:
    """How close one record is to the question, comparable between questions: twice its cosine, and its lexical score
    as a share of what the question says. docs/decisions/0008 shows what it can distinguish."""
    return 2 * cosine + (lexical / whole if whole > 0 else 0.0)


def fuse_ranks(*scores: Floats, k: int = 60) -> Floats:
    """Plain rank fusion: the sum of 1 / (k + rank) over the lists in which a candidate has a score above 0."""
    total = np.zeros(len(scores[0]), np.float32)
    for score in scores:
        order = np.argsort(-score, kind="stable")
        ranks = np.empty(len(score), np.int64)
        ranks[order] = np.arange(1, len(score) + 1)
        total += np.where(score > 0, 1.0 / (k + ranks), 0.0).astype(np.float32)
    return total


def score_rcrt(cosine: Floats, matched: npt.NDArray[np.int64], wanted: int) -> Floats:
    """RCRT's formula: 0.6 · 1 / (1 + distance) + 0.4 · matched / wanted keywords."""
    near = 0.6 / (1.0 + (1.0 - cosine))
    return (near + (0.4 * matched / wanted if wanted else 0.0)).astype(np.float32)


def _of_best(score: Floats) -> Floats:
    best = float(score.max(initial=0.0))
    return np.asarray(score / best, np.float32) if best > 0 else score


def _sum(row: Ints, amount: Floats, rows: int) -> npt.NDArray[np.float64]:
    """The amounts added up by row. (Of nothing at all, numpy would make whole numbers.)"""
    return np.bincount(row, amount, rows).astype(np.float64, copy=False)


def ranges(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """The positions start[i] … start[i] + count[i] for all i in one array, and the i of each."""
    row = np.repeat(np.arange(len(count)), count)
    return np.arange(len(row)) + (start - np.cumsum(count) + count)[row], row


def _lookup(keys: Words, values: Words) -> Places:
    """For each value its index in `keys`, or -1 if it is not among them. A few keys are compared directly. More keys
    use a hash table on their low bits; keys that collide with another are compared directly.
    """
    if len(keys) <= FEW_KEYS:
        few: Places = np.full(len(values), -1, np.int16)
        for place, key in enumerate(keys):
            few[np.flatnonzero(values == key)] = place
        return few
    table = np.full(TABLE, -1, np.int16)
    places = np.arange(len(keys))
    table[keys & (TABLE - 1)] = places
    which: Places = table[values & (TABLE - 1)]
    found = np.flatnonzero(which >= 0)
    wrong = found[keys[which[found]] != values[found]]
    which[wrong] = -1
    for lost in np.flatnonzero(table[keys & (TABLE - 1)] != places):
        which[values == keys[lost]] = lost
    return which
