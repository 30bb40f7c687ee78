"""An in-memory cache of answers, looked up by the same or a similar question.

It has no file: entries are loaded from `initial_entries` and saved through `on_persist`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from clew.clock import Clock
from clew.errors import InvalidInput
from clew.trail.store import Embedder

DEFAULT_TTL = timedelta(hours=1)


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An answer and its question. `vector` is the embedding of the question by `embedder`."""

    query: str
    value: Any
    created_at: datetime
    expires_at: datetime | None
    embedder: str
    vector: bytes


class CacheHit(msgspec.Struct, frozen=True, kw_only=True):
    """A cached answer, and the similarity of its question to the query: 1 for the same words."""

    value: Any
    query: str
    similarity: float


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    size: int
    exact_hits: int
    similar_hits: int
    misses: int
    evicted: int
    expired: int


OnPersist = Callable[[list[CacheEntry]], Awaitable[None] | None]


class SemanticCache:
    """A cache of at most `max_entries` answers, which evicts the least recently used. Not thread-safe.

    A question gets the answer of the most similar cached question if their cosine is at least `threshold`. With
    `ttl=None`, answers never expire.
    """

    def __init__(
        self,
        embedder: Embedder,
        clock: Clock,
        *,
        threshold: float = 0.85,
        ttl: timedelta | None = DEFAULT_TTL,
        max_entries: int = 1_000,
        initial_entries: Iterable[CacheEntry] = (),
        on_persist: OnPersist | None = None,
    ) -> None:
        if not 0.0 < threshold <= 1.0:
            raise InvalidInput("threshold", "must be above 0 and at most 1")
        if max_entries < 1:
            raise InvalidInput("max_entries", "must be 1 or more")
        self._embedder, self._clock, self._on_persist = embedder, clock, on_persist
        self._threshold, self._ttl, self._max_entries = threshold, ttl, max_entries
        self._exact_hits = self._similar_hits = self._misses = self._evicted = self._expired = 0
        self.clear()
        for entry in initial_entries:
            self._restore(entry)

    def get(self, query: str) -> CacheHit | None:
        """The cached answer to this question or to the most similar one; None if there is none that has not expired."""
        if (same := self._alive(query)) is not None:
            self._exact_hits += 1
            return CacheHit(value=self._touch(same).value, query=query, similarity=1.0)
        for similar, similarity in self._similar(query):
            if (entry := self._alive(similar)) is not None:
                self._similar_hits += 1
                return CacheHit(value=self._touch(entry).value, query=similar, similarity=similarity)
        self._misses += 1
        return None

    def set(self, query: str, value: Any, *, ttl: timedelta | None = None) -> CacheEntry:
        """Cache an answer, replacing the answer to the same question. `ttl` overrides the TTL of the cache."""
        now, lifetime = self._clock.now(), self._ttl if ttl is None else ttl
        entry = CacheEntry(
            query=query,
            value=value,
            created_at=now,
            expires_at=now + lifetime if lifetime is not None else None,
            embedder=self._embedder.name,
            vector=self._embedder.embed([query])[0],
        )
        self._keep(entry)
        return entry

    def delete(self, query: str) -> bool:
        """Remove the answer to exactly this question. Return False if there was none."""
        return self._drop(query) is not None

    def clear(self) -> None:
        """Remove all answers. The counters are kept."""
        self._entries: dict[str, CacheEntry] = {}
        self._slots: dict[str, int] = {}
        self._queries: list[str | None] = []
        self._free: list[int] = []
        self._vectors = np.zeros((16, self._embedder.dimension), np.float32)

    def entries(self) -> list[CacheEntry]:
        """The entries that have not expired, least recently used first."""
        for query in list(self._entries):
            self._alive(query)
        return list(self._entries.values())

    @property
    def size(self) -> int:
        return len(self.entries())

    def stats(self) -> CacheStats:
        return CacheStats(
            size=self.size,
            exact_hits=self._exact_hits,
            similar_hits=self._similar_hits,
            misses=self._misses,
            evicted=self._evicted,
            expired=self._expired,
        )

    async def persist(self) -> None:
        """Pass the entries that have not expired to `on_persist`, and await it if it is asynchronous."""
        if self._on_persist is not None and inspect.isawaitable(saving := self._on_persist(self.entries())):
            await saving

    def _similar(self, query: str) -> list[tuple[str, float]]:
        """The cached questions within the threshold, most similar first."""
        asked = np.frombuffer(self._embedder.embed([query])[0], "<f4")
        similarity = self._vectors[: len(self._queries)] @ asked
        near = np.flatnonzero(similarity >= self._threshold - _ROUNDING)
        near = near[np.argsort(-similarity[near], kind="stable")]
        found = ((self._queries[at], min(float(similarity[at]), 1.0)) for at in near)
        return [(kept, value) for kept, value in found if kept is not None]

    def _alive(self, query: str) -> CacheEntry | None:
        """The entry of a question; None if there is none. An expired entry is removed."""
        entry = self._entries.get(query)
        if entry is None or entry.expires_at is None or entry.expires_at > self._clock.now():
            return entry
        self._drop(query)
        self._expired += 1
        return None

    def _touch(self, entry: CacheEntry) -> CacheEntry:
        self._entries[entry.query] = self._entries.pop(entry.query)
        return entry

    def _keep(self, entry: CacheEntry) -> None:
        self._drop(entry.query)
        if len(self._entries) >= self._max_entries:
            self._drop(next(iter(self._entries)))
            self._evicted += 1
        slot = self._free.pop() if self._free else len(self._queries)
        if slot == len(self._queries):
            self._queries.append(None)
        if slot == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._queries[slot], self._vectors[slot] = entry.query, np.frombuffer(entry.vector, "<f4")
        self._entries[entry.query], self._slots[entry.query] = entry, slot

    def _drop(self, query: str) -> CacheEntry | None:
        entry = self._entries.pop(query, None)
        if entry is not None:
            slot = self._slots.pop(query)
            self._queries[slot], self._vectors[slot] = None, 0.0
            self._free.append(slot)
        return entry

    def _restore(self, entry: CacheEntry) -> None:
        """Add an entry from `initial_entries`, unless it has expired. Its vector is computed again if another embedder
        made it."""
        if entry.expires_at is not None and entry.expires_at <= self._clock.now():
            return
        if entry.embedder != self._embedder.name or len(entry.vector) != 4 * self._embedder.dimension:
            vector = self._embedder.embed([entry.query])[0]
            entry = msgspec.structs.replace(entry, embedder=self._embedder.name, vector=vector)
        self._keep(entry)


_ROUNDING = 1e-6
