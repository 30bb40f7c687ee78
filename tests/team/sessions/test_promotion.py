"""Promotion of journal entries: the four triggers, the recorded author, and undoing it."""

from __future__ import annotations

import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.history.entries import ArchiveQuery, Category, write_entry
from clew.knowledge.history.journal import Chronicle
from clew.team.messages.message import TeamMessage, message_draft
from clew.team.messages.message_types import MessageType
from clew.team.sessions.promotion import USES, Promotions
from clew.team.sessions.session import SessionAction
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag
from tests.team.sessions.conftest import ADA

pytestmark = pytest.mark.req("SYL-07")


async def write(trail: Trail, session: str, content: str, category: Category, **metadata: object) -> str:
    return (await write_entry(trail, ADA, content, category, session, metadata=metadata)).id


async def readable(trail: Trail, clock: ManualClock) -> set[str]:
    """The entries that another session reads."""
    return {each.id for each in await Chronicle(trail, ADA, "elsewhere", clock).query(ArchiveQuery())}


async def reason(promotions: Promotions, session: str, id: str) -> str | None:
    (found,) = [each for each in await promotions.entries(session, by=ADA) if each.id == id]
    mark = found.metadata.get("promoted")
    return None if mark is None else f"{mark['by']}: {mark['because']}"


@pytest.mark.req("SYL-42")
async def test_a_session_that_succeeds_shares_decisions_patterns_and_resolved_failures(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("work", by=ADA)
    decision = await write(trail, made.id, "We use a token bucket", Category.DECISION)
    pattern = await write(trail, f"{made.id}.t1.1.engineer", "Pass the clock in", Category.PATTERN)
    mended = await write(trail, made.id, "It slept", Category.FAILURE, resolved=True)
    await write(trail, made.id, "It failed", Category.FAILURE)
    await write(trail, made.id, "Half of it is done", Category.TASK_STATE)
    assert await readable(trail, clock) == set()
    await manager.act(made.id, SessionAction.CLOSE, by=ADA)
    assert await readable(trail, clock) == {decision, pattern, mended}
    assert await reason(manager.promotions, made.id, decision) == "runner: session"
    assert (await manager.stats(made.id, by=ADA)).promoted == 3


async def test_a_session_that_is_given_up_shares_nothing(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("work", by=ADA)
    await write(trail, made.id, "We use a token bucket", Category.DECISION)
    await manager.act(made.id, SessionAction.SUSPEND, by=ADA)
    await manager.act(made.id, SessionAction.CLOSE, by=ADA)
    assert await readable(trail, clock) == set()


async def test_the_user_promotes_any_entry_and_takes_it_back_for_good(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("work", by=ADA)
    id = await write(trail, made.id, "We use a token bucket", Category.DECISION)
    for _ in range(2):
        await manager.promotions.promote(id, by=ADA)
    assert await readable(trail, clock) == {id}
    assert await reason(manager.promotions, made.id, id) == "runner: user"
    await manager.promotions.take_back(id, by=ADA)
    assert await readable(trail, clock) == set()
    with pytest.raises(InvalidInput, match="is not promoted"):
        await manager.promotions.take_back(id, by=ADA)
    await manager.act(made.id, SessionAction.CLOSE, by=ADA)
    assert await readable(trail, clock) == set(), "a success does not undo the user's decision"
    with pytest.raises(NotFound):
        await manager.promotions.promote("00000000-0000-0000-0000-000000000000", by=ADA)


async def test_an_approval_of_the_inspector_shares_the_entries_of_that_task_alone(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("work", by=ADA)
    approved = await write(trail, f"{made.id}.api.1.engineer", "Keys are per user", Category.INSIGHT)
    await write(trail, f"{made.id}.api.10.engineer", "Keys are per host", Category.INSIGHT)
    for pipeline, passed in (("api.1", True), ("api.10", False)):
        message = TeamMessage(
            id=clock.new_id(),
            session_id=made.id,
            source="inspector",
            target="orchestrator",
            type=MessageType.VALIDATION_RESULT,
            payload={"passed": passed, "pipeline": pipeline},
            timestamp=clock.now(),
        )
        await trail.records.create(message_draft(message), by=ADA)
    await manager.act(made.id, SessionAction.SUSPEND, by=ADA)
    assert await readable(trail, clock) == {approved}
    assert await reason(manager.promotions, made.id, approved) == "runner: inspector"


async def test_an_entry_is_shared_after_runs_that_saw_it_succeeded_often_enough(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("work", by=ADA)
    used = await write(trail, made.id, "The port is 8080", Category.INSIGHT)
    rare = await write(trail, made.id, "The host is alpha", Category.INSIGHT)
    for number in range(USES + 1):
        is_done, shown = number < USES, [used, rare] if number in (0, USES) else [used]
        tags = (f"session:{made.id}", run_tag(f"run{number}"))
        context = {"consumer_id": "parrot", "receipt": {"items": [{"id": id} for id in shown]}}
        answer = {"message": "ok", "status": "done" if is_done else "stopped"}
        for schema, content in (("agent.context.v1", context), ("agent.response.v1", answer)):
            draft = Draft(title=schema, schema_name=schema, tags=tags, context=content, embed="never")
            await trail.records.create(draft, by=ADA)
    await manager.act(made.id, SessionAction.SUSPEND, by=ADA)
    assert await readable(trail, clock) == {used}
    assert await reason(manager.promotions, made.id, used) == "runner: uses"
