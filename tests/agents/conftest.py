"""What tests of the pieces around a run share."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.trail.bootstrap import bootstrap
from clew.trail.flow import Flow, read_flow
from clew.trail.store import Trail


@pytest.fixture
async def flow(trail: Trail, me: Principal) -> Flow:
    """The names of a trail that was set up."""
    await bootstrap(trail, me)
    return await read_flow(trail, by=me)
