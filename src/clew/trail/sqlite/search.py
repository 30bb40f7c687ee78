"""Search on SQLite: the `Search` interface. Candidates come from postings and vectors, the ranking orders them, and
SQLite decides which of them exist and who may see them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TypeVar

import msgspec
import numpy as np

from clew.access import Principal
from clew.errors import StorageError
from clew.sqlite_file import Sql
from clew.trail.model.query import SearchRequest, SearchResult, check_request
from clew.trail.model.rows import to_breadcrumb
from clew.trail.search.candidates import Candidates
from clew.trail.search.query_vector import find_query_vector
from clew.trail.search.ranking import Floats, Ints, parse_question
from clew.trail.search.scores import FoundHits, Scores, literal_first
from clew.trail.search.text import owner_salt
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.index.masks import Masks
from clew.trail.sqlite.index.search_index import PENDING, Index
from clew.trail.sqlite.rows import ALIVE, CURRENT, Audiences, in_list
from clew.trail.store import Embedder

T = TypeVar("T")
MORE = 4
"""The factor by which the number of candidates grows when they do not fill the answer."""

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
        self._index = Index(engine, audiences)
        self._masks = Masks(engine, self._index)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-search")
        self._is_closed = False
        self._unsynced = 0
        self._numbers = count(1)
        self._newest_call = 0
        self._caught_up: tuple[int, tuple[int, ...]] = (0, ())
        """The number of the newest search that was called before the last catch-up, and the audiences it was for."""

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        number = self._newest_call = next(self._numbers)
        return await asyncio.wrap_future(self._submit(lambda: self._search(request, by, number)))

    async def warm(self) -> None:
        """Load the index now rather than at the first search."""
        await asyncio.wrap_future(self._submit(self._sync))

    def note_writes(self, count: int) -> None:
        """Update the index after many writes without a search."""
        self._unsynced += count
        if self._index.seq >= 0 and self._unsynced > 4 * PENDING:
            self._unsynced = 0
            with contextlib.suppress(StorageError):  # closed: the next process reads these writes
                self._submit(self._sync)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        """Give some work to the thread of the index. Raises StorageError if the trail is closed."""
        try:
            return self._thread.submit(work)
        except RuntimeError:
            if not self._is_closed:
                raise
            raise StorageError("the trail is closed") from None

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=True)
        self._index.close()

    def _sync(self) -> None:
        self._unsynced = 0
        self._engine.read(self._index.sync)

    def _search(self, request: SearchRequest, by: Principal, number: int) -> SearchResult:
        self._unsynced = 0
        return self._engine.read(lambda connection: self._answer(connection, request, by, number))

    def _catch_up(self, connection: Sql, visible: tuple[int, ...], number: int) -> None:
        """Read the writes since the last catch-up, unless there was one for the same audiences after this search was
        called. A catch-up for other audiences may have left records of these audiences unread."""
        newest, audiences = self._caught_up
        if number > newest or visible != audiences:
            newest = self._newest_call  # searches that are called from here on need a catch-up of their own
            self._caught_up = (0, ())
            self._index.sync(connection, visible)
            self._caught_up = (newest, visible)

    def _answer(self, connection: Sql, request: SearchRequest, by: Principal, number: int) -> SearchResult:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        self._catch_up(connection, visible, number)
        question = parse_question(request.text, owner_salt(by.owner_id, self._engine.secret))
        query = self._query_vector(connection, request)
        effort = 1
        while True:
            allowed = self._masks.allow(connection, request.selector, visible)
            excluded = self._index.columns.slots(_read_rids(connection, request.exclude))
            found = Candidates(self._index, allowed.without(excluded), question, query, visible, request)
            found.gather(effort)
            scores = found.scores()
            order = scores.rank(partial(_count_keywords, connection))
            answer = self._fetch(connection, scores, order, visible, request.limit)
            if answer.is_full or (found.are_all and not answer.gone):
                hits = literal_first(answer.hits, request.text.strip())
                return SearchResult(hits=hits, ranking=request.ranking)
            self._index.columns.expire(answer.gone)
            effort *= MORE

    def _query_vector(self, connection: Sql, request: SearchRequest) -> Floats | None:
        present = connection.execute("SELECT value FROM meta WHERE key = 'embedder'").get
        dimension = self._index.columns.vectors.shape[1]
        return find_query_vector(request, self._embedder, space=self._space, present=present, dimension=dimension)

    def _fetch(self, connection: Sql, scores: Scores, order: Ints, visible: Sequence[int], limit: int) -> FoundHits:
        """The best records, read from SQLite. A record that has expired in the meantime is replaced by the next one."""
        answer, now = FoundHits(limit), self._engine.wall()
        sql = (
            f"{CURRENT} WHERE b.rid IN (SELECT value FROM json_each(:rids))"
            f" AND b.audience IN {in_list(visible)} AND {ALIVE}"
        )
        for first in range(0, len(order), limit):
            places = order[first : first + limit].tolist()
            rids = scores.rids[places].tolist()
            by_rid = {row[0]: row for row in connection.execute(sql, {"rids": str(rids), "now": now})}
            answer.gone += [rid for rid in rids if rid not in by_rid]
            for place, rid in zip(places, rids, strict=True):
                if rid in by_rid and not answer.is_full:
                    row = by_rid[rid]
                    breadcrumb = to_breadcrumb(row, self._audiences.of(connection, row[2]))
                    answer.add(scores.hit(place, breadcrumb), len(row[6]))
            if answer.is_full:
                break
        return answer


def _count_keywords(connection: Sql, rids: list[int], wanted: set[str]) -> Ints:
    """The number of wanted keywords that each record has."""
    sql = "SELECT rid, entity_keywords FROM breadcrumbs WHERE rid IN (SELECT value FROM json_each(?))"
    matched = {rid: len(wanted & _decode_texts(keywords)) for rid, keywords in connection.execute(sql, (str(rids),))}
    return np.array([matched.get(rid, 0) for rid in rids], np.int64)


def _read_rids(connection: Sql, ids: Sequence[str]) -> list[int]:
    if not ids:
        return []
    packed = msgspec.json.encode(list(ids)).decode()
    sql = "SELECT rid FROM breadcrumbs WHERE id IN (SELECT value FROM json_each(?))"
    return [rid for (rid,) in connection.execute(sql, (packed,))]
