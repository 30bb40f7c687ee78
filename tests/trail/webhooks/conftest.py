"""A trail that holds the secret of a webhook."""

from __future__ import annotations

import pytest

from clew.trail.store import Trail
from tests.trail.webhooks.receiver import ANN, SECRET


@pytest.fixture
async def trail(trail: Trail) -> Trail:
    await trail.secrets.put("hook", SECRET, by=ANN)
    return trail
