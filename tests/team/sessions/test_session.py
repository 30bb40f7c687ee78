"""The state machine of a session, without a trail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import IllegalState, InvalidInput
from clew.team.sessions.session import (
    TRANSITIONS,
    Session,
    SessionAction,
    SessionConfig,
    SessionEffect,
    SessionEvent,
    SessionStatus,
    apply_limits,
    check_new,
    step,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
ALLOWED = {
    ("created", "active"),
    ("active", "suspended"),
    ("active", "completed"),
    ("active", "failed"),
    ("suspended", "active"),
    ("suspended", "completed"),
}


def session(state: SessionStatus, **fields: object) -> Session:
    return msgspec.convert({"id": "s", "state": state, "created_at": START, "last_active_at": START, **fields}, Session)


def reachable(state: SessionStatus) -> set[SessionStatus]:
    """The states that one action leads to from this one."""
    found = set()
    for action in SessionAction:
        try:
            found.add(step(session(state), SessionEvent(action=action, at=START))[0].state)
        except IllegalState:
            continue
    return found


@pytest.mark.req("SYL-01")
@pytest.mark.parametrize("before", SessionStatus)
@pytest.mark.parametrize("after", SessionStatus)
def test_a_state_is_reached_only_by_an_allowed_transition(before: SessionStatus, after: SessionStatus) -> None:
    assert (after in reachable(before)) == ((before, after) in ALLOWED)


def test_a_refusal_names_the_state_and_what_is_allowed() -> None:
    with pytest.raises(IllegalState, match="cannot suspend session s: it is suspended") as caught:
        step(session(SessionStatus.SUSPENDED), SessionEvent(action=SessionAction.SUSPEND, at=START))
    assert caught.value.hint == "Possible now: resume, close"
    with pytest.raises(IllegalState) as caught:
        step(session(SessionStatus.COMPLETED), SessionEvent(action=SessionAction.RESUME, at=START))
    assert "clew session new" in caught.value.hint


@given(st.lists(st.sampled_from(SessionAction), max_size=30))
def test_any_order_of_actions_leaves_times_that_fit_the_state(actions: list[SessionAction]) -> None:
    now, at = session(SessionStatus.CREATED), START
    focused = False
    for action in actions:
        at += timedelta(seconds=1)
        try:
            now, effects = step(now, SessionEvent(action=action, at=at))
        except IllegalState:
            assert action not in TRANSITIONS[now.state]
            continue
        focused = SessionEffect.FOCUS in effects or (focused and SessionEffect.UNFOCUS not in effects)
        assert now.last_active_at == at
    assert focused == (now.state is SessionStatus.ACTIVE)
    assert (now.completed_at is not None) == (now.state in (SessionStatus.COMPLETED, SessionStatus.FAILED))
    assert now.activated_at is not None or now.state is SessionStatus.CREATED
    assert msgspec.json.decode(msgspec.json.encode(now), type=Session) == now


def test_limits_suspend_an_idle_session_and_fail_an_old_one() -> None:
    idle = session(SessionStatus.ACTIVE, config={"auto_suspend_after": 60})
    assert apply_limits(idle, None, START + timedelta(seconds=60)) == idle
    assert apply_limits(idle, START + timedelta(seconds=30), START + timedelta(seconds=61)) == idle
    suspended = apply_limits(idle, None, START + timedelta(seconds=61))
    assert (suspended.state, suspended.suspended_at) == ("suspended", START + timedelta(seconds=60))
    assert apply_limits(idle, None, START + timedelta(days=9)) == suspended, "the same whenever it is looked at"
    old = session(SessionStatus.ACTIVE, config={"session_timeout": 60, "auto_suspend_after": 60})
    assert apply_limits(old, None, START + timedelta(seconds=61)).state == "failed"
    endless, over = session(SessionStatus.ACTIVE), session(SessionStatus.SUSPENDED, config={"session_timeout": 1})
    for each in (endless, over):
        assert apply_limits(each, None, START + timedelta(days=999)) == each


@pytest.mark.parametrize("name", ["x" * 101, " padded", "two\nlines", "bell\x07"])
def test_a_name_that_no_list_could_show_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        check_new(name, SessionConfig())


@pytest.mark.parametrize("limit", [-1.0, 1e300, float("nan"), float("inf")])
def test_a_limit_that_no_clock_can_count_is_refused(limit: float) -> None:
    with pytest.raises(InvalidInput, match="session_timeout"):
        check_new("", SessionConfig(session_timeout=limit))
