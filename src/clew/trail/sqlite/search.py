"""Search on SQLite: the `Search` interface. Candidates come from postings and vectors, the ranking orders them, and
SQLite has the last word on what exists and who may see it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from clew.access import Principal
from clew.errors import EmbedderMismatch, InvalidInput
from clew.trail.prepare import read_as
from clew.trail.query import Hit, SearchRequest, SearchResult, check_request
from clew.trail.ranking import (
    Corpus,
    Floats,
    Ints,
    Question,
    fuse,
    fuse_ranks,
    parse_question,
    score_lexical,
    score_rcrt,
)
from clew.trail.selector import EVERYTHING, Selector
from clew.trail.sqlite.columns import Columns
from clew.trail.sqlite.definitions import DefinitionBook
from clew.trail.sqlite.engine import Engine, Sql
from clew.trail.sqlite.log import read_head
from clew.trail.sqlite.postings import Postings
from clew.trail.sqlite.rows import ALIVE, CURRENT, Audiences, in_list, to_breadcrumb
from clew.trail.sqlite.where import build_where
from clew.trail.store import Embedder
from clew.trail.text import owner_salt, pack_terms
from clew.trail.vectors import nearest

TEXT_CANDIDATES, VECTOR_CANDIDATES = 150, 100
SMALL = 2_000
"""Up to this many records pass a filter, all of them are candidates."""
STAGE_ONE_TERMS = 32
PENDING = 512
MASKS = 64
MAX_RESULT_BYTES = 32_000_000
"""An answer ends early when its contexts come to so much."""
FEW_CHANGES = 2_000
LOAD_BATCH = 5_000
LOAD = (
    "SELECT b.rid, b.audience, b.expires_at, t.terms, v.vector FROM breadcrumbs b"
    " LEFT JOIN terms t ON t.rid = b.rid LEFT JOIN vectors v ON v.rid = b.rid"
)

log = logging.getLogger(__name__)
Mask = npt.NDArray[np.bool_]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_texts = msgspec.json.Decoder(frozenset[str]).decode


class SqliteSearch:
    """See `clew.trail.store.Search`. One thread holds the index and answers; it first reads what was written
    since the last search, by whichever process."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._embedder = embedder
        self._space = space
        self._columns = Columns()
        self._postings: Postings | None = None
        self._book = DefinitionBook()
        self._seq = -1
        self._epoch = ""
        self._pending: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._masks: OrderedDict[Any, _Known] = OrderedDict()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-search")
        self._indexer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-index")
        self._indexing: Future[None] | None = None
        self._unsynced = 0

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._search, request, by)

    async def warm(self) -> None:
        """Load the index now rather than at the first search."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._warm)

    def note_writes(self, count: int) -> None:
        """Keep up with many writes while nobody searches."""
        self._unsynced += count
        if self._seq >= 0 and self._unsynced > 4 * PENDING:
            self._unsynced = 0
            self._thread.submit(self._warm)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._indexer.shutdown(wait=True)

    def _warm(self) -> None:
        self._engine.read(self._sync)

    # -- answering ----------------------------------------------------------------------------------------

    def _search(self, request: SearchRequest, by: Principal) -> SearchResult:
        return self._engine.read(lambda connection: self._answer(connection, request, by))

    def _answer(self, connection: Sql, request: SearchRequest, by: Principal) -> SearchResult:
        self._sync(connection)
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        mask = self._mask(connection, request.selector, visible)
        excluded = self._columns.slots(_rids(connection, request.exclude))
        mask[excluded] = False
        question = parse_question(request.text, owner_salt(by.owner_id, self._engine.secret))
        query = self._query_vector(connection, request)
        found = _Found(self._columns, mask, question, query, visible, request)
        self._gather(found)
        order = self._rank(connection, found)
        return SearchResult(hits=tuple(self._fetch(connection, found, order, visible)), ranking=request.ranking)

    def _query_vector(self, connection: Sql, request: SearchRequest) -> Floats | None:
        """The request's own vector, or that of its text. Raises EmbedderMismatch when it cannot be compared."""
        if request.ranking == "text":
            return None
        present = connection.execute("SELECT value FROM meta WHERE key = 'embedder'").get
        if request.vector is not None:
            query = np.array(request.vector, np.float32)
            if self._columns.vectors.shape[1] not in (0, len(query)):
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

    def _gather(self, found: _Found) -> None:
        """Candidates of every arm. Few allowed records are all taken; otherwise each arm names its best."""
        allowed, request = found.allowed, found.request
        if len(allowed) <= SMALL:
            found.slots = allowed
            return
        wanted = max(TEXT_CANDIDATES, request.limit)
        parts = [found.exact]
        if request.ranking != "vector":
            parts += [self._by_terms(found, wanted), self._pending_slots(found.mask)]
        if found.query is not None:
            columns, size = self._columns, self._columns.size
            near, _ = nearest(
                found.query,
                columns.vectors[:size],
                columns.signs[:, :size],
                allowed,
                request.limit,
                more=VECTOR_CANDIDATES,
            )
            parts.append(near)
        found.slots = np.unique(np.concatenate(parts))

    def _by_terms(self, found: _Found, wanted: int) -> Ints:
        """Records with most of the terms that pass the filter, fetching more until there are enough."""
        terms = found.rarest(STAGE_ONE_TERMS)
        if not terms or self._postings is None:
            return np.zeros(0, np.int64)
        share = len(found.allowed) / max(1, self._columns.size)
        fetch = min(self._columns.size + 1, int(wanted / share * 1.2) + 50)
        while True:
            rids = self._postings.find(terms, fetch)
            slots = self._columns.slots(rids)
            passing = slots[found.mask[slots]]
            if len(passing) >= wanted or len(rids) < fetch:
                return passing[:wanted]
            fetch *= 4

    def _pending_slots(self, mask: Mask) -> Ints:
        slots = self._columns.slots(list(self._pending))
        return slots[mask[slots]]

    def _rank(self, connection: Sql, found: _Found) -> Ints:
        """Places among the candidates, best first: exact names, then by score, then by creation."""
        ranking = found.request.ranking
        lexical, titles = found.score_text(with_titles=ranking in ("default", "text"))
        cosine = found.score_vector()
        match ranking:
            case "vector":
                score = cosine
            case "text":
                score = lexical + 1e-3 * titles
            case "rrf":
                score = fuse_ranks(lexical, np.maximum(cosine, 0))
            case "rcrt":
                score = self._score_rcrt(connection, found, cosine)
            case _:
                score = fuse(lexical, titles, cosine)
        found.keep(score, lexical, cosine)
        return np.lexsort((found.rids, -found.score, ~found.is_exact))

    def _score_rcrt(self, connection: Sql, found: _Found, cosine: Floats) -> Floats:
        wanted = {word.lower() for word in (found.request.keywords or found.question.words)}
        rids = self._columns.rid[found.slots].tolist()
        rows = connection.execute(f"SELECT rid, entity_keywords FROM breadcrumbs WHERE rid IN {in_list(rids)}")
        matched = {rid: len(wanted & _decode_texts(keywords)) for rid, keywords in rows}
        counts = np.array([matched.get(rid, 0) for rid in rids], np.int64)
        return score_rcrt(cosine, counts, len(wanted))

    def _fetch(self, connection: Sql, found: _Found, order: Ints, visible: Sequence[int]) -> list[Hit]:
        """The best records as SQLite has them; one that expired meanwhile gives its place to the next."""
        hits: list[Hit] = []
        limit, now, room = found.request.limit, self._engine.wall(), MAX_RESULT_BYTES
        for first in range(0, len(order), limit):
            places = order[first : first + limit]
            rids = found.rids[places].tolist()
            rows = connection.execute(
                f"{CURRENT} WHERE b.rid IN {in_list(rids)} AND b.audience IN {in_list(visible)} AND {ALIVE}",
                {"now": now},
            )
            by_rid = {row[0]: row for row in rows}
            for place, rid in zip(places, rids, strict=True):
                if rid in by_rid and len(hits) < limit and room > 0:
                    room -= len(by_rid[rid][6])
                    hits.append(
                        found.hit(place, to_breadcrumb(by_rid[rid], self._audiences.of(connection, by_rid[rid][2])))
                    )
            if len(hits) == limit or room <= 0:
                break
        return hits

    # -- filters ------------------------------------------------------------------------------------------

    def _mask(self, connection: Sql, selector: Selector, visible: Sequence[int]) -> Mask:
        """Which slots the caller may see and the selector means."""
        size, columns = self._columns.size, self._columns
        mask = np.isin(columns.audience[:size], visible) if len(visible) != 1 else columns.audience[:size] == visible[0]
        mask &= columns.expires[:size] > self._engine.wall()
        if selector != EVERYTHING:
            mask &= self._selected(connection, selector, visible)
        return mask

    def _selected(self, connection: Sql, selector: Selector, visible: Sequence[int]) -> Mask:
        """The slots a selector means: remembered from the last time, and asked anew only for what has changed."""
        key = (msgspec.json.encode(selector), tuple(visible))
        known = self._masks.pop(key, None)
        if known is None or known.seq != self._seq:
            known = self._bring_up(connection, known, *build_where(selector, visible, self._engine.wall()))
        self._masks[key] = known
        if len(self._masks) > MASKS:
            self._masks.popitem(last=False)
        return known.mask

    def _bring_up(self, connection: Sql, known: _Known | None, where: str, values: dict[str, Any]) -> _Known:
        """A mask as of now. After few changes only they are looked at; what left a slot has left every mask."""
        mask = np.zeros(self._columns.size, np.bool_)
        if known is not None:
            recent = connection.execute(
                f"SELECT DISTINCT rid FROM events WHERE seq > ? AND seq <= ? LIMIT {FEW_CHANGES + 1}",
                (known.seq, self._seq),
            ).fetchall()
            if len(recent) <= FEW_CHANGES:
                mask[: len(known.mask)] = known.mask
                where += f" AND b.rid IN {in_list([rid for (rid,) in recent])}"
        rows = connection.execute(f"SELECT b.rid FROM breadcrumbs b WHERE {where}", values)
        mask[self._columns.slots(np.fromiter((rid for (rid,) in rows), np.int64))] = True
        return _Known(self._seq, mask)

    # -- keeping up ---------------------------------------------------------------------------------------

    def _sync(self, connection: Sql) -> None:
        """Read what has changed since the last search."""
        self._settle_indexing()
        head = read_head(connection)
        epoch = str(connection.execute("SELECT value FROM meta WHERE key = 'vectors_epoch'").get)
        if head == self._seq and epoch == self._epoch:
            return
        if self._seq < 0 or epoch != self._epoch:
            self._load(connection)
        else:
            self._catch_up(connection, head)
        self._epoch = epoch
        self._unsynced = 0
        self._index_pending()

    def _load(self, connection: Sql) -> None:
        """Read everything, in one snapshot."""
        connection.execute("BEGIN")
        try:
            head = read_head(connection)
            columns = Columns()
            columns.reserve(connection.execute("SELECT count(*) FROM breadcrumbs").get)
            rows = connection.execute(f"{LOAD} ORDER BY b.rid")
            while some := list(islice(rows, LOAD_BATCH)):
                columns.put(self._with_terms(connection, some))
            postings = self._open_postings(connection)
            changed = connection.execute("SELECT DISTINCT rid FROM events WHERE seq > ?", (postings.seq,)).fetchall()
        finally:
            connection.execute("ROLLBACK")
        self._columns, self._postings, self._seq = columns, postings, head
        self._masks.clear()
        self._pending = {rid: head for (rid,) in changed if columns.find(rid) is not None}
        self._gone = {rid: head for (rid,) in changed if columns.find(rid) is None}

    def _catch_up(self, connection: Sql, head: int) -> None:
        changed = [
            rid
            for (rid,) in connection.execute(
                "SELECT DISTINCT rid FROM events WHERE seq > ? AND seq <= ?", (self._seq, head)
            )
        ]
        rows = []
        for first in range(0, len(changed), 500):
            some = changed[first : first + 500]
            rows += connection.execute(f"{LOAD} WHERE b.rid IN {in_list(some)} ORDER BY b.rid").fetchall()
        self._columns.put(self._with_terms(connection, rows))
        present = {row[0] for row in rows}
        self._pending.update(dict.fromkeys(present, head))
        for rid in changed:
            if rid not in present:
                self._columns.drop(rid)
                self._pending.pop(rid, None)
                self._gone[rid] = head
        self._seq = head

    def _with_terms(self, connection: Sql, rows: list[Any]) -> list[Any]:
        """Rows with the terms that were not stored yet, or were lost in a crash."""
        lacking = [row[0] for row in rows if row[3] is None]
        if not lacking:
            return rows
        found = connection.execute(f"{CURRENT} WHERE b.rid IN {in_list(lacking)}").fetchall()
        made = {row[0]: self._terms_of(connection, row) for row in found}
        return [(*row[:3], made[row[0]], row[4]) if row[3] is None else row for row in rows if row[3] or row[0] in made]

    def _terms_of(self, connection: Sql, row: Any) -> bytes:
        owner_id, _ = self._audiences.of(connection, row[2])
        hints = _decode(row[8]) if row[8] is not None else None
        schema_hints = self._book.of(connection, owner_id).rules(row[4]).llm_hints
        return pack_terms(
            read_as(row[5], _decode(row[6]), hints, schema_hints), owner_salt(owner_id, self._engine.secret)
        )

    def _open_postings(self, connection: Sql) -> Postings:
        if self._postings is not None:
            return self._postings
        folder = self._engine.path.with_name(self._engine.path.name + "-index")
        return Postings(folder, self._engine.secret, lambda seq: _mark_of(connection, seq))

    def _index_pending(self) -> None:
        """Hand records that the postings lack to the indexing thread, once there are enough of them."""
        if self._indexing is not None:
            return
        if len(self._pending) + len(self._gone) < PENDING or self._postings is None:
            return
        pending, gone, seq = sorted(self._pending), sorted(self._gone), self._seq
        texts = self._columns.term_texts(self._columns.slots(pending))
        work = list(zip(pending, texts, strict=True))
        mark = self._engine.read(lambda connection: _mark_of(connection, seq))
        self._indexing = self._indexer.submit(self._update_postings, self._postings, work, gone, seq, mark)

    def _update_postings(
        self, postings: Postings, work: list[tuple[int, str]], gone: list[int], seq: int, mark: str
    ) -> None:
        try:
            postings.update(work, gone, seq, mark)
        except Exception as error:  # a task boundary: the index is a help, not a need
            log.warning("the search index could not be written (searching goes on without): %s", error)

    def _settle_indexing(self) -> None:
        """Records that are in the postings now are no longer pending, unless they changed again meanwhile."""
        if self._indexing is None or not self._indexing.done() or self._postings is None:
            return
        self._indexing = None
        done = self._postings.seq
        self._pending = {rid: seq for rid, seq in self._pending.items() if seq > done}
        self._gone = {rid: seq for rid, seq in self._gone.items() if seq > done}


class _Known(msgspec.Struct):
    """The slots that a selector meant when the index stood at `seq`."""

    seq: int
    mask: Mask


class _Found:
    """One search under way: what is allowed, the candidates, their scores."""

    def __init__(
        self,
        columns: Columns,
        mask: Mask,
        question: Question,
        query: Floats | None,
        visible: Sequence[int],
        request: SearchRequest,
    ) -> None:
        self.columns = columns
        self.mask = mask
        self.allowed = np.flatnonzero(mask)
        self.question = question
        self.query = query
        self.request = request
        number, mean = columns.totals(visible)
        self.corpus = Corpus(
            heap=columns.heap, at=columns.at, rarity=lambda ids: columns.rarity(ids, visible, number), mean_length=mean
        )
        self.exact = self._exact()
        self.slots: Ints = self.allowed
        self.score: Floats = np.zeros(0, np.float32)

    def _exact(self) -> Ints:
        """Records whose whole name is the query, or an identifier in it."""
        if not self.question.names or self.request.ranking == "vector":
            return np.zeros(0, np.int64)
        names = self.columns.name[: self.columns.size]
        same = np.zeros(len(names), np.bool_)
        for name in self.question.names[:64]:
            same |= names == name
        return np.flatnonzero(same & self.mask)

    def rarest(self, limit: int) -> list[int]:
        terms = np.array(self.question.terms, np.uint32)
        if not len(terms):
            return []
        return [int(term) for term in terms[np.argsort(-self.corpus.rarity(terms), kind="stable")[:limit]]]

    def score_text(self, *, with_titles: bool) -> tuple[Floats, Floats]:
        return score_lexical(self.question, self.corpus, self.slots, self.request.weights, with_titles=with_titles)

    def score_vector(self) -> Floats:
        if self.query is None or not self.columns.vectors.shape[1]:
            return np.zeros(len(self.slots), np.float32)
        return np.asarray(self.columns.vectors[self.slots] @ self.query, np.float32)

    def keep(self, score: Floats, lexical: Floats, cosine: Floats) -> None:
        """Keep candidates that an arm of this ranking found at all."""
        is_exact = np.isin(self.slots, self.exact)
        has_vector = (
            self.columns.vectors[self.slots].any(axis=1)
            if self.query is not None and self.columns.vectors.shape[1]
            else np.zeros(len(self.slots), np.bool_)
        )
        kept = np.flatnonzero(is_exact | (lexical > 0) | has_vector if self.request.ranking != "vector" else has_vector)
        self.slots, self.is_exact = self.slots[kept], is_exact[kept]
        self.score, self.lexical, self.cosine = score[kept], lexical[kept], cosine[kept]
        self.rids = self.columns.rid[self.slots]

    def hit(self, place: int, breadcrumb: Any) -> Hit:
        return Hit(
            breadcrumb=breadcrumb,
            score=round(float(self.score[place]), 6),
            text_score=round(float(self.lexical[place]), 6) if self.lexical[place] > 0 else None,
            vector_score=round(float(self.cosine[place]), 6) if self.query is not None else None,
            exact=bool(self.is_exact[place]),
        )


def _rids(connection: Sql, ids: Sequence[str]) -> list[int]:
    packed = msgspec.json.encode(list(ids)).decode()
    sql = "SELECT rid FROM breadcrumbs WHERE id IN (SELECT value FROM json_each(?))"
    return [rid for (rid,) in connection.execute(sql, (packed,))]


def _mark_of(connection: Sql, seq: int) -> str:
    """What an event was about: a restored trail gives its number to another one."""
    found = connection.execute("SELECT id || ':' || version || ':' || at FROM events WHERE seq = ?", (seq,)).get
    return str(found)
