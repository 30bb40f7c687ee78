"""Postings: a tantivy index from terms to records, derived from the trail and rebuilt when in doubt.

It only proposes candidates. Other code decides whether a record exists, who may see it and how it scores. So an index
that is behind or lost costs time, but never correctness. A damaged index could lose hits or crash the process, so its
files are checked against their checksums when it is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tantivy

from clew.files import locked

FORMAT = 2
HEAP_BYTES = 50_000_000
SEGMENT_NAME = 32
"""The length of the names of tantivy's segments."""
MAX_CACHED = 256
"""Answers in the cache: about 3 MB."""

T = TypeVar("T")
log = logging.getLogger(__name__)


class _View(NamedTuple):
    """The index as of its last commit, and a cache of its answers."""

    searcher: Any
    cache: dict[tuple[int, ...], list[int]]


class TermPostings:
    """Terms to row ids. `seq` is the event up to which the index is complete."""

    def __init__(self, folder: Path | None, trail_id: str, mark_of: Callable[[int], str]) -> None:
        """Without a folder the index is in memory. `mark_of` returns a mark of an event, given its number. The event
        with the same number on another or a restored trail has another mark."""
        self._in_memory = folder is None
        self._folder = folder or Path()
        self._trail_id = trail_id
        self._mark_of = mark_of
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("rid", stored=False, indexed=True, fast=True)
        builder.add_text_field("terms", stored=False, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        self._is_kept = True
        self._checksums: dict[str, str] = {}
        self.seq = self._open()

    def _open(self) -> int:
        """Open the index, or create an empty one if it is missing, damaged or another trail's. Only one process at a
        time creates it; a process that waited for this opens the result. If the folder is a link, the index stays in
        memory."""
        if self._in_memory:
            return self._open_in_memory()
        if self._folder.is_symlink():
            return self._keep_in_memory("it is a link")
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            return self._open_noted()
        try:
            with locked(self._folder):
                return self._open_or_begin()
        except (OSError, ValueError) as error:
            return self._keep_in_memory(error)

    def _keep_in_memory(self, reason: object) -> int:
        log.warning("the search index stays in memory, its folder cannot be written: %s", reason)
        return self._open_in_memory()

    def _open_in_memory(self) -> int:
        self._index, self._is_kept = tantivy.Index(self._schema), False
        self._look_again()
        return 0

    def _open_noted(self) -> int:
        """Open the index that is on disk. Raises one of many errors if it is incomplete, damaged or another trail's."""
        note = json.loads((self._folder / "clew.json").read_text(encoding="utf-8"))
        seq = int(note["seq"])
        if (note["format"], note["trail"], note["mark"]) != (FORMAT, _fingerprint(self._trail_id), self._mark_of(seq)):
            raise FileNotFoundError("the index belongs to another trail")
        self._check_files(note["files"])
        self._index = tantivy.Index(self._schema, path=str(self._folder))
        self._look_again()
        return seq

    def _open_or_begin(self) -> int:
        try:
            return self._open_noted()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("the search index is unusable and will be rebuilt: %s", error)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._index = tantivy.Index(self._schema, path=str(self._folder))
        self._look_again()
        self._note(0, self._mark_of(0))
        return 0

    def find(self, terms: Sequence[int], limit: int) -> Sequence[int]:
        """Row ids of the records with most of these terms, best first. Repeated queries are cached, because a query for
        terms that nearly every record has must scan all records."""
        view = self._view  # one for all of it: the thread that writes may replace it in between
        key = (*terms, limit)
        found = view.cache.get(key)
        if found is None:
            found = self._search(view.searcher, terms, limit)
            if len(view.cache) >= MAX_CACHED:
                view.cache.clear()
            view.cache[key] = found
        return found

    def _search(self, searcher: Any, terms: Sequence[int], limit: int) -> list[int]:
        query = tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "terms", str(term), "freq"))
                for term in terms
            ]
        )
        hits = searcher.search(query, limit, count=False).hits
        return list(searcher.fast_field_values("rid", [address for _, address in hits])) if hits else []

    def update(self, present: Iterable[tuple[int, str]], gone: Sequence[int], seq: int, mark: str) -> None:
        """Replace and remove records. If another process is writing the index, read its result instead."""
        try:
            writer = self._index.writer(heap_size=HEAP_BYTES, num_threads=1)
        except ValueError:
            if not self._is_kept:
                raise
            self.refresh()
            return
        try:
            for rid in gone:
                writer.delete_documents_by_term("rid", rid)
            for rid, terms in present:
                writer.delete_documents_by_term("rid", rid)
                writer.add_document(tantivy.Document(rid=rid, terms=terms))
            writer.commit()
            writer.wait_merging_threads()
        finally:
            del writer
        if self._is_kept:
            self._note(seq, mark)
        self._look_again()
        self.seq = seq

    def refresh(self) -> None:
        """Read the index that another process has written. The note is read first, because the index is never behind
        its note."""
        try:
            note: dict[str, Any] = json.loads((self._folder / "clew.json").read_text(encoding="utf-8"))
            self._look_again()
            self.seq = int(note["seq"])
        except (OSError, ValueError, KeyError) as error:
            log.warning("the search index cannot be read: %s", error)

    def _look_again(self) -> None:
        """Reload the index from its current files."""
        self._index.reload()
        self._view = _View(self._index.searcher(), {})

    def _check_files(self, noted: dict[str, str]) -> None:
        """Raises ValueError if a file has changed since it was written. Files that another process has not noted yet
        are accepted."""
        self._checksums = self._of_files(_digest)
        for name, checksum in noted.items():
            if self._checksums.get(name, checksum) != checksum:
                raise ValueError(f"{name} has changed since it was written")

    def _of_files(self, look: Callable[[Path], T]) -> dict[str, T]:
        """Return the result of `look` for each file of the index. These files never change after they are written, but
        another process may merge and remove them at any time."""
        found: dict[str, T] = {}
        for file in self._folder.iterdir():
            if len(file.name.partition(".")[0]) == SEGMENT_NAME:
                with contextlib.suppress(FileNotFoundError):
                    found[file.name] = look(file)
        return found

    def _note(self, seq: int, mark: str) -> None:
        """Write up to which event the index is complete. This comes after the index itself, because an outdated note
        only repeats work."""
        known = self._checksums
        self._checksums = self._of_files(lambda file: known.get(file.name) or _digest(file))
        path = self._folder / "clew.json"
        fresh = path.with_suffix(".tmp")
        note = {
            "format": FORMAT,
            "trail": _fingerprint(self._trail_id),
            "seq": seq,
            "mark": mark,
            "files": self._checksums,
        }
        fresh.write_text(json.dumps(note), encoding="utf-8")
        os.replace(fresh, path)


def _fingerprint(secret: str) -> str:
    """A fingerprint of the trail that does not reveal the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
