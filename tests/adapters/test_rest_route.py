"""POST /route: the same decision as `clew route`, with a cache that lasts as long as the server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.team.router import Router
from tests.servers import Served, serve

ANSWER = {"target": "librarian", "intent": "PATTERN", "subject": "caching", "time_scope": "", "confidence": 0.92}
QUESTION = "what is our caching strategy"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel([ScriptedTurn(say=json.dumps({"routes": [ANSWER]}))])


@pytest.fixture
async def served(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Served]:
    async with serve(tmp_path, router=Router(model)) as running:
        yield running


async def route(served: Served, message: str, owner: str = "ada", **more: Any) -> dict[str, Any]:
    async with served.client(owner) as http:
        response = await http.post("/route", json={"message": message} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.req("SYL-15", "SYL-16")
async def test_a_repeated_question_is_one_model_call(served: Served, model: ScriptedModel) -> None:
    first, second = [await route(served, QUESTION) for _ in range(2)]
    assert first.items() >= (ANSWER | {"decided_by": "model", "cached": False}).items()
    assert second == first | {"cached": True}
    assert len(model.requests) == 1


@pytest.mark.req("SYL-15")
async def test_the_cache_is_not_shared_between_owners(served: Served, model: ScriptedModel) -> None:
    for owner in ("ada", "bob"):
        assert (await route(served, QUESTION, owner))["cached"] is False
    assert len(model.requests) == 2


@pytest.mark.req("SYL-12", "SYL-15")
async def test_commands_and_certain_messages_make_no_model_call(served: Served, model: ScriptedModel) -> None:
    command = await route(served, "/session list")
    certain = await route(served, "tell task 3 to stop", talking_to="designer")
    assert (command["target"], command["decided_by"], command["confidence"]) == ("session", "command", 1.0)
    assert (certain["target"], certain["decided_by"]) == ("task", "classifier")
    assert model.requests == []


@pytest.mark.req("SYL-12")
async def test_without_a_model_a_follow_up_stays_and_the_rest_is_the_architects(tmp_path: Path) -> None:
    async with serve(tmp_path) as running:
        stays = await route(running, QUESTION, talking_to="tester")
        asks = await route(running, QUESTION)
    assert (stays["target"], stays["decided_by"]) == ("tester", "follow-up")
    assert (asks["target"], asks["decided_by"]) == ("architect", "default")
    assert "librarian" in asks["question"]


async def test_invalid_requests_are_refused_and_subscribers_may_not_spend_model_calls(served: Served) -> None:
    async with served.client() as http:
        for body in ({"message": ""}, {"message": "x", "talking_to": "cook"}, {"message": "x" * 100_001}):
            assert (await http.post("/route", json=body)).status_code == 422
    async with served.client(roles=frozenset({"subscriber"})) as http:
        assert (await http.post("/route", json={"message": "hello"})).status_code == 403
