"""Hooks of single members."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.history.entries import ArchiveQuery, Category
from clew.team.machines.team_state import TeamState
from clew.team.members.member_hooks import MemberHooks
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.team.members.kit import PIPELINE, SESSION, Kit, open_kit
from tests.team.members.working import working


@pytest.fixture
async def kit(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> Kit:
    return await open_kit(trail, clock, me, tmp_path)


def hooks_of(trail: Trail, me: Principal, kit: Kit) -> MemberHooks:
    async def state_of(session: str) -> TeamState:
        return kit.state

    return MemberHooks(trail, state_of, by=me)


@pytest.mark.req("SYL-32")
async def test_a_written_file_appears_in_the_timeline_and_a_consultation_is_marked(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    script = [
        {"call": {"engineer_write_file": {"path": "calc/sub.py", "content": "x = 1\n"}}},
        {"call": {"consult_librarian": {"question": "where is add?"}}},
        {"say": "Done."},
    ]
    hooks = hooks_of(trail, me, kit).hooks()
    async with working(trail, clock, me, script, tools=kit.tools, hooks=hooks) as team:
        await team.tell("engineer", "Where is add? Write sub.", PIPELINE, SESSION)
        marked = await trail.records.list(Selector(all_tags=("consultation:librarian",)), by=me, limit=5)
    assert len(marked.items) == 1
    assert kit.knowledge is not None
    wanted = ArchiveQuery(categories=(Category.TIMELINE,), current_only=True)
    [entry] = await kit.knowledge.chronicle(me, SESSION).query(wanted)
    assert (entry.content, entry.session_id) == ("modified calc/sub.py", SESSION)


@pytest.mark.req("SYL-32")
async def test_a_guide_knows_its_session_and_asks_the_model_once_for_a_message(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    hooks = hooks_of(trail, me, kit).hooks()
    async with working(trail, clock, me, [{"say": "librarian"}], tools=kit.tools, hooks=hooks) as team:
        first = await team.tell("guide", "Where is add?")
        assert f"Pipelines: {PIPELINE}" in team.shown()
        assert await team.tell("guide", "Where is add?") == first == "librarian"
        assert len(team.run.model.requests) == 1
