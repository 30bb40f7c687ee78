"""The trail, as a program uses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import Ranking, SearchRequest
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Embedder, Trail
from speed.contenders import OURS
from speed.corpus import Item, Query
from speed.stage import ME, Stage, open_file, to_draft
from speed.timing import settle


class Ours:
    """See `speed.contenders.SearchStore`."""

    name = OURS

    def __init__(self, folder: Path, embedder: Embedder, trail: Trail) -> None:
        self._folder = folder
        self._embedder = embedder
        self.trail = trail

    def prepare(self, items: Sequence[Item]) -> list[Draft]:
        return [to_draft(item) for item in items]

    async def create(self, prepared: Draft) -> str:
        return (await self.trail.records.create(prepared, by=ME)).id

    async def create_batch(self, prepared: Sequence[Draft]) -> None:
        await self.trail.records.create_many(prepared, by=ME)

    async def search(self, query: Query, k: int) -> list[str]:
        return await self._ask(query, EVERYTHING, k, "default")

    async def find_nearest(self, query: Query, tag: str | None, k: int) -> list[str]:
        """Of all records where no tag is given."""
        return await self._ask(query, EVERYTHING if tag is None else Selector(all_tags=(tag,)), k, "vector")

    async def search_among(self, query: Query, tag: str, k: int) -> list[str]:
        """The hybrid search with a filter."""
        return await self._ask(query, Selector(all_tags=(tag,)), k, "default")

    async def _ask(self, query: Query, selector: Selector, k: int, ranking: Ranking) -> list[str]:
        vector = query.vector.tolist() if query.vector is not None else None
        request = SearchRequest(text=query.text, vector=vector, selector=selector, limit=k, ranking=ranking)
        found = await self.trail.index.search(request, by=ME)
        return [hit.breadcrumb.id for hit in found.hits]

    async def tidy(self) -> None:
        """Does nothing: the trail maintains the index itself."""

    async def reopen(self) -> None:
        await self.trail.close()
        self.trail = await open_file(self._folder, self._embedder)

    async def close(self) -> None:
        await self.trail.close()


async def open_store(stage: Stage) -> Ours:
    """A copy of the stage's trail with its index loaded, as in a process that has been serving for a while."""
    number = len(list(stage.folder.glob("ours-*")))
    folder = await stage.copy_trail(f"ours-{number}")
    embedder = stage.corpus.embedder
    store = Ours(folder, embedder, await open_file(folder, embedder))
    await store.trail.index.warm()
    await settle()
    return store
