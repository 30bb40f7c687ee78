"""Clew: files are read, masked, parsed and stored as in its index, and found as by `locate`."""

from __future__ import annotations

from pathlib import Path

from clew.knowledge.code import rows
from clew.knowledge.code.file_content import FileContent, blob_id, make_readable
from clew.knowledge.code.index import advance
from clew.knowledge.code.models import FileStatus
from clew.knowledge.code.pool import run_job
from clew.knowledge.code.search.search_index import SearchIndex
from clew.knowledge.code.store import CodeStore
from clew.sqlite_file import Sql
from knowledge_peers.contender import FOUND

_NO_STATUS = FileStatus(0, 0, 0, 0)


def put_file(sql: Sql, path: str, body: bytes) -> None:
    """Write a file as indexing does. A known content is not parsed again."""
    readable = make_readable(FileContent(path, _NO_STATUS, 0, blob_id(body), body))
    if readable.left_out:
        rows.drop_file(sql, path)
        return
    content, language = readable.content, readable.language
    known = rows.find_facts(sql, content.blob, language)
    if known is None:
        parsed = run_job(readable.job())
        rows.write_parsed(sql, content.blob, language, parsed, 0)
        known = parsed.facts
    rows.write_file(sql, content, language, rows.decode_facts(known))


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
        """One transaction; it also loads the data that a search would load."""
        with self._store.writing() as sql:
            for path, body in self._waiting.items():
                if body is None:
                    rows.drop_file(sql, path)
                else:
                    put_file(sql, path, body)
            advance(sql)
        self._waiting = {}
        self._index.search("")

    def search(self, question: str) -> list[str]:
        return [hit.path for hit in self._index.search(question, limit=FOUND)]

    def close(self) -> None:
        self._store.close()
