"""The Guide: stamps messages, and refuses those that may not be sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.clock import ManualClock
from clew.errors import AccessDenied, ClewError, IllegalState, InvalidInput, NotFound
from clew.team.guide import Guide, build_message
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ROUTES, MessageType
from clew.team.sessions.session import Session, SessionAction
from clew.team.sessions.session_manager import SessionManager
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

ASK = {"kind": "ask", "text": "How far are you?"}


class Desk:
    """A Guide with the sessions around it."""

    def __init__(self, trail: Trail, conversations: Conversations, clock: ManualClock, me: Principal) -> None:
        self.guide = Guide(trail, conversations, clock, by=me)
        self.sessions = SessionManager(trail, conversations, clock)
        self.clock = clock
        self.trail = trail
        self.me = me

    def message(
        self, type: str = "USER_INTERRUPT", payload: Any = None, source: str = "user", **more: Any
    ) -> TeamMessage:
        return build_message(type, ASK if payload is None else payload, source=source, clock=self.clock, **more)

    async def new(self) -> Session:
        return await self.sessions.create(by=self.me)

    def agent(self, role: str, session: str) -> Principal:
        """The principal of a tool that this agent calls."""
        return msgspec.structs.replace(self.me, agent_id=role, session=f"{session}.main.{role}", steers=False)

    async def written(self) -> int:
        return len((await self.trail.records.list(Selector(schema_name="team.message.v1"), by=self.me)).items)


@pytest.fixture
async def desk(trail: Trail, clock: ManualClock, me: Principal) -> Desk:
    await bootstrap(trail, me)
    return Desk(trail, Conversations(trail, await read_flow(trail, by=me), clock), clock, me)


@pytest.mark.req("SYL-14")
@pytest.mark.req("SYL-43")
async def test_a_message_without_a_session_goes_to_the_focused_one_and_is_stamped(desk: Desk) -> None:
    session = await desk.new()
    sent = await desk.guide.send(desk.message(), by=desk.me)
    assert (sent.session_id, sent.timestamp, sent.status) == (session.id, desk.clock.now(), "pending")
    assert sent.metadata == {"via": "guide"}
    assert await desk.written() == 1


@pytest.mark.req("SYL-43")
async def test_a_message_without_a_session_is_refused_where_none_is_focused(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        await desk.guide.send(desk.message(), by=desk.me)


@pytest.mark.req("SYL-14")
@pytest.mark.parametrize(
    ("action", "state"), [(SessionAction.SUSPEND, "suspended"), (SessionAction.CLOSE, "completed")]
)
async def test_a_session_that_is_not_active_is_refused_with_its_state(
    desk: Desk, action: SessionAction, state: str
) -> None:
    session = await desk.new()
    await desk.sessions.act(session.id, action, by=desk.me)
    with pytest.raises(IllegalState, match=state):
        await desk.guide.send(desk.message(session_id=session.id), by=desk.me)
    assert await desk.written() == 0


@pytest.mark.req("SYL-14")
async def test_an_unknown_session_is_refused(desk: Desk) -> None:
    with pytest.raises(NotFound, match="session"):
        await desk.guide.send(desk.message(session_id="nowhere"), by=desk.me)


@pytest.mark.req("SYL-14")
async def test_an_agent_of_another_session_is_refused(desk: Desk) -> None:
    own, other = await desk.new(), await desk.new()
    asking = desk.message("CLARIFICATION_REQUEST", {"question": "Which?"}, "architect", session_id=other.id)
    with pytest.raises(AccessDenied, match="may not send"):
        await desk.guide.send(asking, by=desk.agent("architect", own.id))
    sent = await desk.guide.send(msgspec.structs.replace(asking, session_id=""), by=desk.agent("architect", own.id))
    assert sent.session_id == own.id


@pytest.mark.req("SYL-14")
@pytest.mark.parametrize("source", ["inspector", "user", "runtime"])
async def test_an_agent_sends_only_as_itself(desk: Desk, source: str) -> None:
    session = await desk.new()
    message = desk.message("VALIDATION_RESULT", {"passed": True}, source, session_id=session.id)
    with pytest.raises(AccessDenied, match=f"as {source}"):
        await desk.guide.send(message, by=desk.agent("engineer", session.id))


@pytest.mark.req("SYL-14")
async def test_a_person_sends_only_as_the_user(desk: Desk) -> None:
    session = await desk.new()
    message = desk.message("CALL_RESULT", {"call": "x", "tool": "y", "status": "success"}, "runtime")
    with pytest.raises(AccessDenied, match="as runtime"):
        await desk.guide.send(msgspec.structs.replace(message, session_id=session.id), by=desk.me)


@pytest.mark.req("SYL-43")
@pytest.mark.parametrize("field", ["ttl", "deadline"])
async def test_an_expired_message_is_not_delivered(desk: Desk, field: str) -> None:
    await desk.new()
    now = desk.clock.now()
    message = desk.message(**({"ttl": 10.0} if field == "ttl" else {"deadline": now + timedelta(seconds=10)}))
    desk.clock.advance(seconds=11)
    with pytest.raises(IllegalState, match="expired"):
        await desk.guide.send(message, by=desk.me)
    assert await desk.written() == 0


@pytest.mark.req("SYL-44")
async def test_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidInput, match="USER_SHOUT"):
        build_message("USER_SHOUT", {}, source="user", clock=ManualClock())


@pytest.mark.req("SYL-44")
@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ({"payload": {"kind": "dance"}}, "kind"),
        ({"payload": {"kind": "ask", "volume": 3}}, "volume"),
        ({"target": "tester"}, "target"),
        ({"type": "PLAN_RESPONSE", "payload": {}}, "source"),
    ],
)
async def test_a_message_that_does_not_fit_its_type_is_refused(desk: Desk, message: dict[str, Any], wrong: str) -> None:
    await desk.new()
    given = {"type": "USER_INTERRUPT", "payload": ASK, **message}
    with pytest.raises(InvalidInput, match=wrong):
        await desk.guide.send(desk.message(**given), by=desk.me)


@pytest.mark.req("SYL-13")
@pytest.mark.parametrize(
    ("type", "receiver"),
    [
        ("CONTEXT_REQUEST", "librarian"),
        ("HISTORY_REQUEST", "archivalist"),
        ("STORE_REQUEST", "archivalist"),
        ("RESEARCH_REQUEST", "academic"),
        ("VALIDATE_TASK", "inspector"),
        ("TESTS_READY", "tester"),
        ("DAG_EXECUTE", "orchestrator"),
        ("TASK_DISPATCH", "engineer"),
        ("INSPECTION_RESULTS", "architect"),
    ],
)
def test_a_message_without_a_target_goes_to_the_receiver_of_its_type(type: str, receiver: str) -> None:
    assert ROUTES[MessageType(type)].receivers[0] == receiver
    assert build_message(type, {}, source="user", clock=ManualClock()).target == receiver


@pytest.mark.req("SYL-11")
async def test_every_message_passes_the_guide(desk: Desk) -> None:
    """An emitter lacks the role; the tool of an agent is refused although it has the roles of its owner."""
    session = await desk.new()
    draft = Draft(title="Forged", schema_name="team.message.v1", context={}, tags=(f"session:{session.id}",))
    emitter = msgspec.structs.replace(desk.me, roles=frozenset({"emitter"}))
    for by in (emitter, desk.agent("engineer", session.id)):
        with pytest.raises(AccessDenied):
            await desk.trail.records.create(draft, by=by)


@pytest.mark.req("SYL-43")
async def test_the_same_key_sends_a_message_once(desk: Desk) -> None:
    await desk.new()
    first = await desk.guide.send(desk.message(), by=desk.me, key="a")
    assert await desk.guide.send(desk.message(), by=desk.me, key="a") == first
    assert await desk.written() == 1


async def test_the_user_of_another_session_is_refused(desk: Desk) -> None:
    session = await desk.new()
    other = msgspec.structs.replace(desk.me, agent_id="bob", roles=frozenset({"emitter", "subscriber"}))
    with pytest.raises(ClewError, match="another user began"):
        await desk.guide.send(desk.message(session_id=session.id), by=other)


@pytest.mark.req("SYL-44")
async def test_the_guide_carries_out_messages_about_a_session(desk: Desk) -> None:
    session = (await desk.new()).id
    for type, state in (
        ("SESSION_SUSPEND", "suspended"),
        ("SESSION_RESUME", "active"),
        ("SESSION_COMPLETE", "completed"),
    ):
        await desk.guide.send(desk.message(type, {}, session_id=session), by=desk.me)
        assert (await desk.sessions.get(session, by=desk.me)).state == state
    first, second = (await desk.new()).id, (await desk.new()).id
    await desk.guide.send(desk.message("SESSION_SWITCH", {}, session_id=first), by=desk.me)
    focused = await desk.sessions.focused(by=desk.me)
    assert focused is not None
    assert focused.id == first != second
    await desk.guide.send(desk.message("SESSION_CREATE", {"name": "billing"}, session_id=first), by=desk.me)
    assert "billing" in [each.title for each in await desk.sessions.list(by=desk.me)]


SESSION_MESSAGES = (
    ("SESSION_SUSPEND", "active", "suspended"),
    ("SESSION_RESUME", "suspended", "active"),
    ("SESSION_COMPLETE", "active", "completed"),
)


@pytest.mark.req("SYL-43")
@pytest.mark.req("SYL-44")
@pytest.mark.parametrize(("type", "before", "after"), SESSION_MESSAGES)
async def test_a_message_about_a_session_that_is_repeated_with_its_key_acts_once(
    desk: Desk, type: str, before: str, after: str
) -> None:
    session = (await desk.new()).id
    if before == "suspended":
        await desk.sessions.act(session, SessionAction.SUSPEND, by=desk.me)
    first = await desk.guide.send(desk.message(type, {}, session_id=session), by=desk.me, key="a")
    assert (first.status, first.processed_at) == ("processed", desk.clock.now())
    assert await desk.guide.send(desk.message(type, {}, session_id=session), by=desk.me, key="a") == first
    assert (await desk.sessions.get(session, by=desk.me)).state == after
    assert await desk.written() == 1


@pytest.mark.req("SYL-43")
async def test_a_repeated_message_does_not_undo_what_came_after_it(desk: Desk) -> None:
    session = (await desk.new()).id
    suspend = desk.message("SESSION_SUSPEND", {}, session_id=session)
    await desk.guide.send(suspend, by=desk.me, key="a")
    await desk.sessions.act(session, SessionAction.RESUME, by=desk.me)
    await desk.guide.send(suspend, by=desk.me, key="a")
    assert (await desk.sessions.get(session, by=desk.me)).state == "active"


@pytest.mark.req("SYL-43")
@pytest.mark.parametrize("name", ["", "billing"])
async def test_a_session_is_created_once_although_the_new_one_has_the_focus(desk: Desk, name: str) -> None:
    await desk.new()
    for _ in range(2):
        await desk.guide.send(desk.message("SESSION_CREATE", {"name": name}), by=desk.me, key="a")
    assert len(await desk.sessions.list(by=desk.me)) == 2
    await desk.guide.send(desk.message("SESSION_CREATE", {"name": f"{name}2"}), by=desk.me, key="b")
    assert len(await desk.sessions.list(by=desk.me)) == 3


@pytest.mark.req("SYL-43")
async def test_a_message_whose_process_died_before_it_acted_is_carried_out_by_its_repetition(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = (await desk.new()).id
    suspend = desk.message("SESSION_SUSPEND", {}, session_id=session)

    async def die(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(SessionManager, "act", die)
        with pytest.raises(KeyboardInterrupt):
            await desk.guide.send(suspend, by=desk.me, key="a")
    assert (await desk.sessions.get(session, by=desk.me)).state == "active"
    await desk.guide.send(suspend, by=desk.me, key="a")
    assert (await desk.sessions.get(session, by=desk.me)).state == "suspended"
    assert await desk.written() == 1


@pytest.mark.req("SYL-44")
async def test_a_message_that_the_state_of_its_session_does_not_allow_is_not_written(desk: Desk) -> None:
    session = (await desk.new()).id
    with pytest.raises(IllegalState, match="active"):
        await desk.guide.send(desk.message("SESSION_RESUME", {}, session_id=session), by=desk.me)
    assert await desk.written() == 0
