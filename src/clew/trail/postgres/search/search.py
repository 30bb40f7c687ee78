"""Search on PostgreSQL: the `Search` interface. A process that searches keeps what it needs of all records in memory.
If they are too many for that, or are not loaded yet, the server is asked for candidates."""

from __future__ import annotations

import contextlib
from functools import partial

from clew.access import Principal
from clew.errors import StorageError
from clew.trail.model.query import Hit, SearchRequest, SearchResult, check_request
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.search.memory import LoadedIndex, SearchMemory
from clew.trail.postgres.search.record_cache import RecordCache
from clew.trail.postgres.search.server_search import ServerSearch
from clew.trail.postgres.search.source import CallerSource
from clew.trail.postgres.search.state import TrailState, read_state
from clew.trail.postgres.search.term_indexer import TermIndexer
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.search.index_search import find_hits
from clew.trail.search.query_vector import find_query_vector
from clew.trail.search.ranking import Floats, SearchQuestion, parse_question
from clew.trail.search.search_thread import SearchThread
from clew.trail.search.text import owner_salt
from clew.trail.store import Embedder


class PostgresSearch:
    """See `clew.trail.store.Search`. One thread owns the records in memory and answers from them. Each search first
    reads the newest committed event, and then the changes that the memory lacks."""

    def __init__(self, engine: PostgresEngine, embedder: Embedder | None, space: str | None, *, memory: int) -> None:
        """`memory` is the number of bytes that records may take in memory."""
        self._engine = engine
        self._embedder = embedder
        self._space = space
        self._indexer = TermIndexer(engine)
        self._cache = RecordCache()
        self._memory = SearchMemory(engine, self._indexer, memory)
        self._has_searched = False
        self._thread = SearchThread()
        self._indexer.on_indexed.append(self._follow)
        engine.on_close.append(self._close)

    async def warm(self) -> None:
        """Many records are loaded in the background. Until they are there, searches ask the server."""
        await self._indexer.catch_up()
        self._has_searched = True
        await self._thread.run(self._memory.find)

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        hits = await self._thread.run(partial(self._search_memory, request, by, may_begin=self._has_searched))
        self._has_searched = True
        if hits is None:
            hits = await self._search_server(request, by)
        return SearchResult(hits=hits, ranking=request.ranking)

    # -- in memory ----------------------------------------------------------------------------------------

    def _search_memory(self, request: SearchRequest, by: Principal, *, may_begin: bool) -> tuple[Hit, ...] | None:
        """The hits, None if the records are not in memory. A process that searches only once does not load many
        records for that."""
        needed: int | None = None
        while (loaded := self._memory.find(may_begin=may_begin)) is not None:
            work = partial(self._answer_from_memory, loaded=loaded, request=request, by=by, needed=needed)
            answer = self._engine.read_now(work, by=by)
            if not isinstance(answer, int):
                return answer
            if needed is not None:  # after the update it does not fit any longer, for example after a restore
                self._memory.drop()
                return None
            needed = answer
            self._memory.catch_up()
        return None

    def _answer_from_memory(
        self,
        reading: ReadTransaction,
        loaded: LoadedIndex,
        request: SearchRequest,
        by: Principal,
        needed: int | None,
    ) -> tuple[Hit, ...] | int:
        """The hits, or the event up to which the memory must be brought first."""
        state = read_state(reading, by)
        if not self._memory.is_at(state, state.head if needed is None else needed):
            return state.head
        question, query = self._understand(request, by, state)
        index, now = loaded.index, self._engine.wall()
        source = CallerSource(reading, request, by, now, is_ahead=state.head > index.seq)
        allowed = loaded.masks.allow(source, request.selector, state.audiences, now)
        return find_hits(index, allowed, question, query, state.audiences, request, source)

    def _follow(self) -> None:
        """Read the changes after many writes without a search."""
        if self._memory.lags():
            with contextlib.suppress(StorageError):  # the trail is being closed
                self._thread.submit(self._memory.catch_up)

    # -- on the server ------------------------------------------------------------------------------------

    async def _search_server(self, request: SearchRequest, by: Principal) -> tuple[Hit, ...]:
        needed: int | None = None
        while True:
            work = partial(self._answer_from_server, request=request, by=by, needed=needed)
            answer = await self._engine.read(work, by=by)
            if not isinstance(answer, int):
                return answer
            needed = answer if needed is None else needed
            await self._indexer.catch_up()

    def _answer_from_server(
        self, reading: ReadTransaction, request: SearchRequest, by: Principal, needed: int | None
    ) -> tuple[Hit, ...] | int:
        """The hits, or the event up to which the terms must be indexed first."""
        state = read_state(reading, by)
        self._engine.wakeups.note(state.head)
        if state.indexed < (state.head if needed is None else min(needed, state.head)):  # a restore takes events away
            return state.head
        question, query = self._understand(request, by, state)
        return ServerSearch(self._engine, self._cache, reading, request, by, state, question, query).find_hits()

    # -- both ---------------------------------------------------------------------------------------------

    def _understand(
        self, request: SearchRequest, by: Principal, state: TrailState
    ) -> tuple[SearchQuestion, Floats | None]:
        query = find_query_vector(
            request, self._embedder, space=self._space, present=state.embedder, dimension=state.dimension
        )
        return parse_question(request.text, owner_salt(by.owner_id, self._engine.trail_id)), query

    def _close(self) -> None:
        self._memory.stop()
        self._thread.close()
        self._memory.close()
