"""Both stores of exposure sets, with a library over each, for tests of both."""

from __future__ import annotations

import pytest

from clew.clock import ManualClock
from clew.skills.exposure import Exposures
from clew.skills.exposure_store import MemoryExposures, TrailExposures
from clew.skills.library import Skills
from clew.trail.store import Trail
from tests.skills.research_manifest import MANIFEST, TOOLS


@pytest.fixture(params=["trail", "memory"])
def sets(request: pytest.FixtureRequest, clock: ManualClock) -> Exposures:
    if request.param == "memory":
        return MemoryExposures(clock)
    trail: Trail = request.getfixturevalue("trail")
    return TrailExposures(trail, clock)


@pytest.fixture
def skills(sets: Exposures, clock: ManualClock) -> Skills:
    """A library over each store, with every tool in each toolset that lists it."""
    library = Skills(MANIFEST, exposures=sets, clock=clock)
    for name, toolset in MANIFEST.toolsets.items():
        library.register_tools(name, [TOOLS[tool] for tool in toolset.tools])
    return library
