"""Techniques of members: the scratchpad and checkpoints of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.knowledge.history.entries import Category
from clew.team.members.toolkit.scratchpad import Scratchpad
from clew.team.members.toolkit.task_checkpoints import NO_STEPS, TaskCheckpoints
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import read_flow
from clew.trail.store import Trail
from tests.team.members.kit import PIPELINE, SESSION, Kit, open_kit
from tests.team.members.working import working


@pytest.fixture
async def kit(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> Kit:
    return await open_kit(trail, clock, me, tmp_path)


def inside(me: Principal, session: str) -> Principal:
    return Principal(owner_id=me.owner_id, agent_id="engineer", session=session)


@pytest.mark.req("SYL-101")
async def test_notes_survive_calls_and_other_runs_of_the_session(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    script = [
        {"user": "Write", "call": {"scratchpad_write": {"key": "api", "note": "Use v2."}}},
        {"say": "Done."},
        {"user": "Read", "call": {"scratchpad_read": {}}},
        {"say": "Done."},
        {"user": "Elsewhere", "call": {"scratchpad_read": {}}},
        {"say": "Done."},
    ]
    async with working(trail, clock, me, script, tools=kit.tools) as team:
        await team.tell("engineer", "Write it down.", PIPELINE, SESSION)
        await team.tell("tester", "Read it.", PIPELINE, SESSION)
        await team.tell("engineer", "Elsewhere, read it.", PIPELINE, "s2")
        [note], other = await team.results("scratchpad_read")
    assert (note["key"], note["content"], note["ttl"]) == ("api", "Use v2.", 0)
    assert note["created_at"]
    assert note["updated_at"]
    assert other == []


@pytest.mark.req("SYL-101")
async def test_a_note_is_replaced_by_its_key_and_unknown_keys_name_the_known_ones(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await bootstrap(trail, me)
    pad = Scratchpad(trail, clock, inside(me, "s1"))
    await pad.write("api", "Use v1.")
    await pad.write("api", "Use v2.")
    assert [each.content for each in await pad.read()] == ["Use v2."]
    with pytest.raises(NotFound, match="api"):
        await pad.read("database")


@pytest.mark.req("SYL-109")
async def test_a_checkpoint_restores_notes_files_and_the_next_step_in_a_new_process(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit, tmp_path: Path
) -> None:
    script = [
        {"call": {"engineer_read_file": {"path": "calc/core.py"}}},
        {"call": {"engineer_write_file": {"path": "calc/sub.py", "content": "x = 1\n"}}},
        {"call": {"scratchpad_write": {"key": "api", "note": "Use v2."}}},
        {"call": {"save_checkpoint": {"summary": "Half", "completed": ["read"], "next_steps": ["write", "test"]}}},
        {"say": "Done."},
    ]
    assert kit.knowledge is not None
    await kit.knowledge.chronicle(inside(me, SESSION), SESSION).store("SQLite", Category.DECISION, "Which store?")
    async with working(trail, clock, me, script, tools=kit.tools) as team:
        await team.tell("engineer", "Begin.", PIPELINE, SESSION)
    await kit.knowledge.close()
    other = await open_trail(f"sqlite://{tmp_path}/trail.db", clock)
    flow = await read_flow(other, by=me)
    found = await TaskCheckpoints(other, clock, flow.response, inside(me, SESSION)).restore()
    await other.close()
    assert found.summary == "Half"
    assert found.status == "in_progress"
    assert found.files_read == ("calc/core.py",)
    assert found.files_modified == ("calc/sub.py",)
    assert [each.content for each in found.scratchpad] == ["Use v2."]
    assert [each.choice for each in found.decisions] == ["[UNVERIFIED] SQLite"]
    assert found.hint == "Next: write"


@pytest.mark.req("SYL-109")
async def test_a_checkpoint_without_steps_is_restored(
    trail: Trail, clock: ManualClock, me: Principal, kit: Kit
) -> None:
    script = [
        {"call": {"save_checkpoint": {"summary": "All", "status": "completed"}}},
        {"call": {"resume_task": {}}},
        {"call": {"resume_task": {"id": "nowhere"}}},
        {"call": {"save_checkpoint": {"summary": "All", "status": "lost"}}},
        {"say": "Done."},
    ]
    async with working(trail, clock, me, script, tools=kit.tools) as team:
        await team.tell("engineer", "Begin.", PIPELINE, SESSION)
        restored, missing = await team.results("resume_task")
        _, wrong = await team.results("save_checkpoint")
    assert restored["hint"] == NO_STEPS
    assert "nowhere" in missing
    assert "in_progress" in wrong
