"""The words and vectors of a folder's files: what a question in words is looked up in.

Kept in tables of the code's store, by content, so that a content that comes back costs nothing. Searches run over
arrays in memory, which are brought up to date first; whatever another thread or process wrote is seen.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from clew.errors import Corrupted
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.question import Question, parse_question
from clew.knowledge.code.ranking import DENSE_SHARE, Ranked, rank, rank_units
from clew.knowledge.code.store import CodeStore, Sql, read_meta
from clew.knowledge.code.text_hits import TextHit, show_files, show_units
from clew.knowledge.code.text_segment import Floats, TextContent, TextFile, build_segment
from clew.knowledge.code.text_units import PackedText, pack_text, read_texts
from clew.knowledge.code.text_view import View
from clew.knowledge.code.words import terms_of
from clew.knowledge.compact_vectors import compact
from clew.trail.store import Embedder

SMALL = 64
"""So many changed files are searched beside the others; beyond an eighth of them all, everything is built anew."""

READERS = {"all-minilm-l6-v2": 0.85}
"""Embedders that understand source, and how much their closeness counts; others are given names and descriptions."""

FORMAT = 2
"""Changes whenever the way in which vectors are kept does: those of another number are made anew."""
_MARK = "text"
_TABLES = """
CREATE TABLE IF NOT EXISTS text_files (path TEXT PRIMARY KEY, blob TEXT NOT NULL, language TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS text_contents (
    blob TEXT NOT NULL, language TEXT NOT NULL, packed BLOB NOT NULL, texts BLOB NOT NULL,
    model TEXT NOT NULL DEFAULT '', vectors BLOB,
    PRIMARY KEY (blob, language)
);
"""
_HAS_TABLES = "SELECT count(*) FROM sqlite_schema WHERE name = 'text_contents'"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PackedText).decode


class EncodedText(NamedTuple):
    """The units of a content, and their texts for an embedder."""

    packed: bytes
    texts: bytes


class TextIndex:
    """May be used from several threads. Raises StorageError where the store cannot be read or written."""

    def __init__(self, store: CodeStore, embedder: Embedder | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._turn = threading.Lock()
        self._mark: int | None = None
        self._base = build_segment([])
        self._beside: dict[str, TextContent] = {}
        self._view = View([], [])

    def put(self, path: str, blob: str, facts: FileFacts, text: str) -> None:
        """Replace what is known of a file. A content that is known already is not read again."""
        if not self.link(path, blob, facts.language):
            self.put_encoded(path, blob, facts.language, encode_text(facts, text))

    def put_encoded(self, path: str, blob: str, language: str, encoded: EncodedText) -> None:
        """The same with what `encode_text` made, perhaps in another process."""
        with self._store.writing() as sql:
            sql.execute(_TABLES)
            sql.execute(
                "INSERT INTO text_contents (blob, language, packed, texts) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (blob, language, *encoded),
            )
            _link(sql, path, blob, language)

    def link(self, path: str, blob: str, language: str) -> bool:
        """Say that a file has a known content. False, and nothing happens, when it is not known."""
        with self._store.writing() as sql:
            sql.execute(_TABLES)
            known = sql.execute("SELECT 1 FROM text_contents WHERE blob = ? AND language = ?", (blob, language))
            if known.fetchone() is None:
                return False
            _link(sql, path, blob, language)
            return True

    def drop(self, path: str) -> None:
        """Forget a file; its content is kept until `prune`. Nothing happens when there is none."""
        with self._store.writing() as sql:
            sql.execute(_TABLES)
            sql.execute("DELETE FROM text_files WHERE path = ?", (path,))
            _touch(sql)

    def prune(self) -> None:
        """Delete contents that no file has."""
        with self._store.writing() as sql:
            sql.execute(_TABLES)
            sql.execute(
                "DELETE FROM text_contents WHERE (blob, language) NOT IN (SELECT blob, language FROM text_files)"
            )

    def embed(self, limit: int = 100) -> int:
        """Make the vectors of so many contents that lack them; returns how many were made, 0 when all have theirs."""
        if self._embedder is None:
            return 0
        with self._store.reading() as sql:
            waiting = _read_waiting(sql, self._model, limit)
        made = [(self._model, self._vectors(texts), blob, language) for blob, language, texts in waiting]
        if made:
            with self._store.writing() as sql:
                sql.executemany("UPDATE text_contents SET model = ?, vectors = ? WHERE blob = ? AND language = ?", made)
                _touch(sql)
        return len(made)

    def search(self, query: str, *, limit: int = 10, symbols: bool = False) -> list[TextHit]:
        """The files that the question is most likely about, best first, each with the symbol in it that fits best;
        with `symbols`, the symbols. Only what has a word in common with the question, or is close in meaning."""
        question = parse_question(query)
        view = self._fresh_view()
        if not view.files or limit < 1:
            return []
        if symbols:
            return show_units(question, view, self._rank_units(question, view), limit)
        return show_files(question, view, rank(question, view), limit)

    def knows(self, text: str) -> bool:
        """Whether any word of a text stands in any file."""
        terms = np.fromiter(parse_question(text).terms, np.uint32)
        return bool(self._fresh_view().number_of(terms).any())

    def rarity(self, words: Sequence[str]) -> dict[str, float]:
        """How rare each word is among all symbols; the more, the rarer. 0 for one that stands nowhere."""
        view = self._fresh_view()
        return {word: _rarity_of(view, word) for word in words}

    def _rank_units(self, question: Question, view: View) -> Ranked:
        if self._embedder is None:
            return rank_units(question, view)
        is_reader = self._embedder.name in READERS
        vector = self._vector_of(question.title if is_reader else question.plain)
        return rank_units(question, view, vector, READERS.get(self._embedder.name, DENSE_SHARE))

    def _fresh_view(self) -> View:
        """The view of what the store holds now."""
        with self._turn, self._store.reading() as sql:
            if not sql.execute(_HAS_TABLES).fetchone()[0]:
                self._base, self._beside, self._mark, self._view = build_segment([]), {}, None, View([], [])
                return self._view
            mark = read_meta(sql, _MARK)
            if mark != self._mark:
                self._load(sql)
                self._mark = mark
            return self._view

    def _load(self, sql: Sql) -> None:
        """The segments of the files that there are: the large one stays while little has changed."""
        rows = sql.execute(
            "SELECT f.path, f.blob, f.language, c.model = ? AND c.vectors IS NOT NULL FROM text_files f"
            " JOIN text_contents c USING (blob, language) ORDER BY f.path",
            (self._model,),
        )
        wanted = {path: (blob, language, bool(has_vectors)) for path, blob, language, has_vectors in rows}
        dead = [wanted.get(file.path) != _state(file) for file in self._base.files]
        alive = {file.path for file, is_dead in zip(self._base.files, dead, strict=True) if not is_dead}
        changed = wanted.keys() - alive
        dimension = self._embedder.dimension if self._embedder else 0
        if len(changed) + sum(dead) > max(SMALL, len(wanted) // 8):
            self._beside = {}
            self._base = build_segment([self._read(sql, path, *wanted[path]) for path in wanted], dimension)
            self._view = View([self._base], [np.zeros(len(wanted), bool)])
            return
        self._beside = {path: self._read(sql, path, *wanted[path]) for path in sorted(changed)}
        segments = [self._base, *([build_segment(list(self._beside.values()), dimension)] if changed else [])]
        self._view = View(segments, [np.array(dead, bool), np.zeros(len(changed), bool)][: len(segments)])

    def _read(self, sql: Sql, path: str, blob: str, language: str, has_vectors: bool) -> TextContent:
        """The content of a file, as it was read before if it is the same."""
        known = self._beside.get(path)
        if known and _state(known) == (blob, language, has_vectors):
            return known
        packed, vectors = sql.execute(
            "SELECT packed, vectors FROM text_contents WHERE blob = ? AND language = ?", (blob, language)
        ).fetchone()
        try:
            return TextContent(path, blob, language, _decode(packed), vectors if has_vectors else b"")
        except msgspec.DecodeError as error:
            raise Corrupted(f"the words of {path} cannot be read from {self._store.path}") from error

    @property
    def _model(self) -> str:
        """By whom vectors were made, and how they are kept."""
        return f"{self._embedder.name} {FORMAT}" if self._embedder else ""

    def _vectors(self, texts: bytes) -> bytes:
        """The vectors of all units of a content: a byte for each number, then a scale for each vector."""
        if self._embedder is None:
            return b""
        read = read_texts(texts, whole=self._embedder.name in READERS)
        floats = np.frombuffer(b"".join(self._embedder.embed(read)), "<f4")
        small = compact(floats.reshape(len(read), -1))
        return small.codes.tobytes() + small.scales.astype("<f4").tobytes()

    def _vector_of(self, text: str) -> Floats | None:
        """The vector of a question; None without an embedder, or where it knows no word of it."""
        if self._embedder is None or not text:
            return None
        vector = np.frombuffer(self._embedder.embed([text])[0], "<f4")
        return vector if vector.any() else None


def _rarity_of(view: View, word: str) -> float:
    terms = np.fromiter(terms_of(word), np.uint32)
    number = int(view.number_of(terms).min()) if len(terms) else 0
    return math.log1p((len(view.unit_file) - number + 0.5) / (number + 0.5)) if number else 0.0


def encode_text(facts: FileFacts, text: str) -> EncodedText:
    """What the index keeps of a content. Pure: may run in another process."""
    packed, texts = pack_text(facts, text)
    return EncodedText(_encode(packed), texts)


def _state(file: TextFile | TextContent) -> tuple[str, str, bool]:
    """What a file must still be like to count."""
    return file.blob, file.language, bool(file.vectors) if isinstance(file, TextContent) else file.has_vectors


def _link(sql: Sql, path: str, blob: str, language: str) -> None:
    sql.execute("INSERT OR REPLACE INTO text_files VALUES (?, ?, ?)", (path, blob, language))
    _touch(sql)


def _touch(sql: Sql) -> None:
    """Let every reader see that something has changed."""
    sql.execute("INSERT INTO meta VALUES (?, random()) ON CONFLICT DO UPDATE SET value = excluded.value", (_MARK,))


def _read_waiting(sql: Sql, model: str, limit: int) -> list[tuple[str, str, bytes]]:
    """Contents without vectors of this model that a file has."""
    if not sql.execute(_HAS_TABLES).fetchone()[0]:
        return []
    query = (
        "SELECT DISTINCT blob, language, texts FROM text_contents JOIN text_files USING (blob, language)"
        " WHERE model <> ? LIMIT ?"
    )
    found: list[tuple[str, str, bytes]] = sql.execute(query, (model, limit)).fetchall()
    return found
