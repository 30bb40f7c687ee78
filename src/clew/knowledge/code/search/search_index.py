"""The search index over a folder's files: words and vectors of their passages.

The code store has them by content, so equal content is indexed once. Searches run over arrays in memory, which are
refreshed first, so each search sees the writes of other threads and processes.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from clew.errors import Corrupted
from clew.knowledge.code.search.passages import Packed, read_texts
from clew.knowledge.code.search.postings import (
    Floats,
    IndexView,
    Ints,
    PackedFile,
    PassagePlace,
    build_segment,
    compact,
)
from clew.knowledge.code.search.ranking import (
    SYMBOL_DENSE_SHARE,
    Ranked,
    Shares,
    Totals,
    rank,
    rank_passages,
    rank_symbols,
    rarity,
)
from clew.knowledge.code.search.words import IssueText, parse_issue_text, parts_of, terms_of, terms_of_rare
from clew.knowledge.code.store import CodeStore, read_meta, write_meta
from clew.lazy_pattern import lazy_pattern
from clew.sqlite_file import Sql
from clew.trail.search.text import STOP
from clew.trail.store import Embedder

SMALL = 64
"""The number of changed files that a second segment may hold. Above it, and above an eighth of all files, the whole
index is built again."""
SOURCE_SHARES = {"all-minilm-l6-v2": 0.85}
"""Embedders that understand source code, and their share in a search of symbols."""
FORMAT = 3
"""The version of the stored form of vectors. Vectors in another version are made again."""
MAX_WORDS = 5
CORRECTED_FROM, SUBSTITUTED_FROM = 6, 8
SHORTEST_PART, FREQUENT, MAX_CORRECTED = 4, 10, 30
"""Shorter words are not corrected; in shorter words no letter is exchanged for another."""
MAX_CORRECTIONS = 10_000
"""Words whose corrections are cached."""
_QUALIFIER = lazy_pattern(r"\.|::|#")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
VECTORS = "vectors"
"""The key of a number that increases with every change of vectors, and when words are added after their files were
read."""
_EMBEDDED = "embedded"
"""The embedder, and the state of files and vectors in which all contents have vectors. To look for others reads the
table."""
_STATE = "f.path, f.blob, f.language, p.model = ? AND p.vectors IS NOT NULL"
_FILES = "FROM files f JOIN passages p USING (blob, language) WHERE f.left_out = ''"
_OUTER = ("class", "interface")
_decode = msgspec.msgpack.Decoder(Packed).decode


class FileHit(NamedTuple):
    """A file or symbol that a text may be about. `name` is empty if no symbol of the file matches best; `why` names the
    words that were found."""

    path: str
    blob: str
    name: str
    line: int
    score: float
    why: str


class PassageHit(NamedTuple):
    """A passage that a question may be about. `cover` is the weighted share of the question's words in it."""

    place: PassagePlace
    score: float
    cover: float


class SearchIndex:
    """May be used from several threads. Raises StorageError if the store cannot be read or written."""

    def __init__(self, store: CodeStore, embedder: Embedder | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._lock = threading.Lock()
        self._mark: tuple[int, int, int] | None = None
        self._base = build_segment([])
        self._changed: dict[str, PackedFile] = {}
        self._view = IndexView([], [])
        self._corrected: dict[str, tuple[str, ...]] = {}

    def embed(self, limit: int = 100) -> int:
        """Make the vectors of up to `limit` contents that have none. Returns how many were made."""
        if self._embedder is None:
            return 0
        with self._store.reading() as sql:
            state = f"{self._model} {read_meta(sql, 'generation', 0)} {read_meta(sql, VECTORS, 0)}"
            if read_meta(sql, _EMBEDDED, "") == state:
                return 0
            waiting = _read_waiting(sql, self._model, limit)
        made = [(self._model, self._vectors(texts), blob, language) for blob, language, texts in waiting]
        with self._store.writing() as sql:
            if made:
                sql.executemany("UPDATE passages SET model = ?, vectors = ? WHERE blob = ? AND language = ?", made)
                write_meta(sql, VECTORS, read_meta(sql, VECTORS, 0) + 1)
            else:
                write_meta(sql, _EMBEDDED, state)
        return len(made)

    def search(self, query: str, *, limit: int = 10, symbols: bool = False) -> list[FileHit]:
        """The files that a text is about, best first, each with its best symbol; with `symbols`, the symbols."""
        text, view = parse_issue_text(query), self._fresh_view()
        if not view.files or limit < 1:
            return []
        if symbols:
            return list(_symbol_hits(text, view, self._rank_symbols(text, view), limit))
        return list(_file_hits(text, view, rank(text, view), limit))

    def passages(
        self,
        words: Sequence[str],
        *,
        shares: Shares,
        limit: int = 60,
        cover: float = 0.0,
    ) -> list[PassageHit]:
        """The passages that have the words of a question or are close to them in meaning, best first. Passages with
        less than `cover` are then left out."""
        view = self._fresh_view()
        if not view.files or not words:
            return []
        terms = {term: 1.0 for word in words for term in terms_of(word)}
        ranked = rank_passages(terms, view, self._vector_of(" ".join(words)), shares)
        rows = np.array(_best(ranked.passages, limit), np.int64)
        shares_of = self._cover(view, ranked, words, rows)
        kept = shares_of >= cover
        scores, covers = ranked.passages[rows[kept]].tolist(), shares_of[kept].tolist()
        return [PassageHit(*each) for each in zip(view.places_of(rows[kept]), scores, covers, strict=True)]

    def without_lacking(self, hits: Sequence[PassageHit], words: Sequence[str]) -> list[PassageHit]:
        """The passages that have all of some words. Classes stay: their methods are passages of their
        own."""
        view = self._fresh_view()
        terms = {known[-1] for word in words if (known := terms_of(word))}
        if not terms:
            return list(hits)
        number = np.zeros(len(view.passage_file), np.int64)
        for found in view.find(np.fromiter(terms, np.uint32)):
            number += np.bincount(found.rows, minlength=len(number))
        places = view.places_of(np.flatnonzero(number == len(terms)))
        whole = {(place.path, place.start) for place in places}
        return [hit for hit in hits if hit.place.kind in _OUTER or (hit.place.path, hit.place.start) in whole]

    def lacking(self, name: str) -> list[str]:
        """Files whose passages do not have a name; none if the index is not in memory."""
        terms = np.array(terms_of(name)[-1:] if name.isidentifier() else parts_of(name), np.uint32)
        if not len(terms) or not name.isascii() or not self.is_loaded():
            return []
        view = self._fresh_view()
        has = np.zeros((len(view.files), len(terms)), bool)
        for found in view.find(terms):
            has[view.passage_file[found.rows], found.which] = True
        return [view.files[file].path for file in np.flatnonzero(~has.all(axis=1) & ~view.dead)]

    def passage_at(self, path: str, line: int) -> PassagePlace | None:
        """The last passage of a file that begins at or before a line and reaches it."""
        view = self._fresh_view()
        for file in view.files_named(path.rpartition("/")[2]):
            if view.files[file].path == path:
                places = view.places_of(np.arange(*view.passages_of(file)))
                return next((each for each in reversed(places) if each.start <= line <= each.end), None)
        return None

    def is_loaded(self) -> bool:
        """Whether the present state of the store is in memory."""
        with self._store.reading() as sql:
            return self._read_mark(sql) == self._mark

    def knows(self, text: str) -> bool:
        """Whether any word of a text occurs in any file."""
        terms = np.fromiter(parse_issue_text(text).terms, np.uint32)
        return bool(self._fresh_view().number_of(terms).any())

    def rarity(self, words: Sequence[str]) -> dict[str, float]:
        """The inverse document frequency of each word; 0 for a word that occurs nowhere."""
        return _rarity_of(self._fresh_view(), words)

    def has_name(self, name: str) -> bool:
        """Whether a name occurs. For a qualified name, only the last part is used. If it consists of several words, it
        must occur as a whole, in any spelling. Otherwise, any word of the name suffices."""
        last = terms_of(_QUALIFIER.split(name)[-1])
        terms = last[-1:] if len(last) > 1 else terms_of(name)
        return not terms or bool(self._fresh_view().number_of(np.array(terms, np.uint32)).any())

    def importance(self, words: Sequence[str]) -> dict[str, float]:
        """The importance of each word: how much of the meaning of all words is lost without it, relative to the mean.
        Without an embedder all words are equal."""
        whole = self._vector_of(" ".join(words))
        parts = [self._vector_of(" ".join(each for each in words if each != word)) for word in words]
        if whole is None or len(parts) < 2 or any(part is None for part in parts):
            return dict.fromkeys(words, 1.0)
        lost = [1.0 - float(whole @ part) for part in parts if part is not None]
        mean = sum(lost) / len(lost) or 1.0
        return {word: each / mean for word, each in zip(words, lost, strict=True)}

    def correct(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Correct the spelling of each word by the words of the files. A word that occurs stays as it is. An unknown
        word is replaced by the most frequent word that differs by one letter, or by two frequent words that form it
        together. Without such words it stays as it is."""
        view, known = self._fresh_view(), self._corrected
        new = [word for word in words if word not in known]
        for word, number in _frequencies(view, new).items() if new else ():
            known[word] = (word,) if number else _corrected(view, word)
        return [known[word] for word in words]

    def _cover(self, view: IndexView, ranked: Ranked, words: Sequence[str], rows: Ints) -> Totals:
        """For each row the share of the words that it has, by their rarity. Unknown words, and words of several parts
        that no file joins, count as the rarest."""
        unknown = math.log1p(len(view.passage_file) / 0.5)
        rare = _rarity_of(view, words)
        whole = view.number_of(np.array([(terms_of(word) or (0,))[-1] for word in rare], np.uint32)).tolist()
        weights = [
            (parts_of(word), weight or unknown) if number else ((), unknown)
            for (word, weight), number in zip(rare.items(), whole, strict=True)
        ]
        total = sum(weight for _, weight in weights) or 1.0
        at = np.full(len(view.passage_file), -1)
        at[rows] = np.arange(len(rows))
        held = np.zeros((len(rows), len(ranked.terms)))
        for matches in ranked.matches:
            place = at[matches.rows]
            held[place[place >= 0], matches.which[place >= 0]] = 1.0
        column = {term: which for which, term in enumerate(ranked.terms.tolist())}
        shares = np.zeros(len(ranked.terms))
        for parts, weight in weights:
            for part in parts:
                if part in column:
                    shares[column[part]] += weight / (total * len(parts))
        found: Totals = held @ shares
        return found

    def _rank_symbols(self, text: IssueText, view: IndexView) -> Ranked:
        name = self._embedder.name if self._embedder else ""
        vector = self._vector_of(text.title if name in SOURCE_SHARES else text.plain)
        return rank_symbols(text, view, vector, SOURCE_SHARES.get(name, SYMBOL_DENSE_SHARE))

    def _fresh_view(self) -> IndexView:
        """The view of the present state of the store."""
        with self._lock, self._store.reading() as sql:
            mark = self._read_mark(sql)
            if mark != self._mark or len(self._corrected) > MAX_CORRECTIONS:
                self._corrected = {}
            if mark != self._mark:
                self._load(sql)
            self._mark = mark
            return self._view

    def _read_mark(self, sql: Sql) -> tuple[int, int, int]:
        """The state of files and vectors in the store."""
        return self._store.era, read_meta(sql, "generation", 0), read_meta(sql, VECTORS, 0)

    def _load(self, sql: Sql) -> None:
        """Build the segments of the present files; the large one stays while little has changed."""
        wanted = self._read_states(sql) if self._base.files else {}
        dead = [wanted.get(file.path) != _state(file) for file in self._base.files]
        alive = {file.path for file, is_dead in zip(self._base.files, dead, strict=True) if not is_dead}
        changed = wanted.keys() - alive
        dimension = self._embedder.dimension if self._embedder else 0
        if not self._base.files or len(changed) + sum(dead) > max(SMALL, len(wanted) // 8):
            self._changed = {}
            self._base = build_segment(list(self._read(sql)), dimension)
            self._view = IndexView([self._base], [np.zeros(len(self._base.files), bool)])
            return
        known = {path: file for path, file in self._changed.items() if _state(file) == wanted.get(path)}
        known |= {file.path: file for file in self._read(sql, changed - known.keys())}
        self._changed = {path: known[path] for path in sorted(changed)}
        segments = [self._base, *([build_segment(list(self._changed.values()), dimension)] if changed else [])]
        self._view = IndexView(segments, [np.array(dead, bool), np.zeros(len(changed), bool)][: len(segments)])

    def _read_states(self, sql: Sql) -> dict[str, tuple[str, str, bool]]:
        """As `_state`, of all files."""
        rows = sql.execute(f"SELECT {_STATE} {_FILES}", (self._model,))
        return {path: (blob.hex(), language, bool(has_vectors)) for path, blob, language, has_vectors in rows}

    def _read(self, sql: Sql, only: Collection[str] | None = None) -> Iterator[PackedFile]:
        """The contents of all files, or of some, by path."""
        chosen = "" if only is None else "AND f.path IN (SELECT value FROM json_each(?))"
        values = (self._model, *(() if only is None else (json.dumps(list(only)),)))
        rows = sql.execute(f"SELECT {_STATE}, p.packed, p.vectors {_FILES} {chosen} ORDER BY f.path", values)
        for path, blob, language, has_vectors, packed, vectors in rows:
            try:
                yield PackedFile(path, blob.hex(), language, _decode(packed), vectors if has_vectors else b"")
            except msgspec.DecodeError as error:
                raise Corrupted(f"the words of {path} cannot be read from {self._store.path}") from error

    @property
    def _model(self) -> str:
        """The embedder and the format of its vectors."""
        return f"{self._embedder.name} {FORMAT}" if self._embedder else ""

    def _vectors(self, texts: bytes) -> bytes:
        """The vectors of all passages of a content: a byte for each number, then a scale for each vector."""
        if self._embedder is None:
            return b""
        read = read_texts(texts)
        floats = np.frombuffer(b"".join(self._embedder.embed(read)), "<f4")
        small = compact(floats.reshape(len(read), -1))
        return small.codes.tobytes() + small.scales.astype("<f4").tobytes()

    def _vector_of(self, text: str) -> Floats | None:
        """The vector of a text; None without an embedder, or if it knows no word of it."""
        if self._embedder is None or not text:
            return None
        vector = np.frombuffer(self._embedder.embed([text])[0], "<f4")
        return vector if vector.any() else None


def _file_hits(text: IssueText, view: IndexView, ranked: Ranked, limit: int) -> Iterator[FileHit]:
    files = _best(ranked.files, limit)
    words = _words_of(text, ranked, view.passage_file, files)
    for file in files:
        first, last = view.passages_of(file)
        best = first + int(np.argmax(ranked.passages[first:last]))
        yield _hit(view.place_of(best), float(ranked.files[file]), words.get(file, []))


def _symbol_hits(text: IssueText, view: IndexView, ranked: Ranked, limit: int) -> Iterator[FileHit]:
    rows = _best(ranked.passages, limit)
    words = _words_of(text, ranked, np.arange(len(view.passage_file)), rows)
    for row in rows:
        yield _hit(view.place_of(row), float(ranked.passages[row]), words.get(row, []))


def _hit(place: PassagePlace, score: float, words: Iterable[str]) -> FileHit:
    name = place.name if place.kind not in ("section", "text") else ""
    return FileHit(place.path, place.blob, name, place.start, round(score, 4), ", ".join(words) or "close in meaning")


def _best(scores: Totals, limit: int) -> list[int]:
    """The rows with the highest scores above 0, best first, equal ones in their order."""
    if limit < len(scores):
        floor = np.partition(scores, -limit)[-limit]
        rows = np.flatnonzero(scores >= max(floor, 1e-12))
    else:
        rows = np.flatnonzero(scores > 0)
    found: list[int] = rows[np.argsort(-scores[rows], kind="stable")][:limit].tolist()
    return found


def _words_of(text: IssueText, ranked: Ranked, owner: Ints, rows: Sequence[int]) -> dict[int, list[str]]:
    """For each row the words of the text that it has, the most informative first."""
    wanted = np.zeros(len(owner) + 1, bool)
    wanted[list(rows)] = True
    words: dict[int, dict[str, None]] = {row: {} for row in rows}
    for found in ranked.matches:
        places = owner[found.rows]
        hit = np.flatnonzero(wanted[places])
        for row, which in sorted(set(zip(places[hit].tolist(), found.which[hit].tolist(), strict=True))):
            words[row][text.spelling[int(ranked.terms[which])]] = None
    return {row: list(found)[:MAX_WORDS] for row, found in words.items()}


def _rarity_of(view: IndexView, words: Sequence[str]) -> dict[str, float]:
    """The inverse document frequency of the first term of each word; 0 for a word that occurs nowhere."""
    first = {word: terms[0] for word in words if (terms := terms_of(word))}
    numbers = view.number_of(np.fromiter(first.values(), np.uint32, len(first)))
    rare = np.where(numbers > 0, rarity(numbers, len(view.passage_file)), 0.0)
    return {**dict.fromkeys(words, 0.0), **dict(zip(first, rare.tolist(), strict=True))}


def _corrected(view: IndexView, word: str) -> tuple[str, ...]:
    """A word that occurs nowhere as the files spell it."""
    if not word.isalpha() or not CORRECTED_FROM <= len(word) <= MAX_CORRECTED:
        return (word,)
    if best := _most_frequent(view, sorted(_edits(word.lower()))):
        return (best,)
    cuts = [(word[:at], word[at:]) for at in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)]
    known = _frequencies(view, [part for cut in cuts for part in cut])
    parts = max(cuts, key=lambda cut: min(known[part] for part in cut), default=(word,))
    return parts if len(parts) > 1 and min(known[part] for part in parts) >= FREQUENT else (word,)


def _frequencies(view: IndexView, words: Sequence[str]) -> dict[str, int]:
    """In how many passages the most frequent term of each word occurs."""
    terms = {word: terms_of(word) for word in words}
    numbers = iter(view.number_of(np.array([term for each in terms.values() for term in each], np.uint32)).tolist())
    return {word: max(islice(numbers, len(each)), default=0) for word, each in terms.items()}


def _most_frequent(view: IndexView, words: Sequence[str]) -> str:
    """The first of the words that occur in most passages; empty if none occurs."""
    if all(word.isascii() for word in words):
        telling = [word for word in words if word not in STOP]
        numbers = dict(zip(telling, view.number_of(np.array(terms_of_rare(telling), np.uint32)).tolist(), strict=True))
    else:
        numbers = _frequencies(view, words)
    best = max(numbers, key=numbers.__getitem__, default="")
    return best if best and numbers[best] else ""


def _edits(word: str) -> set[str]:
    """Words with one letter less or more, two letters swapped, or in a long word one letter exchanged."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = {head + tail[1:] for head, tail in cuts[1:] if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    found |= {head + letter + tail for head, tail in cuts[1:] for letter in _LETTERS}
    if len(word) >= SUBSTITUTED_FROM:
        found |= {head + letter + tail[1:] for head, tail in cuts[2:] if tail for letter in _LETTERS}
    return found - {word}


def _state(file: PackedFile) -> tuple[str, str, bool]:
    """The properties of a file that decide whether an indexed copy is up to date."""
    return file.blob, file.language, bool(file.vectors)


def _read_waiting(sql: Sql, model: str, limit: int) -> list[tuple[bytes, str, bytes]]:
    """Contents of present files without vectors of this model."""
    query = (
        "SELECT DISTINCT blob, language, texts FROM passages JOIN files USING (blob, language)"
        " WHERE model <> ? AND left_out = '' LIMIT ?"
    )
    found: list[tuple[bytes, str, bytes]] = sql.execute(query, (model, limit)).fetchall()
    return found
