"""Both keepers of exposure sets, for the tests that hold for each."""

from __future__ import annotations

import pytest

from clew.clock import ManualClock
from clew.skills.exposure import Exposures
from clew.skills.keeping import MemoryExposures, TrailExposures
from clew.trail.store import Trail


@pytest.fixture(params=["trail", "memory"])
def sets(request: pytest.FixtureRequest, clock: ManualClock) -> Exposures:
    if request.param == "memory":
        return MemoryExposures(clock)
    trail: Trail = request.getfixturevalue("trail")
    return TrailExposures(trail, clock)
