"""What all tests share: clocks, trails and principals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail import open_trail
from clew.trail.store import Trail

DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def me() -> Principal:
    return Principal(owner_id="acme", agent_id="ann")


@pytest.fixture
def stranger() -> Principal:
    return Principal(owner_id="other", agent_id="eve")


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    """A trail in a real file, without an embedder."""
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock)
    yield opened
    await opened.close()
