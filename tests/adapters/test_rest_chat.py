"""Conversations over REST: an answer at once or as a stream, sessions, cancelling, permissions; and whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.adapters.rest import sse
from clew.agents.conversations.conversation import DEFAULT_AGENT, MAX_MESSAGE
from clew.config import AgentConfig, Config
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.work.handlers import Worker, handles
from tests.adapters.test_rest_stream import Reader
from tests.conversations import AGENT, PATIENCE, Stage, define, open_stage
from tests.servers import Served, serve

ADA = Principal(owner_id="ada", agent_id="runner")
BOB = Principal(owner_id="bob", agent_id="runner")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve(tmp_path) as running:
        await define(running.trail, ADA)
        yield running


@pytest.fixture
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served.client("ada") as client:
        yield client


async def say(http: httpx.AsyncClient, message: str = "hello", **more: Any) -> dict[str, Any]:
    response = await http.post("/chat", json={"message": message, "agent": AGENT} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@asynccontextmanager
async def streaming(http: httpx.AsyncClient, message: str, **headers: str) -> AsyncIterator[Reader]:
    body = {"message": message, "agent": AGENT, "stream": True}
    async with http.stream("POST", "/chat", json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Reader(response)


async def ask_first(stage: Stage, message: Breadcrumb) -> None:
    """A tool that needs permission, and reports the result."""
    await stage.ask("shell", {"command": "ls"}, request=f"p-{message.id}")
    answer = await stage.wait_for("permission.answer.v1")
    await stage.answer(f"it said {answer.context['answer']}")


async def until_cancelled(stage: Stage, message: Breadcrumb) -> None:
    await stage.say("I begin")
    await stage.wait_for("run.cancel.v1")
    await stage.answer("", status="cancelled", reason="cancelled")


@pytest.mark.req("RCR-40")
async def test_a_message_is_answered_with_the_ids_of_its_records(served: Served, http: httpx.AsyncClient) -> None:
    async with open_stage(served.trail, ADA):
        answer = await say(http, "hello you")
    assert (answer["status"], answer["text"], answer["agent"]) == ("done", "hello you", AGENT)
    message = (await http.get(f"/breadcrumbs/{answer['message_id']}")).json()
    assert f"session:{answer['session']}" in message["tags"]
    said = (await http.get(f"/breadcrumbs/{answer['answer_id']}")).json()
    assert {f"session:{answer['session']}", f"run:{answer['run']}"} <= set(said["tags"])


async def test_a_message_in_a_known_session_goes_on_with_it(served: Served, http: httpx.AsyncClient) -> None:
    async with open_stage(served.trail, ADA):
        first = await say(http, "one")
        second = await say(http, "two", session=first["session"])
    assert second["session"] == first["session"]
    turns = (await http.get(f"/sessions/{first['session']}")).json()["items"]
    assert [turn["text"] for turn in turns] == ["one", "one", "two", "two"]
    sessions = (await http.get("/sessions")).json()["items"]
    assert [(each["id"], each["title"]) for each in sessions] == [(first["session"], "one")]


@pytest.mark.req("RCR-40")
async def test_a_stream_brings_the_events_of_the_run_and_ends_with_the_answer(
    served: Served, http: httpx.AsyncClient
) -> None:
    async with open_stage(served.trail, ADA), streaming(http, "a b") as reader:
        assert (await reader.message())["event"] == "ping"
        seen = [await reader.event() for _ in range(4)]
        assert await reader.block() == b": that was all"
        assert await reader.block() is None
    schemas = [each["data"]["schema_name"] for each in seen]
    assert schemas == ["user.message.v1", "agent.delta.v1", "agent.delta.v1", "agent.response.v1"]
    assert [each["data"]["context"].get("text") for each in seen[1:3]] == ["a", "b"]
    steps = [each["data"]["step"] for each in seen]
    assert [step and (step["type"], step["text"]) for step in steps] == [
        None,
        ("text", "a"),
        ("text", "b"),
        ("answer", "a b"),
    ]


async def test_the_stream_of_a_run_that_was_given_up_says_so_and_ends(
    served: Served, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.1)

    async def fail(event: Any, deps: object) -> None:
        raise RuntimeError("the runner broke")

    once = RetryPolicy(attempts=1)
    handler = handles(Selector(schema_name="user.message.v1"), name=f"agent/{AGENT}", retry=once)(fail)
    worker = Worker(served.trail, [handler], by=ADA, worker_id="w")
    await worker.register()
    running = asyncio.create_task(worker.run())
    async with streaming(http, "hello") as reader:
        while (message := await reader.message())["event"] != "failed":
            pass
        assert await reader.block() == b": that was all"
        assert await reader.block() is None
    worker.stop()
    await running
    assert message["data"]["step"]["type"] == "failed"
    assert "the runner broke" in message["data"]["step"]["reason"]


async def test_a_stream_that_broke_off_is_resumed_with_its_key_and_last_event_and_nothing_is_said_twice(
    served: Served, http: httpx.AsyncClient
) -> None:
    going = asyncio.Event()

    async def play(stage: Stage, message: Breadcrumb) -> None:
        await stage.say("first")
        await going.wait()
        await stage.say("second", start=1)
        await stage.answer("first second")

    headers = {"Idempotency-Key": "k1"}
    async with open_stage(served.trail, ADA, play):
        async with streaming(http, "hello", **headers) as reader:
            while (seen := await reader.event())["data"]["schema_name"] != "agent.delta.v1":
                pass
        going.set()
        async with streaming(http, "hello", **headers, **{"Last-Event-ID": seen["id"]}) as reader:
            rest = [await reader.event() for _ in range(2)]
    assert [each["data"]["context"].get("text") for each in rest] == ["second", None]
    page = await served.trail.records.list(Selector(schema_name="user.message.v1"), by=ADA)
    assert len(page.items) == 1
    assert (await served.trail.records.list(Selector(schema_name="run.cancel.v1"), by=ADA)).items == ()


async def test_an_answer_that_takes_longer_is_reported_with_where_to_follow_it(
    served: Served, http: httpx.AsyncClient
) -> None:
    answer = await say(http, wait=0)
    assert (answer["status"], answer["answer_id"]) == ("running", None)
    async with open_stage(served.trail, ADA):
        pass  # a runtime that starts now handles only later events
    message = await served.trail.records.get(answer["message_id"], by=ADA)
    await Stage(served.trail, ADA, message).answer("late")
    where = {"session": answer["session"], "after": str(answer["cursor"])}
    async with http.stream("GET", "/events/stream", params=where) as response:
        reader = Reader(response)
        schemas = [(await reader.event())["data"]["schema_name"] for _ in range(2)]
    assert schemas == ["user.message.v1", "agent.response.v1"]


async def test_a_tool_that_waits_for_a_person_is_reported_and_goes_on_when_allowed(
    served: Served, http: httpx.AsyncClient
) -> None:
    async with open_stage(served.trail, ADA, ask_first):
        answer = await say(http)
        assert answer["status"] == "waiting"
        assert answer["asked"] == {
            "id": answer["asked"]["id"],
            "request_id": answer["permission"],
            "tool": "shell",
            "input": {"command": "ls"},
            "reason": "it writes",
            "pattern": "shell *",
            "choices": ["once", "session", "always", "deny"],
        }
        place = f"/permissions/{answer['permission']}"
        assert (await http.post(place, json={"answer": "perhaps"})).status_code == 422
        assert (await http.post(place, json={"answer": "session"})).status_code == 204
        assert (await http.post(place, json={"answer": "session"})).status_code == 204
        assert (await http.post(place, json={"answer": "deny"})).status_code == 409
        message = await served.trail.records.get(answer["message_id"], by=ADA)
        said = await Stage(served.trail, ADA, message).wait_for("agent.response.v1")
    assert said.context["message"] == "it said session"
    assert (await http.post("/permissions/none", json={"answer": "once"})).status_code == 404


async def test_a_run_can_be_cancelled_and_answers_that_it_was(served: Served, http: httpx.AsyncClient) -> None:
    async with open_stage(served.trail, ADA, until_cancelled):
        waiting = asyncio.create_task(say(http))
        async with asyncio.timeout(PATIENCE):
            while not (sessions := (await http.get("/sessions")).json()["items"]):
                pass
        cancelled = await http.post(f"/sessions/{sessions[0]['id']}/cancel", json={})
        answer = await asyncio.wait_for(waiting, PATIENCE)
        again = await http.post(f"/sessions/{sessions[0]['id']}/cancel")
    assert cancelled.json() == {"runs": [answer["run"]]}
    assert (answer["status"], again.json()) == ("cancelled", {"runs": []})
    assert (await http.post("/sessions/none/cancel", json={})).status_code == 404


async def test_a_caller_that_leaves_cancels_nothing(served: Served, http: httpx.AsyncClient) -> None:
    going = asyncio.Event()

    async def play(stage: Stage, message: Breadcrumb) -> None:
        await stage.say("begun")
        await going.wait()
        await stage.answer("done all the same")

    async with open_stage(served.trail, ADA, play):
        async with streaming(http, "hello") as reader:
            while (await reader.event())["data"]["schema_name"] != "agent.delta.v1":
                pass
        going.set()
        message = (await served.trail.records.list(Selector(schema_name="user.message.v1"), by=ADA)).items[0]
        said = await Stage(served.trail, ADA, message).wait_for("agent.response.v1")
    assert said.context["status"] == "done"


async def test_sessions_permissions_and_runs_of_another_owner_do_not_exist(
    served: Served, http: httpx.AsyncClient
) -> None:
    await define(served.trail, BOB)
    async with open_stage(served.trail, ADA, ask_first), served.client("bob") as other:
        answer = await say(http)
        session, permission = answer["session"], answer["permission"]
        assert (await other.get("/sessions")).json() == {"items": []}
        assert (await other.get(f"/sessions/{session}")).status_code == 404
        assert (await other.post(f"/sessions/{session}/cancel", json={})).status_code == 404
        assert (await other.post(f"/permissions/{permission}", json={"answer": "always"})).status_code == 404
        taken = await other.post("/chat", json={"message": "hi", "agent": AGENT, "session": session})
        assert taken.status_code == 404
        forged = {
            "title": "x",
            "schema_name": "permission.answer.v1",
            "context": {"request_id": permission, "answer": "always"},
            "tags": [f"session:{session}", f"request:{permission}", "permission:answered"],
        }
        assert (await other.post("/breadcrumbs", json=forged)).status_code == 201
        message = await served.trail.records.get(answer["message_id"], by=ADA)
        assert (await http.post(f"/permissions/{permission}", json={"answer": "deny"})).status_code == 204
        said = await Stage(served.trail, ADA, message).wait_for("agent.response.v1")
    assert said.context["message"] == "it said deny"


async def test_roles_decide_who_may_talk_look_and_allow(served: Served, http: httpx.AsyncClient) -> None:
    emitter, subscriber = frozenset({"emitter"}), frozenset({"subscriber"})
    async with open_stage(served.trail, ADA, ask_first):
        answer = await say(http)
        place = f"/permissions/{answer['permission']}"
        async with served.client("ada", subscriber) as reader, served.client("ada", emitter) as writer:
            assert (await reader.post("/chat", json={"message": "hi"})).status_code == 403
            assert (await reader.get("/sessions")).status_code == 200
            assert (await reader.post(place, json={"answer": "once"})).status_code == 403
            assert (await writer.post("/chat", json={"message": "hi"})).status_code == 403
            assert (await writer.get("/sessions")).status_code == 403
            forged = {"title": "x", "schema_name": "run.cancel.v1", "context": {"reason": "x"}}
            assert (await writer.post("/breadcrumbs", json=forged)).status_code == 403
        async with httpx.AsyncClient(verify=False, base_url=served.url) as nobody:
            assert (await nobody.post("/chat", json={"message": "hi"})).status_code == 401
        assert (await http.post(place, json={"answer": "once"})).status_code == 204


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"message": " "}, 422),
        ({"message": "x" * (MAX_MESSAGE + 1)}, 413),
        ({"message": "x", "session": "none"}, 404),
        ({"message": "x", "agent": "nobody"}, 404),
        ({"message": "x", "wait": -1}, 422),
        ({"message": "x", "wait": 1e9}, 422),
        ({"message": "x", "colour": "red"}, 422),
        ({}, 422),
    ],
)
async def test_an_invalid_message_is_refused_and_not_written(
    served: Served, http: httpx.AsyncClient, body: dict[str, Any], status: int
) -> None:
    response = await http.post("/chat", json={"agent": AGENT} | body)
    assert response.status_code == status, response.text
    assert response.json()["error"]["hint"]
    assert (await http.get("/sessions")).json() == {"items": []}


async def test_a_server_that_closes_tells_those_who_wait(tmp_path: Path) -> None:
    async with serve(tmp_path) as served, served.client("ada") as http:
        await define(served.trail, ADA)
        waiting = asyncio.create_task(say(http, wait=300))
        async with asyncio.timeout(PATIENCE):
            while not (await http.get("/sessions")).json()["items"]:
                pass
        served.app.closing.set()
        assert (await asyncio.wait_for(waiting, PATIENCE))["status"] == "running"


async def test_many_conversations_at_once_are_kept_apart(served: Served, http: httpx.AsyncClient) -> None:
    async with open_stage(served.trail, ADA):
        answers = await asyncio.gather(*(say(http, f"number {at}") for at in range(20)))
    assert [answer["text"] for answer in answers] == [f"number {at}" for at in range(20)]
    assert len({answer["session"] for answer in answers}) == 20


@pytest.mark.req("PLA-27")
async def test_a_message_that_names_no_agent_goes_to_the_one_of_the_settings(tmp_path: Path) -> None:
    async with serve(tmp_path, config=Config(agent=AgentConfig(name=AGENT))) as served:
        await define(served.trail, ADA)
        async with served.client("ada") as http, open_stage(served.trail, ADA):
            answer = (await http.post("/chat", json={"message": "hello"})).json()
    assert (answer["status"], answer["agent"]) == ("done", AGENT)


def test_the_shipped_agent_is_the_one_that_is_meant_where_none_is_named() -> None:
    names = [piece.context["agent_id"] for piece in read_pieces() if piece.schema_name == "agent.def.v1"]
    assert DEFAULT_AGENT in names
