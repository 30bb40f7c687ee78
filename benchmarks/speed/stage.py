"""One size of the benchmark: its settings, its records, and a trail that holds them, from which copies are taken."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.config import Config
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Embedder, Trail
from speed.corpus import Corpus, Item
from speed.timing import settle, tell

ME = Principal(owner_id=Config().owner, agent_id="bench")
LOAD_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is measured. `quick` takes a twentieth of the samples, enough to see that everything runs."""

    rounds: int
    quick: bool
    without: frozenset[str]

    def samples(self, full: int, *, least: int = 4) -> int:
        return max(least, full // 20) if self.quick else full


class Stage:
    """`items` are the records that every store holds before it is measured; `stores` those that are open."""

    def __init__(self, size: int, folder: Path, settings: Settings) -> None:
        self.size = size
        self.folder = folder
        self.settings = settings
        self.corpus = Corpus()
        tell(f"{size:,} records: making texts and vectors")
        self.items = self.corpus.make(size)
        self.stores: dict[str, Any] = {}
        self._base: Path | None = None

    async def copy_trail(self, name: str) -> Path:
        """A new folder with a trail.db of its own that holds the items."""
        if self._base is None:
            self._base = self.folder / "base"
            await self._build(self._base)
        return Path(shutil.copytree(self._base, self.folder / name))

    async def _build(self, folder: Path) -> None:
        tell(f"{self.size:,} records: writing them to a trail")
        trail = await open_file(folder, self.corpus.embedder)
        try:
            for at in range(0, self.size, LOAD_BATCH):
                drafts = [to_draft(item, id=item.id) for item in self.items[at : at + LOAD_BATCH]]
                await trail.records.create_many(drafts, by=ME)
            await trail.index.warm()
            await settle()
        finally:
            await trail.close()


async def open_file(folder: Path, embedder: Embedder | None) -> Trail:
    return await open_trail(f"sqlite://{folder / 'trail.db'}", embedder=embedder)


def to_draft(item: Item, *, id: str | None = None) -> Draft:
    """The draft of a caller that provides the vector."""
    return Draft(
        id=id,
        title=item.title,
        context={"description": item.text},
        tags=item.tags,
        schema_name="note.v1",
        embedding=item.vector.tolist(),
    )


def split(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]
