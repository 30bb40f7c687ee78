"""LanceDB in this process, on a folder, with a full text index, a vector index and an index of tags: hybrid search
with its default fusion. It returns id, title and text, and no vectors, which is what makes it fastest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

# it warns on every search about the names of its score columns, and each line costs time on its clock
os.environ.setdefault("LANCEDB_LOG", "error")

import lancedb  # reads the variable when imported
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, IvfPq, LabelList

from speed.corpus import Corpus, Item, Query
from speed.stage import Stage, split

LOAD_ROWS = 10_000
WORTH_AN_INDEX = 5_000
"""Rows from which a vector index is made; below, it is slower than none, and too few to train it."""
SHOWN = ["id", "title", "text"]


class Lance:
    """See `speed.contenders.SearchStore`."""

    name = "lancedb"

    def __init__(self, folder: str, stage: Stage) -> None:
        self._corpus: Corpus = stage.corpus
        database = lancedb.connect(folder)
        first, *others = split(stage.items, LOAD_ROWS)
        self._table: Any = database.create_table("records", self._rows(first))
        for some in others:
            self._table.add(self._rows(some))
        self._table.create_index("text", config=FTS())
        self._table.create_index("tags", config=LabelList())
        if stage.size >= WORTH_AN_INDEX:
            self._table.create_index("vector", config=IvfPq(distance_type="cosine"))
        self._table.optimize()

    def prepare(self, items: Sequence[Item]) -> list[tuple[str, pa.Table]]:
        return [(item.id, self._rows([item])) for item in items]

    async def create(self, prepared: tuple[str, pa.Table]) -> str:
        self._table.add(prepared[1])
        return prepared[0]

    async def create_batch(self, prepared: Sequence[tuple[str, pa.Table]]) -> None:
        self._table.add(pa.concat_tables([table for _, table in prepared]))

    async def search(self, query: Query, k: int) -> list[str]:
        found = self._table.search(query_type="hybrid").vector(self._vector(query)).text(query.text)
        return self._ids(found.distance_type("cosine").limit(k).select(SHOWN))

    async def find_nearest(self, query: Query, tag: str, k: int) -> list[str]:
        found = self._table.search(self._vector(query)).distance_type("cosine")
        return self._ids(found.where(f"array_has(tags, '{tag}')", prefilter=True).limit(k).select(SHOWN))

    async def tidy(self) -> None:
        self._table.optimize()

    async def close(self) -> None:
        """Nothing is held open."""

    def _vector(self, query: Query) -> Any:
        return query.vector if query.vector is not None else self._corpus.embed([query.text])[0]

    def _ids(self, found: Any) -> list[str]:
        return list(found.to_arrow()["id"].to_pylist())

    def _rows(self, items: Sequence[Item]) -> pa.Table:
        vectors = np.stack([item.vector for item in items])
        return pa.table(
            {
                "id": [item.id for item in items],
                "title": [item.title for item in items],
                "text": [f"{item.title}. {item.text}" for item in items],
                "tags": [list(item.tags) for item in items],
                "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]),
            }
        )


async def open_store(stage: Stage) -> Lance:
    return Lance(str(stage.folder / "lance"), stage)
