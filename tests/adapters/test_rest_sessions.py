"""Sessions over REST: states, focus, limits, owners and concurrent writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import open_conversations
from clew.clock import ManualClock
from clew.errors import IllegalState
from clew.team.sessions.session import Session, SessionAction, SessionConfig, SessionStatus
from clew.team.sessions.session_manager import SessionManager
from clew.trail.store import Trail
from tests.conversations import AGENT, define
from tests.servers import Served, serve

ADA = Principal(owner_id="ada", agent_id="runner")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve(tmp_path) as running:
        await define(running.trail, ADA)
        yield running


@pytest.fixture
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served.client("ada") as client:
        yield client


async def begin(http: httpx.AsyncClient, name: str = "") -> str:
    response = await http.post("/sessions", json={"name": name})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


@pytest.mark.req("SYL-14")
@pytest.mark.req("SYL-05")
async def test_a_message_goes_to_the_focused_session_and_a_suspended_one_refuses_it(http: httpx.AsyncClient) -> None:
    first, second = await begin(http, "first"), await begin(http, "second")
    body = {"message": "hello", "agent": AGENT, "wait": 0}
    assert (await http.post("/chat", json=body)).json()["session"] == second
    assert (await http.post(f"/sessions/{first}/focus")).status_code == 200
    assert (await http.post("/chat", json=body)).json()["session"] == first
    assert (await http.post(f"/sessions/{first}/suspend")).json()["state"] == "suspended"
    refused = await http.post("/chat", json=body | {"session": first})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "illegal_state")
    assert "it is suspended" in refused.text
    assert "resume" in refused.text
    assert (await http.post("/chat", json=body)).json()["session"] not in (first, second), "nothing is focused"
    assert (await http.post(f"/sessions/{first}/resume")).json()["state"] == "active"
    done = await http.post(f"/sessions/{first}/close", json={"summary": "all of it"})
    assert done.json()["summary"] == "all of it"
    assert (await http.post(f"/sessions/{first}/resume")).status_code == 409
    assert (await http.get(f"/sessions/{first}")).json()["state"] == "completed"
    listed = (await http.get("/sessions", params={"state": "completed"})).json()["items"]
    assert [each["id"] for each in listed] == [first]


async def test_sessions_of_another_owner_or_another_user_are_out_of_reach(
    served: Served, http: httpx.AsyncClient
) -> None:
    mine = await begin(http, "mine")
    async with served.client("bob") as bob:
        assert (await bob.get(f"/sessions/{mine}")).status_code == 404
        assert (await bob.post(f"/sessions/{mine}/suspend")).status_code == 404
        assert (await bob.get("/sessions")).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "x" * 101}, 422),
        ({"name": 3}, 422),
        ({"config": {"session_timeout": -1}}, 422),
        ({"config": {"surprise": 1}}, 422),
        ({"colour": "blue"}, 422),
    ],
)
async def test_a_session_that_cannot_be_is_refused(http: httpx.AsyncClient, body: object, status: int) -> None:
    assert (await http.post("/sessions", json=body)).status_code == status
    assert (await http.get("/sessions")).json()["items"] == []


async def test_an_emitter_cannot_choose_the_id_of_a_record_by_naming_a_session(served: Served) -> None:
    wanted = "0e6dcb5e-4a52-5a80-8f0d-29f3a07c0a5e"
    message = {"message": "hi", "content": "hi"}
    body = {"title": "m", "schema_name": "user.message.v1", "context": message, "tags": [f"session:{wanted}"]}
    async with served.client("ada", frozenset({"emitter"})) as emitter:
        assert (await emitter.post("/breadcrumbs", json=body)).status_code == 201
        assert (await emitter.post(f"/sessions/{wanted}/suspend")).status_code == 200
    async with served.client("ada") as curator:
        assert (await curator.get(f"/breadcrumbs/{wanted}/full")).status_code == 404
        assert (await curator.get(f"/sessions/{wanted}")).json()["state"] == "suspended"


async def test_one_of_many_concurrent_sessions_with_one_name_is_created_and_focus_never_fails(
    http: httpx.AsyncClient,
) -> None:
    made = await asyncio.gather(*(http.post("/sessions", json={"name": "race"}) for _ in range(8)))
    assert sorted(each.status_code for each in made) == [201, *[409] * 7]
    others = await asyncio.gather(*(http.post("/sessions", json={"name": str(number)}) for number in range(8)))
    assert {each.status_code for each in others} == {201}
    items = (await http.get("/sessions")).json()["items"]
    assert sum(each["is_focused"] for each in items) == 1


async def test_a_retry_with_the_same_key_stays_in_its_session(http: httpx.AsyncClient) -> None:
    body, key = {"message": "hello", "agent": AGENT, "wait": 0}, {"Idempotency-Key": "once"}
    first = (await http.post("/chat", json=body, headers=key)).json()
    await begin(http, "another")
    again = await http.post("/chat", json=body, headers=key)
    assert (again.status_code, again.json()["message_id"]) == (200, first["message_id"])


async def test_a_session_without_a_name_is_called_by_its_first_message(http: httpx.AsyncClient) -> None:
    session = await begin(http)
    await http.post("/chat", json={"message": "mend the login", "agent": AGENT, "wait": 0})
    (found,) = (await http.get("/sessions")).json()["items"]
    assert (found["id"], found["title"]) == (session, "mend the login")


@pytest.fixture
async def manager(trail: Trail, clock: ManualClock) -> SessionManager:
    return SessionManager(trail, await open_conversations(trail, clock, by=ADA), clock)


async def test_an_idle_session_is_suspended_for_all_who_look_and_can_be_resumed(
    manager: SessionManager, clock: ManualClock
) -> None:
    session = await manager.create("idle", by=ADA, config=SessionConfig(auto_suspend_after=60))
    clock.advance(seconds=61)
    assert await manager.focused(by=ADA) is None
    found = await asyncio.gather(*(manager.get(session.id, by=ADA) for _ in range(6)))
    assert {(each.state, each.reason) for each in found} == {("suspended", "no message came for 60 s")}
    assert [each.state for each in await manager.list(by=ADA)] == ["suspended"]
    assert (await manager.switch(session.id, by=ADA)).state == "active"
    assert await manager.focused(by=ADA) is not None


async def test_a_name_can_be_used_again_and_means_the_open_session(manager: SessionManager) -> None:
    first = await manager.create("work", by=ADA)
    await manager.act(first.id, SessionAction.CLOSE, by=ADA)
    second = await manager.create("work", by=ADA)
    assert await manager.find("work", by=ADA) == second.id
    await manager.act(second.id, SessionAction.CLOSE, by=ADA)
    assert await manager.find("work", by=ADA) == second.id
    assert await manager.find(first.id, by=ADA) == first.id


async def test_the_state_is_filtered_before_the_list_is_cut(manager: SessionManager) -> None:
    first = await manager.create("first", by=ADA)
    for _ in range(3):
        made = await manager.create(by=ADA)
        await manager.act(made.id, SessionAction.CLOSE, by=ADA)
    assert [each.id for each in await manager.list(by=ADA, state=SessionStatus.ACTIVE, limit=2)] == [first.id]


async def test_many_who_close_a_session_at_once_close_it_once(manager: SessionManager) -> None:
    session = await manager.create("busy", by=ADA)
    ends = [manager.act(session.id, SessionAction.CLOSE, by=ADA) for _ in range(6)]
    done = await asyncio.gather(*ends, return_exceptions=True)
    assert sum(isinstance(each, Session) for each in done) == 1
    assert sum(isinstance(each, IllegalState) for each in done) == 5


@pytest.mark.req("SYL-08")
async def test_the_context_of_a_session_is_changed_and_read_with_its_snapshot(http: httpx.AsyncClient) -> None:
    session = await begin(http, "work")
    changed = await http.patch(f"/sessions/{session}/context", json={"task": "kettles", "next": ["boil"]})
    assert changed.json()["context"] == {"current_task": "kettles", "next_steps": ["boil"]}
    assert (await http.patch(f"/sessions/{session}/context", json={"colour": "blue"})).status_code == 422
    assert (await http.patch(f"/sessions/{session}/context", json={"task": "x" * 2_001})).status_code == 413
    await http.post("/chat", json={"message": "hello", "agent": AGENT, "wait": 0})
    await http.post(f"/sessions/{session}/suspend")
    refused = await http.patch(f"/sessions/{session}/context", json={"task": "pots"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "illegal_state")
    found = (await http.get(f"/sessions/{session}/detail")).json()
    assert found["snapshot"]["archivalist_state"]["resume_state"]["next_steps"] == ["boil"]
    assert len(found["snapshot"]["guide_state"]["pending_requests"]) == 1
    assert (found["stats"]["messages"], found["stats"]["pending"]) == (1, 1)
    assert (await http.post(f"/sessions/{session}/resume")).json()["context"]["current_task"] == "kettles"
    closed = (await http.post("/sessions/close")).json()["items"]
    assert [each["id"] for each in closed] == [session]


@pytest.mark.req("SYL-06")
async def test_a_token_of_another_session_does_not_read_private_parts(served: Served, http: httpx.AsyncClient) -> None:
    session = await begin(http, "work")
    async with served.client("ada", session="elsewhere") as other:
        for path in ("detail", "entries"):
            assert (await other.get(f"/sessions/{session}/{path}")).status_code == 403
        assert (await other.patch(f"/sessions/{session}/context", json={"task": "x"})).status_code == 403
    async with served.client("bob") as bob:
        assert (await bob.get(f"/sessions/{session}/detail")).status_code == 404
