"""Search on SQLite: the `Search` interface. Candidates come from postings and vectors, the ranking orders them, and
SQLite decides which of them exist and who may see them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import count

import msgspec
import numpy as np

from clew.access import Principal
from clew.errors import StorageError
from clew.sqlite_file import Sql
from clew.trail.model.query import SearchRequest, SearchResult, check_request
from clew.trail.model.rows import to_breadcrumb
from clew.trail.search.index_search import FoundRecords, find_hits
from clew.trail.search.masks import Masks
from clew.trail.search.query_vector import find_query_vector
from clew.trail.search.ranking import Floats, Ints, parse_question
from clew.trail.search.search_index import PENDING, Index
from clew.trail.search.search_thread import SearchThread
from clew.trail.search.text import owner_salt
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.index.source import SqliteSource
from clew.trail.sqlite.index.terms import TermStore
from clew.trail.sqlite.rows import ALIVE, CURRENT, Audiences, in_list
from clew.trail.store import Embedder

_decode_texts = msgspec.json.Decoder(frozenset[str]).decode


class SqliteSearch:
    """See `clew.trail.store.Search`. One thread owns the index and answers searches. It first reads the writes of all
    processes since the last search. Searches that wait together share one such catch-up, which begins after they were
    called."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._embedder = embedder
        self._space = space
        self._terms = TermStore(engine, audiences)
        self._index = Index(engine.secret, engine.path.with_name(engine.path.name + "-index"))
        self._masks = Masks(self._index)
        self._thread = SearchThread()
        self._unsynced = 0
        self._numbers = count(1)
        self._newest_call = 0
        self._caught_up: tuple[int, tuple[int, ...]] = (0, ())
        """The number of the newest search that was called before the last catch-up, and the audiences it was for."""

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        number = self._newest_call = next(self._numbers)
        return await self._thread.run(lambda: self._search(request, by, number))

    async def warm(self) -> None:
        """Load the index now rather than at the first search."""
        await self._thread.run(self._sync)

    def note_writes(self, count: int) -> None:
        """Update the index after many writes without a search."""
        self._unsynced += count
        if self._index.seq >= 0 and self._unsynced > 4 * PENDING:
            self._unsynced = 0
            with contextlib.suppress(StorageError):  # closed: the next process reads these writes
                self._thread.submit(self._sync)

    def close(self) -> None:
        self._thread.close()
        self._index.close()
        self._terms.store()

    def _sync(self) -> None:
        self._unsynced = 0
        self._engine.read(lambda connection: self._index.sync(SqliteSource(connection, self._terms)))

    def _search(self, request: SearchRequest, by: Principal, number: int) -> SearchResult:
        self._unsynced = 0
        return self._engine.read(lambda connection: self._answer(connection, request, by, number))

    def _catch_up(self, source: SqliteSource, visible: tuple[int, ...], number: int) -> None:
        """Read the writes since the last catch-up, unless there was one for the same audiences after this search was
        called. A catch-up for other audiences may have left records of these audiences unread."""
        newest, audiences = self._caught_up
        if number > newest or visible != audiences:
            newest = self._newest_call  # searches that are called from here on need a catch-up of their own
            self._caught_up = (0, ())
            self._index.sync(source, visible)
            self._caught_up = (newest, visible)

    def _answer(self, connection: Sql, request: SearchRequest, by: Principal, number: int) -> SearchResult:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        source = SqliteSource(connection, self._terms, visible)
        self._catch_up(source, visible, number)
        question = parse_question(request.text, owner_salt(by.owner_id, self._engine.secret))
        query = self._query_vector(connection, request)
        allowed = self._masks.allow(source, request.selector, visible, self._engine.wall())
        records = _Records(connection, self._audiences, visible, self._engine)
        hits = find_hits(self._index, allowed, question, query, visible, request, records)
        return SearchResult(hits=hits, ranking=request.ranking)

    def _query_vector(self, connection: Sql, request: SearchRequest) -> Floats | None:
        present = connection.execute("SELECT value FROM meta WHERE key = 'embedder'").get
        dimension = self._index.columns.vectors.shape[1]
        return find_query_vector(request, self._embedder, space=self._space, present=present, dimension=dimension)


class _Records:
    """The records that a search may return: see `clew.trail.search.index_search.RecordSource`."""

    def __init__(self, connection: Sql, audiences: Audiences, visible: Sequence[int], engine: Engine) -> None:
        self._connection = connection
        self._audiences = audiences
        self._visible = visible
        self._engine = engine

    def find_rids(self, ids: Sequence[str]) -> Sequence[int]:
        if not ids:
            return []
        packed = msgspec.json.encode(list(ids)).decode()
        sql = "SELECT rid FROM breadcrumbs WHERE id IN (SELECT value FROM json_each(?))"
        return [rid for (rid,) in self._connection.execute(sql, (packed,))]

    def read(self, rids: Sequence[int]) -> FoundRecords:
        sql = f"{CURRENT} WHERE b.rid IN {in_list(rids)} AND b.audience IN {in_list(self._visible)} AND {ALIVE}"
        found = {
            row[0]: (to_breadcrumb(row, self._audiences.of(self._connection, row[2])), len(row[6]))
            for row in self._connection.execute(sql, {"now": self._engine.wall()}).fetchall()
        }
        return FoundRecords(found, [rid for rid in rids if rid not in found])

    def count_keywords(self, rids: list[int], wanted: set[str]) -> Ints:
        sql = "SELECT rid, entity_keywords FROM breadcrumbs WHERE rid IN (SELECT value FROM json_each(?))"
        rows = self._connection.execute(sql, (str(rids),))
        matched = {rid: len(wanted & _decode_texts(keywords)) for rid, keywords in rows}
        return np.array([matched.get(rid, 0) for rid in rids], np.int64)
