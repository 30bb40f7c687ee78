"""Which files and symbols a question is about. Pure arithmetic on arrays; every signal is measured on its own.

    score = (file + units + folder + stem + defines + mentioned + traced, each with its weight) · prior

`file` and `units` are BM25 over whole files and over the best three of their units, with three fields; the prior lowers
tests, documents, examples and copies, unless the question asks for such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.knowledge.code.path_kinds import ASIDE, TEST, TEXT
from clew.knowledge.code.question import Question
from clew.knowledge.code.text_segment import Floats, Ints, Terms
from clew.knowledge.code.text_view import Matches, View

FIELD_WEIGHTS = np.array([5.0, 0.5, 1.0], np.float32)
"""Of a term's counts: in names that are defined, in comments and strings, in code."""
SYMBOL_FIELD_WEIGHTS = np.array([5.0, 2.0, 1.0], np.float32)
"""The same where symbols are searched: there the question is put in words, and descriptions answer it."""
SATURATION = 2.0
FILE_LENGTH_SHARE, UNIT_LENGTH_SHARE = 0.6, 0.4
FILE_LENGTH_FLOOR, UNIT_LENGTH_FLOOR = 50.0, 10.0
WEIGHTS = {
    "file": 1.0,
    "units": 1.5,
    "folder": 0.3,
    "stem": 0.3,
    "defines": 0.3,
    "mentioned": 0.3,
    "traced": 0.5,
}
UNITS_TOGETHER = 3
"""How many units of a file speak for it together."""
MAX_UNITS = 5_000
"""Units beyond the best ones speak for no file."""
DENSE_SHARE = 0.5
"""How much the closeness in meaning counts where symbols are searched."""
MAX_TERMS = 256
MAX_MATCHES = 100_000
"""More occurrences than these are not looked at: the terms that say least are left out."""
MAX_DEFINED = 4
"""A name that more files define than these points at none of them."""

TEST_SHARE, ASIDE_SHARE, TEXT_SHARE = 0.5, 0.6, 0.35
"""What the score of a test, of a file beside the product and of one that is not code is multiplied with."""

_ASKS_TESTS = re.compile(r"\btests?\b", re.I)
_ASKS_TEXT = re.compile(r"\b(docs?|documentation|readme|typos?|examples?)\b", re.I)

Totals = npt.NDArray[np.float64]


class Ranked(NamedTuple):
    """Scores of all files and of all units, and the places where the question's terms were found."""

    files: Totals
    units: Totals
    terms: Terms
    matches: list[Matches]


def rank(question: Question, view: View, weights: Mapping[str, float] = WEIGHTS) -> Ranked:
    """Score every file and unit; those without any sign of the question have 0."""
    terms, amounts = choose_terms(question, view)
    matches = view.find(terms)
    units = score_units(view, matches, amounts)
    signals = find_signals(question, view, terms, amounts, matches, units)
    total = np.zeros(len(view.files))
    for name, signal in signals.items():
        total += weights[name] * signal
    return Ranked(total * priors(view, question), units, terms, matches)


def rank_units(question: Question, view: View, vector: Floats | None = None, share: float = DENSE_SHARE) -> Ranked:
    """Score every symbol by its words and, where there is a vector, by its meaning, which has that share. Files as a
    whole have 0."""
    terms, amounts = choose_terms(question, view)
    matches = view.find(terms)
    total = _of_best(score_units(view, matches, amounts, SYMBOL_FIELD_WEIGHTS))
    if vector is not None:
        near = _of_best(np.maximum(view.cosines(vector), 0.0))
        total = (1 - share) * total + share * near
    return Ranked(np.zeros(0), total * priors(view, question)[view.unit_file] * view.is_symbol, terms, matches)


def choose_terms(question: Question, view: View) -> tuple[Terms, Floats]:
    """The terms that say most, and the weight of each; few enough to be searched quickly."""
    terms = np.fromiter(question.terms, np.uint32, len(question.terms))
    weights = np.fromiter(question.terms.values(), np.float32, len(terms))
    number = view.number_of(terms)
    worth = weights * _rarity(number, max(len(view.unit_file), 1))
    order = np.argsort(-worth, kind="stable")[:MAX_TERMS]
    order = order[np.cumsum(number[order]) <= MAX_MATCHES]
    return terms[order], weights[order]


def score_units(view: View, matches: Sequence[Matches], amounts: Floats, fields: Floats = FIELD_WEIGHTS) -> Totals:
    """BM25 of every unit."""
    number = len(view.unit_file)
    rarity = _rarity(_spread(matches, len(amounts)), max(number, 1))
    length = view.unit_length + UNIT_LENGTH_FLOOR
    norm = _norm(length, UNIT_LENGTH_SHARE)
    total = np.zeros(number)
    for found in matches:
        count = found.counts @ fields
        worth = (amounts * rarity)[found.which]
        total += np.bincount(found.rows, worth * _saturate(count / norm[found.rows]), number)
    total[view.dead_units] = 0.0
    return total


def score_files(view: View, matches: Sequence[Matches], amounts: Floats) -> Totals:
    """BM25 of every file as a whole."""
    number = len(view.files)
    norm = _norm(view.file_length + FILE_LENGTH_FLOOR, FILE_LENGTH_SHARE)
    summed = [_sum_files(view, found) for found in matches]
    spread = sum((np.bincount(which, minlength=len(amounts)) for which, _, _ in summed), np.zeros(len(amounts), int))
    worth = amounts * _rarity(spread, max(number, 1))
    total = np.zeros(number)
    for which, files, count in summed:
        total += np.bincount(files, worth[which] * _saturate(count / norm[files]), number)
    total[view.dead] = 0.0
    return total


def find_signals(
    question: Question, view: View, terms: Terms, amounts: Floats, matches: Sequence[Matches], units: Totals
) -> dict[str, Totals]:
    """What speaks for each file, by the names of WEIGHTS; those that are sums are divided by their best."""
    return {
        "file": _of_best(score_files(view, matches, amounts)),
        "units": _of_best(_best_units(view, units)),
        "folder": _of_best(_score_paths(view, terms, amounts, stems=False)),
        "stem": _of_best(_score_paths(view, terms, amounts, stems=True)),
        "defines": _score_definitions(question, view),
        "mentioned": _score_places(view, question.paths),
        "traced": _score_frames(view, question.frames),
    }


def priors(view: View, question: Question) -> Totals:
    """How likely a file is to be meant before anything is asked; 0 for those that are no longer there."""
    shares = {
        TEST: 1.0 if _ASKS_TESTS.search(question.title) else TEST_SHARE,
        ASIDE: 1.0 if _ASKS_TEXT.search(question.title) else ASIDE_SHARE,
        TEXT: 1.0 if _ASKS_TEXT.search(question.title) else TEXT_SHARE,
    }
    table = [
        math.prod(share for bit, share in shares.items() if kind & bit) for kind in range((TEST | ASIDE | TEXT) + 1)
    ]
    return np.where(view.dead, 0.0, np.array(table)[view.kinds])


def _best_units(view: View, units: Totals) -> Totals:
    """For each file the sum of its best units, as far as they are among the best of all."""
    total = np.zeros(len(view.files))
    number = min(MAX_UNITS, int(np.count_nonzero(units)))
    if not number:
        return total
    order = np.argpartition(-units, number - 1)[:number]
    order = order[np.lexsort((-units[order], view.unit_file[order]))]
    files = view.unit_file[order]
    place = np.arange(number) - np.searchsorted(files, files)
    kept = order[place < UNITS_TOGETHER]
    np.add.at(total, view.unit_file[kept], units[kept])
    return total


def _score_paths(view: View, terms: Terms, amounts: Floats, *, stems: bool) -> Totals:
    found = view.find_paths(terms, stems=stems)
    rarity = _rarity(np.bincount(found.which, minlength=len(terms)), max(len(view.files), 1))
    return np.bincount(found.rows, (amounts * rarity)[found.which], len(view.files)).astype(np.float64)


def _score_definitions(question: Question, view: View) -> Totals:
    """Files that define a name which the question spells out, the more the fewer do."""
    total = np.zeros(len(view.files))
    found = view.find_names(question.names)
    pairs = np.unique(found.which * len(total) + view.unit_file[found.rows])
    names, files = np.divmod(pairs, max(len(total), 1))
    number = np.bincount(names, minlength=1)[names]
    few = number <= MAX_DEFINED
    np.add.at(total, files[few], 1 / number[few])
    return np.minimum(total, 2.0)


def _score_places(view: View, places: Iterable[str]) -> Totals:
    """Files whose path ends like one that is named."""
    total = np.zeros(len(view.files))
    for place in places:
        parts = place.replace("\\", "/").strip("./").split("/")
        shared, files = _closest(view, parts)
        worth = 1.0 if shared > 1 or len(parts) == 1 else 0.5
        total[files] = np.maximum(total[files], worth / max(len(files), 1))
    return total


def _score_frames(view: View, frames: Sequence[str]) -> Totals:
    """Files of a traceback, the innermost first."""
    total = np.zeros(len(view.files))
    for depth, frame in enumerate(reversed(frames)):
        shared, files = _closest(view, frame.replace("\\", "/").strip("./").split("/"))
        if shared > 1 or any("/" not in view.files[file].path for file in files):
            total[files] = np.maximum(total[files], 1 / (1 + 0.3 * depth))
    return total


def _closest(view: View, parts: Sequence[str]) -> tuple[int, list[int]]:
    """The files that share most of the end of a path, and how many parts."""
    best = 0
    files: list[int] = []
    for file in view.named(parts[-1]):
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


def _sum_files(view: View, found: Matches) -> tuple[Ints, Ints, Floats]:
    """The matches of each term in one file added up. Rows are sorted, so those of a file stand together."""
    files = view.unit_file[found.rows]
    if not len(files):
        return found.which, files, np.zeros(0, np.float32)
    is_first = np.r_[True, (np.diff(files) != 0) | (np.diff(found.which) != 0)]
    start = np.flatnonzero(is_first)
    return found.which[start], files[start], np.add.reduceat(found.counts @ FIELD_WEIGHTS, start)


def _spread(matches: Sequence[Matches], terms: int) -> Ints:
    return sum((np.bincount(found.which, minlength=terms) for found in matches), np.zeros(terms, np.int64))


def _rarity(number: Ints, whole: int) -> Floats:
    return np.log1p((whole - number + 0.5) / (number + 0.5)).astype(np.float32)


def _norm(length: Floats, share: float) -> Floats:
    return (1 - share + share * length / max(float(length.mean()), 1e-9)) if len(length) else length


def _saturate(count: Floats) -> Floats:
    return count * (SATURATION + 1) / (count + SATURATION)


def _of_best(score: Totals) -> Totals:
    best = float(score.max(initial=0.0))
    return score / best if best > 0 else score
