"""Sessions on a trail: their private context, snapshots, limits, branches and statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import open_conversations
from clew.clock import ManualClock
from clew.errors import AccessDenied, IllegalState, InvalidInput, TooLarge
from clew.team.sessions.session import Session, SessionAction, SessionConfig, branch_name, read_session
from clew.team.sessions.session_context import ContextChange, SessionContext, change_context
from clew.team.sessions.session_manager import SessionManager, open_sessions
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from tests.conversations import AGENT
from tests.team.sessions.conftest import ADA

WHOLE = SessionContext(
    current_task="rate limiting",
    current_step="tests",
    current_objective="no more than ten a second",
    completed_steps=("read the code",),
    next_steps=("write the guide",),
    blockers=("no clock",),
    modified_files={"api.py": "limit added"},
    read_files={"app.py": ""},
    created_files={"limit.py": ""},
    local_patterns=("token bucket",),
    local_failures=("a sleep in a test",),
    user_wants=("small functions",),
    user_rejects=("a new dependency",),
    active_agents={"engineer": "running"},
)


def apply_change(change: ContextChange, context: SessionContext) -> SessionContext:
    return change_context(context, change)


@pytest.mark.req("SYL-02")
async def test_a_session_with_all_its_fields_is_read_as_it_was_written(manager: SessionManager) -> None:
    config = SessionConfig(max_concurrent_tasks=2, max_engineers=3, task_timeout=60, enable_git_isolation=True)
    made = await manager.create("work", by=ADA, config=config, base_branch="main", metadata={"ticket": 12})
    await manager.update_context(made.id, lambda _: WHOLE, by=ADA)
    await manager.set_plan(made.id, "plan-1", by=ADA)
    found = await manager.set_plan(made.id, "plan-2", by=ADA)
    assert (found.active_dag_id, found.dag_history) == ("plan-2", ("plan-1",))
    assert (found.branch_name, found.base_branch, found.config) == ("clew/work", "main", config)
    assert found.metadata == {"ticket": 12}
    assert await manager.get(made.id, by=ADA) == found
    assert msgspec.json.decode(msgspec.json.encode(found), type=Session) == found


def test_a_record_of_an_earlier_version_is_read_with_its_limits() -> None:
    old = {"id": "s", "state": "active", "created_at": "2026-01-01T00:00:00Z", "last_active_at": "2026-01-01T00:00:00Z"}
    found = read_session({**old, "limits": {"auto_suspend_after": 60.0, "session_timeout": 0.0}})
    assert found.config == SessionConfig(auto_suspend_after=60)
    assert found.context == SessionContext()


@pytest.mark.req("SYL-03")
async def test_no_concurrent_writer_of_a_context_loses_its_change(manager: SessionManager) -> None:
    made = await manager.create("busy", by=ADA)
    changes = [ContextChange(next=(f"step {number}",)) for number in range(12)]

    def apply(change: ContextChange) -> Awaitable[Session]:
        return manager.update_context(made.id, partial(apply_change, change), by=ADA)

    await asyncio.gather(*map(apply, changes))
    found = await manager.get_context(made.id, by=ADA)
    assert sorted(found.next_steps) == sorted(f"step {number}" for number in range(12))


@pytest.mark.req("SYL-03")
@pytest.mark.req("SYL-06")
async def test_a_caller_of_another_session_reads_nothing_private(manager: SessionManager) -> None:
    mine, other = await manager.create("mine", by=ADA), await manager.create("other", by=ADA)
    await manager.update_context(mine.id, lambda _: WHOLE, by=ADA)
    inside, team = (msgspec.structs.replace(ADA, session=id) for id in (mine.id, f"{mine.id}.t1.1.engineer"))
    assert (await manager.get_context(mine.id, by=inside)).current_task == "rate limiting"
    assert (await manager.get_context(mine.id, by=team)).blockers == ("no clock",)
    stranger = Principal(owner_id="ada", agent_id="runner", session=other.id)
    for call in (
        manager.get_context(mine.id, by=stranger),
        manager.update_context(mine.id, lambda each: each, by=stranger),
        manager.query_history(mine.id, by=stranger),
        manager.stats(mine.id, by=stranger),
        manager.snapshot(mine.id, by=stranger),
    ):
        with pytest.raises(AccessDenied, match="private context of another session"):
            await call
    assert (await manager.get_context(other.id, by=stranger)).current_task == ""


@pytest.mark.req("SYL-05")
async def test_a_context_lists_the_messages_of_its_session_and_the_counts_fit(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("talk", by=ADA)
    conversations = await open_conversations(trail, clock, by=ADA)
    sent = [await conversations.send(text, by=ADA, session=made.id, agent=AGENT) for text in ("one", "Two", "three")]
    found = await manager.get_context(made.id, by=ADA)
    assert found.conversation_id == made.id
    assert found.message_history == tuple(each.id for each in sent)
    assert [each.text for each in await manager.query_history(made.id, "two", by=ADA)] == ["Two"]
    assert [each.text for each in await manager.query_history(made.id, by=ADA, limit=2)] == ["Two", "three"]
    stats = await manager.stats(made.id, by=ADA)
    assert (stats.messages, stats.answers, stats.pending, stats.entries) == (3, 0, 3, 0)


async def test_a_context_that_is_too_long_or_makes_no_sense_is_refused(manager: SessionManager) -> None:
    made = await manager.create(by=ADA)
    for change, error in (
        (ContextChange(task="x" * 2_001), TooLarge),
        (ContextChange(next=tuple(map(str, range(501)))), TooLarge),
        (ContextChange(finish_step=True), InvalidInput),
    ):
        with pytest.raises(error):
            await manager.update_context(made.id, partial(apply_change, change), by=ADA)
    assert (await manager.get(made.id, by=ADA)).context == SessionContext()


def test_a_change_moves_the_step_and_a_wish_replaces_its_opposite() -> None:
    context = SessionContext(current_step="tests", blockers=("a", "b"), user_wants=("tabs",))
    change = ContextChange(finish_step=True, step="guide", unblock=("a",), rejects=("tabs",))
    found = change_context(context, change)
    assert (found.completed_steps, found.current_step, found.blockers) == (("tests",), "guide", ("b",))
    assert (found.user_wants, found.user_rejects) == ((), ("tabs",))


async def plan_of_team(session: str, by: Principal) -> dict[str, Any]:
    """The state of a team in the middle of a plan."""
    return {
        "dag_state": {
            "dag_id": "plan-1",
            "current_layer": 1,
            "node_states": {"api": "passed", "docs": "running", "cli": "waiting"},
            "completed_results": {"api": {"commit": "abc"}},
            "pending_nodes": ["docs", "cli"],
        },
        "pending_messages": ["m1"],
        "agent_states": {"engineer": "running"},
    }


async def test_a_change_that_is_repeated_writes_nothing(trail: Trail, manager: SessionManager) -> None:
    made = await manager.create("plan", by=ADA)
    await manager.set_plan(made.id, "plan-1", by=ADA)
    head = await trail.log.head()
    again = await manager.set_plan(made.id, "plan-1", by=ADA)
    await manager.set_branch(made.id, made.branch_name, by=ADA)
    assert (await trail.log.head(), again.dag_history) == (head, ())


@pytest.mark.req("SYL-08")
async def test_a_suspended_session_has_a_snapshot_that_another_process_restores(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    first = await open_sessions(trail, clock, by=ADA, team_state_of=plan_of_team)
    made = await first.create("plan", by=ADA)
    await first.update_context(made.id, lambda _: WHOLE, by=ADA)
    await first.set_plan(made.id, "plan-1", by=ADA)
    conversations = await open_conversations(trail, clock, by=ADA)
    sent = await conversations.send("go on", by=ADA, session=made.id, agent=AGENT)
    await first.act(made.id, SessionAction.SUSPEND, by=ADA)

    second = await open_sessions(trail, clock, by=ADA)
    with pytest.raises(IllegalState, match="cannot change the context of session plan: it is suspended"):
        await second.update_context(made.id, lambda each: each, by=ADA)
    snapshot = await second.snapshot(made.id, by=ADA)
    assert snapshot.dag_state is not None
    assert (snapshot.dag_state.current_layer, snapshot.dag_state.pending_nodes) == (1, ("docs", "cli"))
    assert snapshot.dag_state.completed_results == {"api": {"commit": "abc"}}
    assert snapshot.guide_state.active_routes == {sent.id: AGENT}
    assert snapshot.pending_messages == (sent.id, "m1")
    assert snapshot.agent_states == {"engineer": "running"}
    assert snapshot.archivalist_state.resume_state["next_steps"] == ["write the guide"]
    resumed = await second.act(made.id, SessionAction.RESUME, by=ADA)
    assert (resumed.state, resumed.context, resumed.active_dag_id) == ("active", WHOLE, "plan-1")


@pytest.mark.req("SYL-04")
async def test_every_record_of_a_session_counts_as_activity_before_it_is_suspended(
    trail: Trail, clock: ManualClock, manager: SessionManager
) -> None:
    made = await manager.create("idle", by=ADA, config=SessionConfig(auto_suspend_after=60))
    clock.advance(seconds=50)
    draft = Draft(title="work", schema_name="note.v1", tags=(f"session:{made.id}",), context={})
    await trail.records.create(draft, by=ADA)
    clock.advance(seconds=50)
    assert (await manager.get(made.id, by=ADA)).state == "active"
    clock.advance(seconds=20)
    assert (await manager.get(made.id, by=ADA)).state == "suspended"
    assert [each.state for each in await manager.list(by=ADA)] == ["suspended"]
    assert (await manager.act(made.id, SessionAction.RESUME, by=ADA)).state == "active"


@pytest.mark.req("SYL-10")
async def test_each_session_has_a_branch_of_its_own_unless_it_wants_none(manager: SessionManager) -> None:
    made = await manager.create("rate limiting", by=ADA)
    without = await manager.create("plain", by=ADA, config=SessionConfig(enable_git_isolation=False))
    unnamed = await manager.create(by=ADA)
    assert (made.branch_name, without.branch_name) == ("clew/rate-limiting", "")
    assert unnamed.branch_name == f"clew/{unnamed.id[-8:]}"
    assert (await manager.set_branch(made.id, "clew/other", by=ADA)).branch_name == "clew/other"
    with pytest.raises(InvalidInput, match="base_branch"):
        await manager.create("odd", by=ADA, base_branch="--upload-pack=x")


async def test_closing_all_sessions_closes_the_open_ones_once(manager: SessionManager) -> None:
    made = [await manager.create(name, by=ADA) for name in ("a", "b", "c")]
    await manager.act(made[0].id, SessionAction.SUSPEND, by=ADA)
    await manager.act(made[1].id, SessionAction.CLOSE, by=ADA)
    closed = await manager.close_all(by=ADA, summary="over")
    assert {each.name for each in closed} == {"a", "c"}
    assert await manager.close_all(by=ADA) == []
    assert {each.state for each in await manager.list(by=ADA)} == {"completed"}


async def test_conversations_of_the_agents_of_a_session_are_not_sessions_of_their_own(
    trail: Trail, manager: SessionManager
) -> None:
    made = await manager.create("team", by=ADA)
    message = {"message": "build it", "content": "build it"}
    for conversation in (f"{made.id}.t1.1.engineer", "chat.of.old"):
        draft = Draft(
            title="m", schema_name="user.message.v1", tags=(f"session:{conversation}",), context=message, embed="never"
        )
        await trail.records.create(draft, by=ADA)
    assert {each.id for each in await manager.list(by=ADA)} == {made.id, "chat.of.old"}


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("rate limiting", "clew/rate-limiting"),
        ("Überholung: 2. Versuch", "clew/Uberholung-2-Versuch"),
        ("../../etc --force", "clew/etc-force"),
        ("a..b.lock", "clew/a-b-lock"),
        ("kettle\u202e;$(reboot)", "clew/kettle-reboot"),
        ("日本", "clew/12345678"),
        ("x" * 100, f"clew/{'x' * 60}"),
    ],
)
def test_a_branch_has_the_name_of_its_session_in_safe_characters(name: str, branch: str) -> None:
    assert branch_name(name, "0000-12345678") == branch
