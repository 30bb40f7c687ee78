"""Clew: files are read, masked, parsed and kept as its index does it, and found as `locate` finds them."""

from __future__ import annotations

from pathlib import Path

from clew.knowledge.code.file_content import FileContent, blob_id, make_readable
from clew.knowledge.code.models import FileStatus
from clew.knowledge.code.pool import run_job
from clew.knowledge.code.search.search_index import EncodedText, SearchIndex
from clew.knowledge.code.store import CodeStore
from knowledge_peers.contender import FOUND

_NO_STATUS = FileStatus(0, 0, 0, 0)


class Ours:
    def __init__(self, folder: Path) -> None:
        self._store = CodeStore(folder / "code.db")
        self._index = SearchIndex(self._store)
        self._waiting: dict[str, bytes | None] = {}

    def put(self, path: str, body: bytes) -> None:
        self._waiting[path] = body

    def drop(self, path: str) -> None:
        self._waiting[path] = None

    def settle(self) -> None:
        """One transaction; what a search would load is loaded."""
        with self._store.writing():
            for path, body in self._waiting.items():
                self._index.drop(path)
                if body is not None:
                    self._take_in(path, body)
        self._waiting = {}
        self._index.search("")

    def _take_in(self, path: str, body: bytes) -> None:
        readable = make_readable(FileContent(path, _NO_STATUS, 0, blob_id(body), body))
        if readable.left_out or self._index.link(path, readable.content.blob, readable.language):
            return
        words = run_job(readable.job()).words
        assert words is not None
        self._index.put_encoded(path, readable.content.blob, readable.language, EncodedText(*words))

    def search(self, question: str) -> list[str]:
        return [hit.path for hit in self._index.search(question, limit=FOUND)]

    def close(self) -> None:
        self._store.close()
