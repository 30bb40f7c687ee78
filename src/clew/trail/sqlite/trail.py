"""A trail in one SQLite file: the parts, put together."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from clew.clock import Clock
from clew.errors import ReadOnly
from clew.trail.sqlite.consumers.dead_letters import SqliteDeadLetters
from clew.trail.sqlite.consumers.deliveries import SqliteDeliveries
from clew.trail.sqlite.edges import SqliteEdges
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.log import SqliteLog
from clew.trail.sqlite.maintenance import SqliteUpkeep
from clew.trail.sqlite.records import SqliteRecords
from clew.trail.sqlite.rows import Audiences
from clew.trail.sqlite.secrets import SqliteSecrets
from clew.trail.sqlite.selector_sql import add_functions
from clew.trail.store import Embedder

if TYPE_CHECKING:
    from clew.trail.sqlite.search import SqliteSearch


class SqliteTrail:
    """See `clew.trail.store.Trail`. `path=None` keeps everything in a private folder that `close` removes."""

    def __init__(
        self, path: Path | None, clock: Clock, embedder: Embedder | None = None, *, queue_limit: int = 10_000
    ) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="clew-")) if path is None else None
        self.path = path if path is not None else Path(str(self._temporary)) / "trail.db"
        _make_folder(self.path.parent)
        self._engine = Engine(
            self.path, clock, on_connect=add_functions, queue_limit=queue_limit, durable=path is not None
        )
        audiences = Audiences()
        self.log = SqliteLog(self._engine, audiences)
        self.records = SqliteRecords(self._engine, audiences, self.log.empty, clock, embedder)
        self.deliveries = SqliteDeliveries(self._engine, audiences, self.records, self.log, clock)
        self.dead_letters = SqliteDeadLetters(self._engine, audiences)
        self.edges = SqliteEdges(self._engine, audiences)
        self.upkeep = SqliteUpkeep(self._engine, audiences, embedder, self.records.space)
        self.secrets = SqliteSecrets(self._engine, self.path.with_name(self.path.name + ".key"))
        self._audiences = audiences
        self._embedder = embedder
        self._engine.on_commit = self._committed
        self._engine.on_rollback = self._rolled_back
        self._engine.before_commit = self.deliveries.filling

    @cached_property
    def index(self) -> SqliteSearch:
        # numpy and tantivy take longer to import than a short command takes to run
        from clew.trail.sqlite.search import SqliteSearch

        return SqliteSearch(self._engine, self._audiences, self._embedder, self.records.space)

    def _committed(self, changed: list[int]) -> None:
        self.deliveries.committed(changed)
        self.log.signal(changed)
        if "index" in self.__dict__:
            self.index.note_writes(len(changed))

    def _rolled_back(self) -> None:
        self._audiences.forget()
        self.deliveries.rolled_back()

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if "index" in self.__dict__:
            self.index.close()
        self._engine.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReadOnly(f"{folder} cannot be created: {error.strerror}") from error
