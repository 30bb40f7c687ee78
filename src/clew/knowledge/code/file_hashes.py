"""The current blob ids of some files, to check results that were derived from them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.rows import FileRow, find_file
from clew.knowledge.code.store import read_meta

ROUNDS = 4
"""Attempts to read files that change meanwhile."""


class FileHashes:
    """The files of a graph whose paths are wanted. For use by several tasks at once."""

    def __init__(self, graph: CodeGraph, is_wanted: Callable[[str], bool]) -> None:
        self._graph = graph
        self._is_wanted = is_wanted
        self._rows: dict[str, FileRow] = {}
        self._state: tuple[int, int] | None = None
        self._turn = threading.Lock()

    async def now(self) -> dict[str, str]:
        """The blob ids by path, without files that are left out. Reads changed files, and then refreshes the index, as
        a checkout changes many files."""
        await self._graph.look()
        return await self._graph.mending(lambda: asyncio.to_thread(self._now))

    async def of(self, path: str) -> str:
        """The blob id of a file that may not be indexed yet; empty if it cannot be read."""
        found = await asyncio.to_thread(read_content, self._graph.tree.root, path)
        return found.blob if found is not None else ""

    def _now(self) -> dict[str, str]:
        with self._turn:
            for _ in range(ROUNDS):
                self._load()
                doubtful = [path for path, row in self._rows.items() if not self._is_as(path, row)]
                if not doubtful or not self._freshen(doubtful):
                    break
            return {path: row.blob for path, row in self._rows.items() if row.blob and not row.left_out}

    def _is_as(self, path: str, row: FileRow) -> bool:
        status = self._graph.tree.status(path)
        return status is not None and row.is_as(status)

    def _freshen(self, doubtful: list[str]) -> bool:
        """Read these files again. Returns whether any had changed."""
        if self._graph.indexer.freshen(doubtful):
            if not self._graph.indexer.is_refreshing:
                self._graph.indexer.refresh(until="linked")
            return True
        with self._graph.store.reading() as sql:
            self._rows |= {path: row for path in doubtful if (row := find_file(sql, path)) is not None}
        return False

    def _load(self) -> None:
        with self._graph.store.reading() as sql:
            state = (self._graph.store.era, read_meta(sql, "generation", 0))
            if state != self._state:
                paths = [path for (path,) in sql.execute("SELECT path FROM files") if self._is_wanted(path)]
                self._rows = {path: row for path in paths if (row := find_file(sql, path)) is not None}
                self._state = state
