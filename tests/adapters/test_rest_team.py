"""The team over REST: plans, tasks and messages. Nobody works here; the state follows from the messages alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import open_conversations
from clew.clock import SystemClock
from clew.config import Config
from clew.team.guide import build_message
from clew.team.messages.message import message_draft
from clew.team.pipelines import TeamPipelines
from clew.team.team import Team
from clew.trail.bootstrap import bootstrap
from tests.servers import Served, serve

ME = Principal(owner_id="ada", agent_id="tester")
PLAN = {"nodes": [{"id": "api", "prompt": "Limit requests", "files": ["api.py"]}]}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    opened: list[Team] = []

    async def get() -> Team:
        return opened[0]

    async with serve(tmp_path, config=Config(owner="ada"), team=get) as running:
        await bootstrap(running.trail, ME)
        clock = SystemClock()
        conversations = await open_conversations(running.trail, clock, by=ME)
        opened.append(Team(running.trail, conversations, clock, lambda pipeline, node: (), me=ME))
        yield running


@pytest.fixture
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served.client("ada") as client:
        yield client


async def tell(served: Served, session: str, type: str, payload: dict[str, Any], source: str) -> None:
    """Play the part of a member of the team, or of the runtime."""
    message = build_message(type, payload, source=source, session_id=session, clock=SystemClock())
    stamped = msgspec.structs.replace(message, id=SystemClock().new_id())
    await served.trail.records.create(message_draft(stamped), by=ME)


async def begin(http: httpx.AsyncClient, served: Served) -> str:
    made = await http.post("/plans", json={"request": "add limits", "name": "limits", "budget": 1_000_000})
    assert made.status_code == 201, made.text
    session = str(made.json()["id"])
    opened = {"call": "main/open/1", "tool": "team-open", "status": "success"}
    output = {"branch": "clew/limits", "folder": "x", "base_commit": "b0", "head": "b0", "notes": []}
    await tell(served, session, "CALL_RESULT", {**opened, "output": output}, "runtime")
    await tell(served, session, "PLAN_RESPONSE", {"plan": PLAN}, "architect")
    return session


@pytest.mark.req("SYL-40")
async def test_a_plan_is_started_read_approved_and_stopped(served: Served, http: httpx.AsyncClient) -> None:
    session = await begin(http, served)
    found = (await http.get(f"/plans/{session}")).json()
    assert (found["phase"], found["waits_for_user"]) == ("planning", True)
    assert [each["id"] for each in found["plan"]["nodes"]] == ["api"]
    assert found["single"]["agents"] == 1
    approved = await http.post(f"/plans/{session}/approve")
    assert (approved.status_code, approved.json()["type"]) == (200, "PLAN_APPROVED")
    again = await http.post(f"/plans/{session}/modify", json={"text": "smaller"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "illegal_state")
    assert "modify the plan" in again.text
    await tell(served, session, "DAG_EXECUTE", {"plan": found["plan"]}, "architect")
    assert (await http.get(f"/plans/{session}")).json()["nodes"] == {"api": "running"}
    tasks = (await http.get(f"/tasks/{session}")).json()["items"]
    assert [(each["id"], each["state"]) for each in tasks] == [("api.1", "created")]
    said = await http.post(f"/tasks/{session}/1", json={"action": "query", "text": "how far?"})
    assert said.json()["payload"] == {"pipeline": "api.1", "text": "how far?"}, said.text
    assert (await http.post(f"/tasks/{session}/nine", json={"action": "query", "text": "?"})).status_code == 404
    assert (await http.post(f"/tasks/{session}/1", json={"action": "dance"})).status_code == 422
    stopped = await http.post(f"/plans/{session}/interrupt", json={"kind": "stop", "text": "enough"})
    assert stopped.status_code == 200
    types = [each["type"] for each in (await http.get(f"/messages/{session}")).json()["items"]]
    assert types[0] == "PLAN_REQUEST"
    assert {"PLAN_APPROVED", "USER_TASK_QUERY", "USER_INTERRUPT"} <= set(types)
    assert (await http.post(f"/plans/{session}/merge")).status_code == 409


@pytest.mark.req("SYL-50")
@pytest.mark.req("SYL-52")
async def test_a_task_has_a_channel_is_cancelled_and_has_a_result(served: Served, http: httpx.AsyncClient) -> None:
    session = await begin(http, served)
    await http.post(f"/plans/{session}/approve")
    plan = (await http.get(f"/plans/{session}")).json()["plan"]
    await tell(served, session, "DAG_EXECUTE", {"plan": plan}, "architect")
    assert [each["id"] for each in (await http.get("/tasks")).json()["items"]] == ["api.1"]
    feedback = {"passed": False, "pipeline": "api.1", "note": "line 3"}
    await tell(served, session, "INSPECTOR_FEEDBACK", feedback, "inspector")
    channel = (await http.get(f"/tasks/{session}/1/channel")).json()
    assert (channel["is_closed"], [each["payload"]["note"] for each in channel["feedback"]]) == (False, ["line 3"])
    early = await http.get(f"/tasks/{session}/1/result")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "illegal_state")
    pipelines = TeamPipelines(await team_of(served))
    async with asyncio.TaskGroup() as waiting:
        waits = [waiting.create_task(pipelines.wait(session, "1", by=ME, seconds=60)) for _ in range(3)]
        assert (await http.post(f"/tasks/{session}/api/cancel")).status_code == 200
    assert {each.result().reason for each in waits} == {"cancelled by the user"}
    result = (await http.get(f"/tasks/{session}/1/result")).json()
    assert (result["pipeline_id"], result["success"], result["loops_used"]) == ("api.1", False, 0)
    assert {"engineer_result", "inspector_result", "tester_result", "modified_files", "created_files"} <= set(result)
    assert result["duration"] >= 0
    assert (await http.get(f"/tasks/{session}/1/channel")).json()["is_closed"]
    late = await http.post(f"/tasks/{session}/1", json={"action": "prompt", "text": "more"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "illegal_state")
    assert (await http.get("/tasks")).json()["items"] == []
    by_dag = await pipelines.get_by_dag(session, plan["id"], by=ME)
    assert (
        [each.id for each in by_dag]
        == ["api.1"]
        == [each.id for each in await pipelines.get_by_session(session, by=ME)]
    )


async def team_of(served: Served) -> Team:
    clock = SystemClock()
    conversations = await open_conversations(served.trail, clock, by=ME)
    return Team(served.trail, conversations, clock, lambda pipeline, node: (), me=ME)


async def test_roles_and_owners_are_checked(served: Served, http: httpx.AsyncClient) -> None:
    session = await begin(http, served)
    async with served.client("ada", frozenset({"subscriber"})) as reader:
        assert (await reader.get(f"/plans/{session}")).status_code == 200
        assert (await reader.post(f"/plans/{session}/approve")).status_code == 403
    async with served.client("ada", frozenset({"emitter"})) as emitter:
        assert (await emitter.post(f"/plans/{session}/merge")).status_code == 403
    async with served.client("bob") as bob:
        assert (await bob.get(f"/plans/{session}")).status_code == 403
        assert (await bob.get("/plans")).status_code == 403
    assert (await http.get("/plans/nothing")).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"request": ""},
        {"request": "x", "budget": -1},
        {"request": "x", "max_agents": 0},
        {"request": "x", "why": 1},
    ],
)
async def test_a_request_that_cannot_be_is_refused(http: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await http.post("/plans", json=body)).status_code == 422
    assert (await http.get("/sessions")).json()["items"] == []


async def test_a_server_without_a_team_says_how_to_get_one(tmp_path: Path) -> None:
    async with serve(tmp_path, config=Config(owner="ada")) as running, running.client("ada") as http:
        answer = await http.get("/plans")
        assert answer.status_code == 404
        assert "clew up" in answer.text
