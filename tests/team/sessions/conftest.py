"""Sessions on a trail of their own."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.sessions.session_manager import SessionManager, open_sessions
from clew.trail.store import Trail
from tests.conversations import define

ADA = Principal(owner_id="ada", agent_id="runner")


@pytest.fixture
async def manager(trail: Trail, clock: ManualClock) -> SessionManager:
    await define(trail, ADA)
    return await open_sessions(trail, clock, by=ADA)
