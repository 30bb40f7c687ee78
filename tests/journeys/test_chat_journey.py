"""A conversation from its message to its receipts, through every interface, with running agents."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from clew.adapters.rest import build_app, open_keys, run_server
from clew.agents.conversations.conversation import open_conversations
from clew.agents.conversations.steps import Answered
from clew.app import App, open_app
from clew.config import read_config
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, read_script
from clew.trail.model.selector import Selector
from tests.adapters.test_rest_stream import Reader
from tests.servers import PATIENCE, give_key

SCRIPT = """
- user: what is in it
  say: I look.
  call: {read-file: {file_path: notes.txt}}
- expect: a blue kettle
  say: A blue kettle is in it.
- user: write it down
  call: {write-file: {file_path: out.txt, content: kettle}}
- say: Done as far as I may.
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    app: App
    http: httpx.AsyncClient
    folder: Path

    async def clew(self, *arguments: str) -> Any:
        """The JSON output of a command on the same folder."""
        environ = os.environ | {"CLEW_FOLDER": str(self.folder), "CLEW_EMBEDDER": "hash"}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "clew",
            *arguments,
            cwd=self.folder.parent,
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 0, err
        return msgspec.json.decode(out)

    async def say(self, message: str, **more: Any) -> dict[str, Any]:
        response = await self.http.post("/chat", json={"message": message} | more)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


@asynccontextmanager
async def serving(
    folder: Path, *, script: str | None = SCRIPT, model: ScriptedModel | None = None
) -> AsyncIterator[Place]:
    """A served folder whose agents run in this process, with a model, a scripted one or none."""
    (folder.parent / "notes.txt").write_text("a blue kettle\n")
    give_key(folder)
    config = read_config(folder, {"CLEW_EMBEDDER": "hash"})
    async with open_app(config) as app:
        models = open_models(config, {})
        if model is not None or script is not None:
            models = models.with_model("*", model or ScriptedModel(read_script(script or "")))
        runtime = await app.runtime(models)
        keys, stop = open_keys(folder, app.clock), asyncio.Event()
        door = build_app(
            app.trail, keys, app.hygiene, config=config, clock=app.clock, workspace=app.workspace, models=models
        )
        address: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        async with runtime.running():
            running = asyncio.create_task(
                run_server(door, "127.0.0.1", 0, ready=lambda *at: address.set_result(at), stop=stop)
            )
            host, port = await asyncio.wait_for(address, PATIENCE)
            headers = {"Authorization": f"Bearer {keys.issue(app.me).token}"}
            async with httpx.AsyncClient(
                verify=False, base_url=f"http://{host}:{port}", headers=headers, timeout=PATIENCE
            ) as http:
                yield Place(app=app, http=http, folder=folder)
            stop.set()
            await asyncio.wait_for(running, PATIENCE)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with serving(tmp_path / ".clew") as served:
        yield served


@pytest.mark.req("RCR-40")
async def test_a_message_over_rest_is_answered_by_an_agent_with_a_tool(place: Place) -> None:
    answer = await place.say("what is in it?")
    assert (answer["status"], answer["text"]) == ("done", "A blue kettle is in it.")
    page = await place.app.trail.records.list(
        Selector(session=answer["session"]), by=place.app.me, limit=100, oldest_first=True
    )
    wanted = {"user.message.v1", "agent.context.v1", "tool.request.v1", "tool.response.v1", "agent.response.v1"}
    assert [each.schema_name for each in page.items if each.schema_name in wanted] == [
        "user.message.v1",
        "agent.context.v1",
        *["tool.request.v1", "tool.response.v1"] * 3,
        "agent.response.v1",
    ]
    assert all(f"run:{answer['run']}" in each.tags for each in page.items)


@pytest.mark.req("RCR-40")
async def test_the_stream_of_a_message_holds_every_step_up_to_its_answer(place: Place) -> None:
    body = {"message": "what is in it?", "stream": True}
    async with place.http.stream("POST", "/chat", json=body) as response:
        reader, schemas = Reader(response), []
        while "agent.response.v1" not in schemas:
            schemas.append((await reader.event())["data"]["schema_name"])
        assert await reader.end() == b": that was all"
    assert schemas[:2] == ["user.message.v1", "agent.context.v1"]
    assert schemas.count("tool.request.v1") == 3
    assert "agent.delta.v1" in schemas


async def test_a_permission_is_asked_at_the_door_and_decides_whether_the_tool_runs(place: Place) -> None:
    denied = await place.say("write it down")
    assert denied["status"] == "waiting"
    assert (await place.http.post(f"/permissions/{denied['permission']}", json={"answer": "deny"})).status_code == 204
    await ended(place, denied)
    assert not (place.folder.parent / "out.txt").exists()
    allowed = await place.say("write it down", session=denied["session"])
    assert (await place.http.post(f"/permissions/{allowed['permission']}", json={"answer": "once"})).status_code == 204
    await ended(place, allowed)
    assert (place.folder.parent / "out.txt").read_text() == "kettle"


async def ended(place: Place, answer: dict[str, Any]) -> None:
    """Wait for the end of a run."""
    selector = Selector(schema_name="agent.response.v1", all_tags=(f"run:{answer['run']}",))
    async with asyncio.timeout(PATIENCE):
        async for event in place.app.trail.log.follow(0, by=place.app.me, selector=selector):
            if event.breadcrumb is not None:
                return


@pytest.mark.req("BEY-12")
async def test_a_context_is_explained_the_same_by_command_and_api(place: Place) -> None:
    answer = await place.say("what is in it?")
    by_message = (await place.http.get(f"/why/context/{answer['message_id']}")).json()
    by_context = (await place.http.get(f"/why/context/{by_message['id']}")).json()
    assert by_message == by_context == await place.clew("why", "context", answer["message_id"], "--json")
    assert by_message["receipt"]["items"][-1]["origin"] == "trigger"
    why = (await place.http.get(f"/why/context/{by_message['id']}/{answer['message_id']}")).json()
    assert why == await place.clew("why", "context", by_message["id"], answer["message_id"], "--json")
    assert why["verdict"] == "in"
    missing = await place.http.get(f"/why/context/{place.app.clock.new_id()}")
    assert missing.status_code == 404


@pytest.mark.req("SYL-117")
@pytest.mark.req("BEY-12")
async def test_model_usage_is_the_same_by_command_and_api(place: Place) -> None:
    answer = await place.say("what is in it?")
    report = (await place.http.get("/usage")).json()
    assert report == await place.clew("usage", "--json")
    assert (report["total"]["calls"], report["agents"]["assistant"]["hit_rate"]) == (2, 0.0)
    assert list(report["sessions"]) == [answer["session"]]
    assert report["total"]["input_tokens"] > 0
    other = (await place.http.get("/usage", params={"session": "none"})).json()
    assert (other["total"]["calls"], other["models"]) == (0, {})


async def test_a_command_and_a_server_work_on_one_trail_and_each_message_is_answered_once(place: Place) -> None:
    script = place.folder.parent / "script.yaml"
    script.write_text(SCRIPT)

    async def chat() -> None:
        environ = os.environ | {"CLEW_FOLDER": str(place.folder), "CLEW_EMBEDDER": "hash"}
        command = [sys.executable, "-m", "clew", "chat", "what is in it?", "--script", str(script)]
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=place.folder.parent,
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert (process.returncode, out) == (0, b"A blue kettle is in it.\n"), err

    await asyncio.gather(chat(), *(place.say("what is in it?") for _ in range(3)))
    counts = (await place.app.trail.upkeep.stats(by=place.app.me)).schemas
    assert (counts["user.message.v1"], counts["agent.response.v1"]) == (4, 4)


@pytest.mark.req("RCR-40")
async def test_a_runtime_without_a_model_leaves_the_steps_of_agents_to_the_one_that_has_one(tmp_path: Path) -> None:
    async with serving(tmp_path / ".clew", script=None) as place:
        models = open_models(place.app.config, {}).with_model("*", ScriptedModel(read_script(SCRIPT)))
        with_model = await place.app.runtime(models)
        async with with_model.running():
            for _ in range(4):
                assert await answer_to(place, "what is in it?") == ("done", "A blue kettle is in it.")
        status, text = await answer_to(place, "what is in it?")
        assert (status, "no model is configured" in text) == ("stopped", True)


async def answer_to(place: Place, text: str) -> tuple[str, str]:
    """The status and the text of the answer to a message on the trail, by any process."""
    app = place.app
    talks = await open_conversations(app.trail, app.clock, by=app.me)
    sent = await talks.send(text, by=app.me)
    async with asyncio.timeout(PATIENCE):
        *_, last = [step async for step in talks.follow(sent, by=app.me)]
    assert isinstance(last, Answered)
    return last.status, last.text


async def test_without_a_model_the_answer_says_how_to_add_one_and_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Kettles\n\nA kettle is mended with patience.\n")
    async with serving(tmp_path / ".clew", script=None) as place:
        answer = await place.say("how is a kettle mended")
        assert (answer["status"], answer["session"]) == ("without_model", None)
        assert "[models]" in answer["reason"]
        assert "README.md:1" in answer["text"]
        assert (await place.http.get("/sessions")).json() == {"items": []}


async def test_a_model_that_is_configured_and_cannot_be_used_is_an_error_and_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    (tmp_path / ".clew" / "config.toml").write_text('[models]\ndefault = "nowhere:x"\n')
    async with serving(tmp_path / ".clew", script=None) as place:
        response = await place.http.post("/chat", json={"message": "hello"})
        assert (response.status_code, response.json()["error"]["code"]) == (502, "model_error")
        assert (await place.http.get("/sessions")).json() == {"items": []}


@pytest.mark.req("SYL-115")
async def test_agents_are_listed_with_their_models_and_their_health(place: Place) -> None:
    (assistant,) = (
        each for each in (await place.http.get("/agents")).json()["items"] if each["agent_id"] == "assistant"
    )
    assert (assistant["model"], assistant["problem"]) == ("scripted:model", "")
    assert (assistant["is_healthy"], assistant["last_seen"] is not None) == (True, True)


async def test_a_context_can_be_looked_at_before_anything_is_sent(place: Place) -> None:
    await place.say("what is in it?")
    before = await place.app.trail.log.head()
    shown = await place.clew("context", "preview", "what was in it", "--json")
    assert await place.app.trail.log.head() == before
    assert shown["consumer_id"] == "assistant"
    assert shown["receipt"]["items"][-1]["origin"] == "trigger"
    assert "what was in it" in shown["formatted_context"]
    assert shown["token_estimate"] <= shown["budget"]
