"""Tasks and questions as people name them, and the evidence of a task that is not finished."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from clew.errors import IllegalState, InvalidInput, NotFound
from clew.team.evidence.task_evidence import why_done
from clew.team.machines.pipeline_state import PipelineContext, PipelineStatus, Stage, TaskPipeline
from clew.team.machines.team_state import TeamState
from clew.team.messages.payloads import TeamQuestion
from clew.team.planning.plan import read_plan
from clew.team.runtime.task_lookup import find_question, task_evidence

PLAN = read_plan(
    {
        "id": "p1",
        "summary": "Rate limiting",
        "nodes": [
            {"id": "api", "prompt": "Limit requests", "files": ["api.py"]},
            {"id": "docs", "prompt": "Describe it", "files": ["docs/*.md"], "depends_on": ["api"]},
        ],
    }
)
RUNNING = TaskPipeline(
    id="api.1",
    session_id="s",
    dag_id="d",
    task_id="api",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    context=PipelineContext(task_prompt="Limit."),
    state=PipelineStatus.RUNNING,
    stage=Stage.BUILD,
    inspector_loops=1,
)


@pytest.mark.req("BEY-10")
def test_a_task_under_way_and_one_that_waits_say_how_far_they_are() -> None:
    waiting = TeamState(session="s", plan=PLAN)
    assert why_done(task_evidence(waiting, "1")).splitlines() == [
        "api: Limit requests has not started; the plan waits for your approval",
        "  no receipts yet",
    ]
    approved = msgspec.structs.replace(waiting, is_approved=True, pipelines={"api.1": RUNNING}, earlier_plans=(PLAN,))
    assert why_done(task_evidence(approved, "api")).splitlines() == [
        "api: Limit requests is under way: build, round 2",
        "  no receipts yet",
    ]
    assert why_done(task_evidence(approved, "2")).startswith("docs: Describe it has not started; it comes after api\n")
    assert not task_evidence(approved, "docs").verdict.accepted
    with pytest.raises(NotFound, match="no task 'test'"):
        task_evidence(approved, "test")


def test_a_question_is_named_by_its_number_or_the_end_of_its_id() -> None:
    asked = {
        id: TeamQuestion(question=text, pipeline="api.1") for id, text in (("0-aa11", "per user?"), ("0-bb22", "UTC?"))
    }
    state = TeamState(session="s", questions=asked)
    assert (find_question(state, "2"), find_question(state, "aa11")) == ("0-bb22", "0-aa11")
    with pytest.raises(InvalidInput) as several:
        find_question(state, "")
    assert several.value.hint == "Name one by its number: 1: per user?; 2: UTC?"
    with pytest.raises(NotFound):
        find_question(state, "9")
    with pytest.raises(IllegalState):
        find_question(TeamState(session="s"), "")
