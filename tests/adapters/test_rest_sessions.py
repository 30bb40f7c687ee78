"""Sessions over REST: states, focus, limits, whose they are, and writers at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import open_conversations
from clew.clock import ManualClock
from clew.team.sessions.session import SessionContext, SessionLimits
from clew.team.sessions.session_manager import SessionManager
from clew.trail.store import Trail
from tests.chatting import AGENT, define
from tests.serving import Served, serve

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
    done = await http.post(f"/sessions/{first}/complete", json={"summary": "all of it"})
    assert done.json()["context"]["summary"] == "all of it"
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
        ({"limits": {"session_timeout": -1}}, 422),
        ({"limits": {"surprise": 1}}, 422),
        ({"colour": "blue"}, 422),
    ],
)
async def test_a_session_that_cannot_be_is_refused(http: httpx.AsyncClient, body: object, status: int) -> None:
    assert (await http.post("/sessions", json=body)).status_code == status
    assert (await http.get("/sessions")).json()["items"] == []


@pytest.mark.req("SYL-03")
async def test_notes_of_many_writers_at_the_same_time_are_all_there(trail: Trail, clock: ManualClock) -> None:
    manager = SessionManager(trail, await open_conversations(trail, clock, by=ADA), clock)
    session = await manager.create("busy", by=ADA)

    def note(text: str) -> asyncio.Task[object]:
        def add(context: SessionContext) -> SessionContext:
            return msgspec.structs.replace(context, completed_steps=(*context.completed_steps, text))

        return asyncio.create_task(manager.update_context(session.id, add, by=ADA))

    await asyncio.gather(*(note(str(number)) for number in range(8)))
    found = await manager.get(session.id, by=ADA)
    assert sorted(found.context.completed_steps) == [str(number) for number in range(8)]


async def test_an_idle_session_is_suspended_when_it_is_looked_at(trail: Trail, clock: ManualClock) -> None:
    manager = SessionManager(trail, await open_conversations(trail, clock, by=ADA), clock)
    session = await manager.create("idle", by=ADA, limits=SessionLimits(auto_suspend_after=60))
    clock.advance(seconds=61)
    assert await manager.focused(by=ADA) is None
    found = await manager.get(session.id, by=ADA)
    assert (found.state, found.reason) == ("suspended", "no message came for 60 s")
