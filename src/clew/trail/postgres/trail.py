"""A trail on a PostgreSQL server: the parts, put together."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from clew.clock import Clock
from clew.trail.postgres.consumers.dead_letters import PostgresDeadLetters
from clew.trail.postgres.consumers.deliveries import PostgresDeliveries
from clew.trail.postgres.edges import PostgresEdges
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.log import PostgresLog
from clew.trail.postgres.maintenance import PostgresUpkeep
from clew.trail.postgres.records import PostgresRecords
from clew.trail.postgres.secrets import PostgresSecrets
from clew.trail.store import Embedder

if TYPE_CHECKING:
    from clew.trail.postgres.search.search import PostgresSearch


class PostgresTrail:
    """See `clew.trail.store.Trail`."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        embedder: Embedder | None = None,
        *,
        queue_limit: int,
        search_memory: int,
    ) -> None:
        """Connect and bring the database to the newest schema. Blocks for as long as that takes."""
        self._engine = PostgresEngine(url, clock, queue_limit=queue_limit)
        self._embedder = embedder
        self._search_memory = search_memory
        self.log = PostgresLog(self._engine)
        self.records = PostgresRecords(self._engine, clock, embedder)
        self.deliveries = PostgresDeliveries(self._engine, self.records, clock)
        self.dead_letters = PostgresDeadLetters(self._engine, self.deliveries.news.free)
        self.edges = PostgresEdges(self._engine)
        self.upkeep = PostgresUpkeep(self._engine, embedder, self.records.space, search_memory=search_memory)
        self.secrets = PostgresSecrets(self._engine)

    @cached_property
    def index(self) -> PostgresSearch:
        # numpy takes longer to import than a short command takes to run
        from clew.trail.postgres.search.search import PostgresSearch

        return PostgresSearch(self._engine, self._embedder, self.records.space, memory=self._search_memory)

    async def close(self) -> None:
        await asyncio.to_thread(self._engine.close)
