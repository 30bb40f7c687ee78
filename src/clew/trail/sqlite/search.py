"""Search on SQLite: the `Search` interface. Candidates come from postings and vectors, the ranking orders them, and
SQLite has the last word on what exists and who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import msgspec
import numpy as np

from clew.access import Principal
from clew.errors import EmbedderMismatch, InvalidInput
from clew.sqlite_file import Sql
from clew.trail.model.query import Hit, SearchRequest, SearchResult, check_request
from clew.trail.model.rows import to_breadcrumb
from clew.trail.search.candidates import Candidates
from clew.trail.search.ranking import Floats, Ints, fuse, fuse_ranks, parse_question, score_rcrt
from clew.trail.search.text import owner_salt
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.index.masks import Masks
from clew.trail.sqlite.index.search_index import PENDING, Index
from clew.trail.sqlite.rows import ALIVE, CURRENT, Audiences, in_list
from clew.trail.store import Embedder

MAX_RESULT_BYTES = 32_000_000
"""An answer ends early when its contexts reach this size."""
MORE = 4
"""The factor by which the number of candidates grows when they do not fill the answer."""

_decode_texts = msgspec.json.Decoder(frozenset[str]).decode


class SqliteSearch:
    """See `clew.trail.store.Search`. One thread holds the index and answers. It first reads the writes since the last
    search, of all processes. Searches that wait together share one such catch-up: it began after they were called."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._embedder = embedder
        self._space = space
        self._index = Index(engine, audiences)
        self._masks = Masks(engine, self._index)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-search")
        self._unsynced = 0
        self._numbers = count(1)
        self._newest_call = 0
        self._caught_up: tuple[int, tuple[int, ...]] = (0, ())
        """The number of the newest search that was called before the last catch-up, and the audiences it was for."""

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        number = self._newest_call = next(self._numbers)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._search, request, by, number)

    async def warm(self) -> None:
        """Load the index now rather than at the first search."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._sync)

    def note_writes(self, count: int) -> None:
        """Keep up with many writes while nobody searches."""
        self._unsynced += count
        if self._index.seq >= 0 and self._unsynced > 4 * PENDING:
            self._unsynced = 0
            self._thread.submit(self._sync)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._index.close()

    def _sync(self) -> None:
        self._unsynced = 0
        self._engine.read(self._index.sync)

    def _search(self, request: SearchRequest, by: Principal, number: int) -> SearchResult:
        self._unsynced = 0
        return self._engine.read(lambda connection: self._answer(connection, request, by, number))

    def _catch_up(self, connection: Sql, visible: tuple[int, ...], number: int) -> None:
        """Read the writes since the last time, unless that happened for these audiences after the search was called. A
        catch-up for other audiences may have left records of these ones unread."""
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
            order = self._rank(connection, found, request)
            answer = self._fetch(connection, found, order, visible, request.limit)
            if answer.is_full or (found.are_all and not answer.gone):
                hits = _literal_first(answer.hits, request.text.strip())
                return SearchResult(hits=hits, ranking=request.ranking)
            self._index.columns.expire(answer.gone)
            effort *= MORE

    def _query_vector(self, connection: Sql, request: SearchRequest) -> Floats | None:
        """The request's own vector, or that of its text. Raises EmbedderMismatch when it cannot be compared."""
        if request.ranking == "text":
            return None
        present = connection.execute("SELECT value FROM meta WHERE key = 'embedder'").get
        if request.vector is not None:
            query = np.array(request.vector, np.float32)
            if self._index.columns.vectors.shape[1] not in (0, len(query)):
                raise EmbedderMismatch(str(present), f"{len(query)} dimensions")
        elif self._embedder is not None and request.text.strip():
            if present is not None and present != self._space:
                raise EmbedderMismatch(str(present), str(self._space))
            packed = self._embedder.embed([request.text])[0]
            query = np.frombuffer(packed, "<f4")
        elif request.ranking == "vector":
            raise InvalidInput("vector", "is needed: this trail has no embedder")
        else:
            return None
        length = float(np.sqrt(query @ query))
        return query / length if length > 0 and len(query) else None

    def _rank(self, connection: Sql, found: Candidates, request: SearchRequest) -> Ints:
        """Places among the candidates, best first."""
        lexical, titles = found.score_text()
        cosine = found.score_vector()
        match request.ranking:
            case "vector":
                score = cosine
            case "text":
                score = lexical + 1e-3 * titles
            case "rrf":
                score = fuse_ranks(lexical, np.maximum(cosine, 0))
            case "rcrt":
                wanted = {word.lower() for word in (request.keywords or found.question.words)}
                score = score_rcrt(cosine, _count_keywords(connection, found.rids.tolist(), wanted), len(wanted))
            case _:
                score = fuse(lexical, titles, cosine)
        return found.keep(score, lexical, cosine)

    def _fetch(self, connection: Sql, found: Candidates, order: Ints, visible: Sequence[int], limit: int) -> _FoundHits:
        """The best records as SQLite has them; one that expired meanwhile gives its place to the next."""
        answer, room, now = _FoundHits(), MAX_RESULT_BYTES, self._engine.wall()
        sql = (
            f"{CURRENT} WHERE b.rid IN (SELECT value FROM json_each(:rids))"
            f" AND b.audience IN {in_list(visible)} AND {ALIVE}"
        )
        all_rids = found.rids
        for first in range(0, len(order), limit):
            places = order[first : first + limit].tolist()
            rids = all_rids[places].tolist()
            by_rid = {row[0]: row for row in connection.execute(sql, {"rids": str(rids), "now": now})}
            answer.gone += [rid for rid in rids if rid not in by_rid]
            for place, rid in zip(places, rids, strict=True):
                if rid in by_rid and not answer.is_full:
                    row = by_rid[rid]
                    answer.hits.append(found.hit(place, to_breadcrumb(row, self._audiences.of(connection, row[2]))))
                    room -= len(row[6])
                    answer.is_full = len(answer.hits) == limit or room <= 0
            if answer.is_full:
                break
        return answer


def _literal_first(hits: Sequence[Hit], text: str) -> tuple[Hit, ...]:
    """Names may differ in spelling only, such as `math.gcd` and `math_gcd`: the one that was called comes first."""
    return tuple(sorted(hits, key=lambda hit: not (hit.exact and hit.breadcrumb.title == text)))


class _FoundHits(msgspec.Struct):
    """Hits, whether no more of them fit, and candidates that may not be read any more."""

    hits: list[Hit] = []
    is_full: bool = False
    gone: list[int] = []


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
