"""The coordinator: from a request to merged work, by records alone."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.sessions.session import SessionStatus
from clew.trail.store import Trail
from tests.team.runtime.scripted_crew import crew


@pytest.mark.req("SYL-46")
@pytest.mark.req("SYL-51")
async def test_a_request_is_planned_built_checked_merged_and_completed(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with crew(trail, clock, me) as team:
        session = await team.start()
        state = await team.end(session)
        assert state.outcome == "completed", state.reason
        assert [name for name, _ in team.tools.calls] == [
            "team-open",
            "team-worktree",
            "team-commit",
            "team-check",
            "team-check",
            "team-check",
            "team-merge",
        ]
        assert (await team.team.sessions.get(session, by=me)).state is SessionStatus.COMPLETED
