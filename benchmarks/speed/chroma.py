"""Chroma in this process, on a folder. It ranks by vectors only; batches are `add` calls with many records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings

from speed.corpus import Corpus, Item, Query
from speed.stage import Stage, split


class Chroma:
    """See `speed.contenders.SearchStore`."""

    name = "chroma"

    def __init__(self, folder: str, corpus: Corpus) -> None:
        self._corpus = corpus
        self._client: Any = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        self._collection: Any = self._client.create_collection(
            "records", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def load(self, items: Sequence[Item]) -> None:
        """The largest batches that it takes, as its manual advises."""
        for some in split(items, self._client.get_max_batch_size()):
            self._add(self.prepare(some))

    def prepare(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        return [
            {
                "id": item.id,
                "document": f"{item.title}. {item.text}",
                "metadata": {"title": item.title, "tags": list(item.tags)},
                "embedding": item.vector,
            }
            for item in items
        ]

    async def create(self, prepared: dict[str, Any]) -> str:
        self._add([prepared])
        return str(prepared["id"])

    async def create_batch(self, prepared: Sequence[dict[str, Any]]) -> None:
        self._add(prepared)

    def _add(self, prepared: Sequence[dict[str, Any]]) -> None:
        self._collection.add(
            ids=[each["id"] for each in prepared],
            documents=[each["document"] for each in prepared],
            metadatas=[each["metadata"] for each in prepared],
            embeddings=np.stack([each["embedding"] for each in prepared]),
        )

    async def search(self, query: Query, k: int) -> list[str]:
        return self._ask(query, k)

    async def find_nearest(self, query: Query, tag: str, k: int) -> list[str]:
        return self._ask(query, k, where={"tags": {"$contains": tag}})

    def _ask(self, query: Query, k: int, **filters: Any) -> list[str]:
        vector = query.vector if query.vector is not None else self._corpus.embed([query.text])[0]
        found = self._collection.query(query_embeddings=vector[None, :], n_results=k, **filters)
        return list(found["ids"][0])

    async def tidy(self) -> None:
        """Nothing to do: it keeps its index itself."""

    async def close(self) -> None:
        self._client.close()


async def open_store(stage: Stage) -> Chroma:
    store = Chroma(str(stage.folder / "chroma"), stage.corpus)
    store.load(stage.items)
    return store
