"""Which records contain a term: a tantivy index beside the trail, derived from it and rebuilt when in doubt.

It only proposes candidates. Whether a record exists, who may see it and how it scores is decided elsewhere, so an
index that is behind or lost costs time, never correctness.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tantivy

FORMAT = 1
HEAP_BYTES = 50_000_000

log = logging.getLogger(__name__)


class Postings:
    """Terms to row ids. `seq` is the event up to which the index is complete."""

    def __init__(self, folder: Path, trail_id: str, mark_of: Callable[[int], str]) -> None:
        """`mark_of` gives for an event's number something that tells it from another trail's, or a restored one's."""
        self._folder = folder
        self._trail_id = trail_id
        self._mark_of = mark_of
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("rid", stored=False, indexed=True, fast=True)
        builder.add_text_field("terms", stored=False, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        self._is_kept = True
        self.seq = self._open()

    def _open(self) -> int:
        """Open the index, or begin an empty one when it is missing, damaged or another trail's."""
        try:
            note = json.loads((self._folder / "clew.json").read_text(encoding="utf-8"))
            is_ours = note["format"] == FORMAT and note["trail"] == _fingerprint(self._trail_id)
            if is_ours and note["mark"] == self._mark_of(int(note["seq"])):
                self._index = tantivy.Index(self._schema, path=str(self._folder))
                self._searcher = self._index.searcher()
                return int(note["seq"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("the search index is unusable and will be rebuilt: %s", error)
        return self._begin()

    def _begin(self) -> int:
        """An empty index; in memory only, where the folder cannot be written."""
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=str(self._folder))
            self._note(0, self._mark_of(0))
        except (OSError, ValueError) as error:
            log.warning("the search index stays in memory, its folder cannot be written: %s", error)
            self._index, self._is_kept = tantivy.Index(self._schema), False
        self._searcher = self._index.searcher()
        return 0

    def find(self, terms: Sequence[int], limit: int) -> list[int]:
        """Row ids of the records with most of these terms, best first."""
        query = tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "terms", str(term), "freq"))
                for term in terms
            ]
        )
        hits = self._searcher.search(query, limit, count=False).hits
        found: Any = self._searcher.fast_field_values("rid", [address for _, address in hits]) if hits else []
        return list(found)

    def update(self, present: Sequence[tuple[int, str]], gone: Sequence[int], seq: int, mark: str) -> None:
        """Replace and remove records. When another process is writing the index, see what it has done instead."""
        try:
            writer = self._index.writer(heap_size=HEAP_BYTES, num_threads=1)
        except ValueError:
            self.refresh()
            return
        try:
            for rid in (*gone, *(rid for rid, _ in present)):
                writer.delete_documents_by_term("rid", rid)
            for rid, terms in present:
                writer.add_document(tantivy.Document(rid=rid, terms=terms))
            writer.commit()
            writer.wait_merging_threads()
        finally:
            del writer
        if self._is_kept:
            self._note(seq, mark)
        self._index.reload()
        self._searcher = self._index.searcher()
        self.seq = seq

    def refresh(self) -> None:
        """See what another process has written. Its note is read first: the index is never behind its note."""
        try:
            note: dict[str, Any] = json.loads((self._folder / "clew.json").read_text(encoding="utf-8"))
            self._index.reload()
            self._searcher = self._index.searcher()
            self.seq = int(note["seq"])
        except (OSError, ValueError, KeyError) as error:
            log.warning("the search index cannot be read: %s", error)

    def _note(self, seq: int, mark: str) -> None:
        """Say up to where the index is complete, after it is: an older note only repeats work."""
        path = self._folder / "clew.json"
        fresh = path.with_suffix(".tmp")
        note = {"format": FORMAT, "trail": _fingerprint(self._trail_id), "seq": seq, "mark": mark}
        fresh.write_text(json.dumps(note), encoding="utf-8")
        os.replace(fresh, path)


def _fingerprint(secret: str) -> str:
    """What tells trails apart without giving away the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]
