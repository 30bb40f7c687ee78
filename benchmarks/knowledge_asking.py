"""A resolver to ask, whose repository are the functions of the CoSQA corpus and whose model always says the same: so
that kept answers are found as they are in use, by the words of a question and by what it finds."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clew.clock import ManualClock
from clew.knowledge.base import open_knowledge
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.kept import Kept
from clew.knowledge.resolving.resolver import Resolver
from clew.llm.requests import Answer, ModelRequest, OnText
from clew.trail import open_trail
from clew.trail.store import Embedder
from ranking import ME, read

CORPUS = "code_search_corpus.jsonl"
_NOW = datetime(2026, 11, 1, tzinfo=UTC)


class ShortModel:
    """Says where it is, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> Answer:
        self.asked += 1
        return Answer(content="It is the first of the sources [1].")


class ToldCache(IntentCache):
    """Remembers by which question the last one was served."""

    served_by: str | None = None

    def get(self, *arguments: Any, **options: Any) -> Kept | None:
        return self._told(super().get(*arguments, **options))

    def get_found(self, *arguments: Any, **options: Any) -> Kept | None:
        return self._told(super().get_found(*arguments, **options))

    def _told(self, kept: Kept | None) -> Kept | None:
        self.served_by = kept.question if kept is not None else None
        return kept


class Asking:
    """Asks questions of a resolver, and tells which are served by the kept answer to another."""

    def __init__(self, resolver: Resolver, embedder: Embedder) -> None:
        self._resolver = resolver
        self._embedder = embedder
        self._cache = self._forget()

    async def find_hits(self, orders: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of pairs, what was asked first and what was then served by it; nothing else is kept."""
        return [order for order in orders if await self.find_shared(order)]

    async def find_shared(self, questions: Iterable[str]) -> list[tuple[str, str]]:
        """Of questions that are asked one after the other, from nothing kept: by which one was served, and this."""
        self._cache = self._forget()
        found = [(question, await self._ask(question)) for question in questions]
        return [(by, question) for question, by in found if by is not None]

    async def _ask(self, question: str) -> str | None:
        self._cache.served_by = None
        answer = await self._resolver.resolve(question, by=ME)
        return self._cache.served_by if answer.layer == "cache" else None

    def _forget(self) -> ToldCache:
        self._resolver.cache = cache = ToldCache(ManualClock(_NOW), self._embedder)
        return cache


@asynccontextmanager
async def open_asking(data: Path, embedder: Embedder) -> AsyncIterator[Asking]:
    """With the corpus as the repository. Raises OSError where it is absent."""
    corpus, clock = read(data / CORPUS), ManualClock(_NOW)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "functions"
        root.mkdir()
        for row in corpus:
            (root / f"{row['id'].replace(':', '_')}.py").write_text(row["content"], encoding="utf-8")
        trail = await open_trail(f"sqlite://{folder}/trail.db", clock, embedder)
        knowledge = open_knowledge(trail, clock, Path(folder), root, ME, embedder, ShortModel())
        await knowledge.gather()
        try:
            yield Asking(knowledge.resolver, embedder)
        finally:
            await knowledge.close()
            await trail.close()
