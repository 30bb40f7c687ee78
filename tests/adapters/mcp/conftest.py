"""A catalog to serve by the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.catalog.catalog import Catalog
from tests.adapters.mcp.catalogs import Gate, fraud_domain, open_catalog


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def catalog(tmp_path: Path, gate: Gate) -> AsyncIterator[Catalog]:
    async with open_catalog(tmp_path, fraud_domain(gate)) as opened:
        yield opened
