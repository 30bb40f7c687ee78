"""Ranking of files and passages for a question. Pure arithmetic on arrays; every signal is measured on its own.

Files:     score = (file + passages + folder + stem + defines + mentioned + traced, each with its weight) · prior
Passages:  score = (words + DENSE_SHARE · meaning) · prior

`file` and `passages` are BM25 over whole files and over the best three of their passages. The prior lowers tests,
documents, examples and copies, unless the question asks for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.knowledge.code.files import ALL_KINDS, ASIDE, CHANGELOG, LOCK, TEST, TEXT
from clew.knowledge.code.search.passages import KINDS
from clew.knowledge.code.search.postings import Floats, IndexView, Ints, Matches, Terms
from clew.knowledge.code.search.words import IssueText
from clew.lazy_pattern import lazy_pattern
from clew.trail.search.unique import unique

FILE_FIELDS = np.array([5.0, 0.5, 1.0], np.float32)
"""The weights of term counts in a file: in names, in comments and strings, in code."""
PASSAGE_FIELDS = np.array([4.0, 1.0, 2.0], np.float32)
SYMBOL_FIELDS = np.array([5.0, 2.0, 1.0], np.float32)
"""The weights for passages, and for a search of symbols alone, in which descriptions answer the text."""
SATURATION, PASSAGE_SATURATION = 2.0, 1.2
FILE_LENGTH_SHARE, UNIT_LENGTH_SHARE, PASSAGE_LENGTH_SHARE = 0.6, 0.4, 0.3
FILE_LENGTH_FLOOR, UNIT_LENGTH_FLOOR = 50.0, 10.0
WEIGHTS = {
    "file": 1.0,
    "passages": 1.5,
    "folder": 0.3,
    "stem": 0.3,
    "defines": 0.3,
    "mentioned": 0.3,
    "traced": 0.5,
}
NAMED = 10.0
"""A file that the first line of a text names comes before all others."""
PASSAGES_TOGETHER = 3
"""The number of passages whose scores add up to that of a file."""
MAX_PASSAGES = 5_000
"""Only this many of the best passages add to the scores of files."""
SYMBOL_DENSE_SHARE, DENSE_SHARE = 0.5, 0.5
"""The weight of meaning: its share in a search of symbols, and relative to words in a search of passages."""
MAX_TERMS = 256
MAX_MATCHES = 100_000
"""Beyond this number of occurrences, the least informative terms are left out."""
MAX_DEFINED = 4
"""A name that more files define is ignored."""

TEST_SHARE, ASIDE_SHARE, TEXT_SHARE, LOCK_SHARE = 0.5, 0.6, 0.35, 0.1
"""Priors of a test, of a file beside the product, of a file that is not code, and of a lock file."""
MODULE_SHARE = 0.85
"""The prior of module-level code, which is mostly imports."""

_ASKS_TESTS = lazy_pattern(r"\btests?\b", re.I)
_ASKS_TEXT = lazy_pattern(r"\b(docs?|documentation|readme|typos?|examples?)\b", re.I)

Totals = npt.NDArray[np.float64]


class Ranked(NamedTuple):
    """Scores of all files and of all passages, and the occurrences of the terms."""

    files: Totals
    passages: Totals
    terms: Terms
    matches: list[Matches]


class Shares(NamedTuple):
    """Priors of passages by the kind of their file."""

    test: float = TEST_SHARE
    aside: float = 0.8
    text: float = 0.75
    changelog: float = 0.75


def rank(text: IssueText, view: IndexView, weights: Mapping[str, float] = WEIGHTS) -> Ranked:
    """Score every file and passage; those without any sign of the text have 0."""
    terms, amounts = choose_terms(text.terms, view)
    matches = view.find(terms)
    passages = score_passages(view, matches, amounts)
    signals = find_signals(text, view, terms, amounts, matches, passages)
    total = np.zeros(len(view.files))
    for name, signal in signals.items():
        total += weights[name] * signal
    total *= priors(view, text)
    return Ranked(total + NAMED * _score_places(view, text.named), passages, terms, matches)


def rank_symbols(text: IssueText, view: IndexView, vector: Floats | None, share: float = SYMBOL_DENSE_SHARE) -> Ranked:
    """Score every symbol by its words and, if there is a vector, by its meaning. `share` is the weight of the
    meaning."""
    terms, amounts = choose_terms(text.terms, view)
    matches = view.find(terms)
    total = _of_best(score_passages(view, matches, amounts, SYMBOL_FIELDS))
    if vector is not None:
        near = _of_best(np.maximum(view.cosines(vector), 0.0))
        total = (1 - share) * total + share * near
    return Ranked(np.zeros(0), total * priors(view, text)[view.passage_file] * view.is_symbol, terms, matches)


def rank_passages(weights: Mapping[int, float], view: IndexView, vector: Floats | None, shares: Shares) -> Ranked:
    """Score every passage by weighted terms and, if there is a vector, by its meaning."""
    terms, amounts = choose_terms(weights, view)
    matches = view.find(terms)
    words = score_passages(
        view,
        matches,
        amounts,
        PASSAGE_FIELDS,
        saturation=PASSAGE_SATURATION,
        length_share=PASSAGE_LENGTH_SHARE,
    )
    total = _of_best(words)
    if vector is not None:
        total = total + DENSE_SHARE * _of_best(np.maximum(view.cosines(vector), 0.0))
    total = total * view.cached(shares, lambda: _passage_priors(view, shares))
    total[view.cached("modules", lambda: np.flatnonzero(view.passage_kind == KINDS.index("module")))] *= MODULE_SHARE
    total[view.inline_tests] *= shares.test
    return Ranked(np.zeros(0), total, terms, matches)


def _passage_priors(view: IndexView, shares: Shares) -> Totals:
    """For each passage the prior of its file."""
    aside = {TEST: shares.test, ASIDE: shares.aside, TEXT: shares.text / shares.aside}  # documents stand aside anyway
    prior = np.where(view.path_kinds & (ASIDE | TEXT) == TEXT, shares.aside, 1.0) * _table(aside, view)
    prior[(view.path_kinds & CHANGELOG) > 0] = shares.changelog
    found: Totals = np.where(view.dead, 0.0, prior)[view.passage_file]
    return found


def choose_terms(wanted: Mapping[int, float], view: IndexView) -> tuple[Terms, Floats]:
    """The most informative terms with their weights, limited so that the search is quick."""
    terms = np.fromiter(wanted, np.uint32, len(wanted))
    weights = np.fromiter(wanted.values(), np.float32, len(terms))
    number = view.number_of(terms)
    worth = weights * rarity(number, max(len(view.passage_file), 1))
    order = np.argsort(-worth, kind="stable")[:MAX_TERMS]
    order = order[np.cumsum(number[order]) <= MAX_MATCHES]
    return terms[order], weights[order]


def score_passages(
    view: IndexView,
    matches: Sequence[Matches],
    amounts: Floats,
    fields: Floats = FILE_FIELDS,
    *,
    saturation: float = SATURATION,
    length_share: float = UNIT_LENGTH_SHARE,
) -> Totals:
    """BM25 of every passage."""
    number = len(view.passage_file)
    worth = amounts * rarity(_spread(matches, len(amounts)), max(number, 1))
    norm = view.cached(length_share, lambda: _norm(view.passage_length + UNIT_LENGTH_FLOOR, length_share))
    total = np.zeros(number)
    for found in matches:
        count = (found.counts @ fields) / norm[found.rows]
        total += np.bincount(found.rows, worth[found.which] * _saturate(count, saturation), number)
    total[view.dead_passages] = 0.0
    return total


def score_files(view: IndexView, matches: Sequence[Matches], amounts: Floats) -> Totals:
    """BM25 of every file as a whole."""
    number = len(view.files)
    norm = _norm(view.file_length + FILE_LENGTH_FLOOR, FILE_LENGTH_SHARE)
    summed = [_sum_files(view, found) for found in matches]
    spread = sum((np.bincount(which, minlength=len(amounts)) for which, _, _ in summed), np.zeros(len(amounts), int))
    worth = amounts * rarity(spread, max(number, 1))
    total = np.zeros(number)
    for which, files, count in summed:
        total += np.bincount(files, worth[which] * _saturate(count / norm[files]), number)
    total[view.dead] = 0.0
    return total


def find_signals(
    text: IssueText, view: IndexView, terms: Terms, amounts: Floats, matches: Sequence[Matches], passages: Totals
) -> dict[str, Totals]:
    """The signals of each file by the names of WEIGHTS; sums are divided by their best."""
    return {
        "file": _of_best(score_files(view, matches, amounts)),
        "passages": _of_best(_best_passages(view, passages)),
        "folder": _of_best(_score_paths(view, terms, amounts, stems=False)),
        "stem": _of_best(_score_paths(view, terms, amounts, stems=True)),
        "defines": _score_definitions(text, view),
        "mentioned": _score_places(view, text.paths),
        "traced": _score_frames(view, text.frames),
    }


def priors(view: IndexView, text: IssueText) -> Totals:
    """The prior of each file: how likely it is to be relevant to any text. 0 for files that are gone."""
    shares = {
        TEST: 1.0 if _ASKS_TESTS.search(text.title) else TEST_SHARE,
        ASIDE: 1.0 if _ASKS_TEXT.search(text.title) else ASIDE_SHARE,
        TEXT: 1.0 if _ASKS_TEXT.search(text.title) else TEXT_SHARE,
    }
    return np.where(view.dead, 0.0, _table(shares, view))


def _table(shares: Mapping[int, float], view: IndexView) -> Totals:
    """For each file the product of the shares of its path's kinds."""
    shares = {LOCK: LOCK_SHARE, **shares}
    table = [math.prod(share for bit, share in shares.items() if kind & bit) for kind in ALL_KINDS]
    return np.array(table)[view.path_kinds]


def _best_passages(view: IndexView, scores: Totals) -> Totals:
    """For each file the sum of its best passages, as far as they are among the best of all."""
    total = np.zeros(len(view.files))
    number = min(MAX_PASSAGES, int(np.count_nonzero(scores)))
    if not number:
        return total
    order = np.argpartition(-scores, number - 1)[:number]
    order = order[np.lexsort((-scores[order], view.passage_file[order]))]
    files = view.passage_file[order]
    place = np.arange(number) - np.searchsorted(files, files)
    kept = order[place < PASSAGES_TOGETHER]
    np.add.at(total, view.passage_file[kept], scores[kept])
    return total


def _score_paths(view: IndexView, terms: Terms, amounts: Floats, *, stems: bool) -> Totals:
    found = view.find_paths(terms, stems=stems)
    rare = rarity(np.bincount(found.which, minlength=len(terms)), max(len(view.files), 1))
    return np.bincount(found.rows, (amounts * rare)[found.which], len(view.files)).astype(np.float64)


def _score_definitions(text: IssueText, view: IndexView) -> Totals:
    """Files that define a name of the text. A name counts more if fewer files define it."""
    total = np.zeros(len(view.files))
    found = view.find_names(text.names)
    pairs = unique(found.which * len(total) + view.passage_file[found.rows])
    names, files = np.divmod(pairs, max(len(total), 1))
    number = np.bincount(names, minlength=1)[names]
    few = number <= MAX_DEFINED
    np.add.at(total, files[few], 1 / number[few])
    return np.minimum(total, 2.0)


def _score_places(view: IndexView, places: Iterable[str]) -> Totals:
    """Files whose path ends like one of these."""
    total = np.zeros(len(view.files))
    for place in places:
        parts = place.replace("\\", "/").strip("./").split("/")
        shared, files = _closest(view, parts)
        worth = 1.0 if shared > 1 or len(parts) == 1 else 0.5
        total[files] = np.maximum(total[files], worth / max(len(files), 1))
    return total


def _score_frames(view: IndexView, frames: Sequence[str]) -> Totals:
    """Files of a traceback, the innermost first."""
    total = np.zeros(len(view.files))
    for depth, frame in enumerate(reversed(frames)):
        shared, files = _closest(view, frame.replace("\\", "/").strip("./").split("/"))
        if shared > 1 or any("/" not in view.files[file].path for file in files):
            total[files] = np.maximum(total[files], 1 / (1 + 0.3 * depth))
    return total


def _closest(view: IndexView, parts: Sequence[str]) -> tuple[int, list[int]]:
    """The files that share most of the end of a path, and how many parts."""
    best = 0
    files: list[int] = []
    for file in view.files_named(parts[-1]):
        shared = _shared_tail(view.files[file].path.split("/"), parts)
        if shared > best:
            best, files = shared, []
        if shared == best:
            files.append(file)
    return best, files


def _shared_tail(first: Sequence[str], second: Sequence[str]) -> int:
    shared = 0
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _sum_files(view: IndexView, found: Matches) -> tuple[Ints, Ints, Floats]:
    """The matches of each term in one file added up. Rows are sorted, so the rows of a file are adjacent."""
    files = view.passage_file[found.rows]
    if not len(files):
        return found.which, files, np.zeros(0, np.float32)
    is_first = np.r_[True, (np.diff(files) != 0) | (np.diff(found.which) != 0)]
    start = np.flatnonzero(is_first)
    return found.which[start], files[start], np.add.reduceat(found.counts @ FILE_FIELDS, start)


def _spread(matches: Sequence[Matches], terms: int) -> Ints:
    return sum((np.bincount(found.which, minlength=terms) for found in matches), np.zeros(terms, np.int64))


def rarity(number: Ints, whole: int) -> Floats:
    """The inverse document frequency of terms that occur in `number` of `whole` rows."""
    return np.log1p((whole - number + 0.5) / (number + 0.5)).astype(np.float32)


def _norm(length: Floats, share: float) -> Floats:
    return (1 - share + share * length / max(float(length.mean()), 1e-9)) if len(length) else length


def _saturate(count: Floats, saturation: float = SATURATION) -> Floats:
    return count * (saturation + 1) / (count + saturation)


def _of_best(score: Totals) -> Totals:
    best = float(score.max(initial=0.0))
    return score / best if best > 0 else score
