"""Fixtures for tests of the parts around a run."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import Flow, read_flow
from clew.trail.store import Trail
from tests.agents.payments import Bank


@pytest.fixture
async def flow(trail: Trail, me: Principal) -> Flow:
    """The flow of a trail after the initial setup."""
    await bootstrap(trail, me)
    return await read_flow(trail, by=me)


@pytest.fixture
def bank(trail: Trail, clock: ManualClock, me: Principal) -> Bank:
    return Bank(trail, clock, me)
