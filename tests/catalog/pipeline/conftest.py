"""A pipeline over documents in memory, for tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SCHEMA
from clew.catalog.indexing.pipeline import RefreshPolicy, Report, run_pipeline
from clew.catalog.indexing.resource_queries import list_resources
from clew.catalog.indexing.source_ledger import keeper
from clew.clock import ManualClock
from clew.trail.model.selector import Selector
from clew.trail.store import Trail


class Shop:
    """A trail, a caller and a clock for tests of refreshes."""

    def __init__(self, trail: Trail, me: Principal, clock: ManualClock) -> None:
        self.trail, self.me, self.clock = trail, me, clock

    async def refresh(self, domain: Domain, number: int = 0, **policy: Any) -> Report:
        pipeline = domain.extractors[number]
        return await run_pipeline(
            self.trail, domain, pipeline, by=self.me, clock=self.clock, policy=RefreshPolicy(**policy)
        )

    async def contents(self, *scopes: str) -> dict[str, str]:
        """From the path of each resource to its content."""
        by = msgspec.structs.replace(self.me, scopes=frozenset(scopes))
        found = await list_resources(self.trail, by, limit=1_000)
        return {each.context["path"]: each.context["content"] for each in found}

    async def writes(self, schema_name: str = SCHEMA) -> int:
        """How often a record of this schema was written or removed."""
        events, _ = await self.trail.log.read(
            0, by=keeper(self.me), selector=Selector(schema_name=schema_name), limit=10_000
        )
        return len(events)


@pytest.fixture
def shop(trail: Trail, me: Principal, clock: ManualClock) -> Shop:
    return Shop(trail, me, clock)


def many(count: int) -> dict[str, str]:
    return {f"d{number}": f"text {number}" for number in range(count)}
