"""What a search shows: the best files or symbols, where they begin, and which words of the question they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from clew.knowledge.code.question import Question
from clew.knowledge.code.ranking import Ranked, Totals
from clew.knowledge.code.text_segment import Ints
from clew.knowledge.code.text_view import View

MAX_WORDS = 5


class TextHit(msgspec.Struct, frozen=True):
    """A file or symbol that a question may be about. `qualname` is empty for a file in which no symbol stands out,
    and `line` is where the symbol begins; `why` names the words of the question that were found."""

    path: str
    blob: str
    qualname: str
    line: int
    score: float
    why: str


def show_files(question: Question, view: View, ranked: Ranked, limit: int) -> list[TextHit]:
    """The best files, each with its best symbol."""
    files = _best(ranked.files, limit)
    units = [_best_unit(view, ranked.units, file) for file in files]
    words = _words_of(question, view, ranked, view.unit_file, files)
    return [
        _hit(view, file, unit, float(ranked.files[file]), words.get(file, []))
        for file, unit in zip(files, units, strict=True)
    ]


def show_units(question: Question, view: View, ranked: Ranked, limit: int) -> list[TextHit]:
    """The best symbols."""
    units = _best(ranked.units, limit)
    words = _words_of(question, view, ranked, np.arange(len(view.unit_file)), units)
    return [
        _hit(view, int(view.unit_file[unit]), unit, float(ranked.units[unit]), words.get(unit, [])) for unit in units
    ]


def _best(scores: Totals, limit: int) -> list[int]:
    """The rows with the highest scores above 0, best first, equal ones in their order."""
    if limit < len(scores):
        floor = np.partition(scores, -limit)[-limit]
        rows = np.flatnonzero(scores >= max(floor, 1e-12))
    else:
        rows = np.flatnonzero(scores > 0)
    found: list[int] = rows[np.argsort(-scores[rows], kind="stable")][:limit].tolist()
    return found


def _best_unit(view: View, scores: Totals, file: int) -> int:
    first, last = view.units_of(file)
    return first + int(np.argmax(scores[first:last]))


def _words_of(question: Question, view: View, ranked: Ranked, owner: Ints, rows: Sequence[int]) -> dict[int, list[str]]:
    """For each row the words of the question that it has, the most telling first."""
    wanted = np.zeros(len(owner) + 1, bool)
    wanted[list(rows)] = True
    words: dict[int, dict[str, None]] = {row: {} for row in rows}
    for found in ranked.matches:
        places = owner[found.rows]
        hit = np.flatnonzero(wanted[places])
        for row, which in sorted(set(zip(places[hit].tolist(), found.which[hit].tolist(), strict=True))):
            words[row][question.spelling[int(ranked.terms[which])]] = None
    return {row: list(found)[:MAX_WORDS] for row, found in words.items()}


def _hit(view: View, file: int, unit: int, score: float, words: Iterable[str]) -> TextHit:
    qualname, line = view.unit_of(unit)
    known = view.files[file]
    why = ", ".join(words) or "close in meaning"
    return TextHit(path=known.path, blob=known.blob, qualname=qualname, line=line, score=round(score, 4), why=why)
