"""Permissions over REST with a running runtime: which messages may use a permission, and which answers are accepted or
refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import ROLES, Principal
from clew.clock import SystemClock
from clew.trail.model.selector import Selector
from tests.agents.payments import PAYING, Bank, ask_for, asked
from tests.agents.runtimes import Running
from tests.agents.whole_runs import CLERK, hire
from tests.servers import PATIENCE, Served, serve

ADA = Principal(owner_id="ada", agent_id="runner")
EMITTER = frozenset({"emitter"})
TELLER, CASHIER, PORTER = "teller", "cashier", "porter"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve(tmp_path) as running:
        yield running


@pytest.fixture
def bank(served: Served) -> Bank:
    return Bank(served.trail, SystemClock(), ADA)


def client(served: Served, name: str, roles: frozenset[str] = ROLES) -> httpx.AsyncClient:
    token = served.keys.issue(Principal(owner_id="ada", agent_id=name, roles=roles)).token
    return httpx.AsyncClient(
        verify=False, base_url=served.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
    )


@asynccontextmanager
async def open_bank(served: Served, bank: Bank) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    """A runtime with agents that can pay, one of them started without a context, and a curator who talks to them."""
    async with bank.open() as run, client(served, "ann") as http:
        for name in (CLERK, TELLER, CASHIER):
            await hire(run, name)
        selector = {"schema_name": run.flow.message, "all_tags": [f"consumer:{PORTER}"], "role": "trigger"}
        await run.define(run.flow.agent, agent_id=PORTER, subscriptions={"selectors": [selector]})
        yield run, http


async def say(http: httpx.AsyncClient, text: str = "pay", **more: Any) -> dict[str, Any]:
    response = await http.post("/chat", json={"message": text, "agent": CLERK, "wait": 50, **more})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def answer(http: httpx.AsyncClient, request_id: str, choice: str, **more: str) -> int:
    return (await http.post(f"/permissions/{request_id}", json={"answer": choice, **more})).status_code


async def allow_for_session(run: Running, http: httpx.AsyncClient) -> dict[str, Any]:
    """A run whose tool a curator has allowed for its session, once it is over."""
    waiting = await say(http)
    assert await answer(http, waiting["permission"], "session", question=waiting["asked"]["id"]) == 204
    await run.until(Selector(schema_name=run.flow.answer))
    return waiting


def message(agent: str, session: str, *tags: str) -> dict[str, Any]:
    return {
        "title": "A message",
        "schema_name": "user.message.v1",
        "tags": [f"consumer:{agent}", f"session:{session}", *tags],
        "context": {"message": "pay", "content": "pay"},
    }


@pytest.mark.parametrize("agent", [TELLER, PORTER])
@pytest.mark.parametrize(
    "tags", [(), ("run:{run}",), ("called:{run}", "caller:clerk"), ("trigger:{run}", "root:{run}")]
)
async def test_a_permission_for_a_session_does_not_apply_to_messages_of_others(
    served: Served, bank: Bank, agent: str, tags: tuple[str, ...]
) -> None:
    async with open_bank(served, bank) as (run, http), client(served, "mallory", EMITTER) as writer:
        first = await allow_for_session(run, http)
        refused = await writer.post("/chat", json={"message": "pay", "agent": agent, "session": first["session"]})
        assert refused.status_code == 403
        forged = message(agent, first["session"], *(tag.format(run=first["run"]) for tag in tags))
        assert (await writer.post("/breadcrumbs", json=forged)).status_code == 201
        question = await asked(run, 2)
        assert question.session == first["session"]
    assert len(bank.paid) == 1


async def test_a_permission_for_a_session_applies_to_its_starter_and_to_its_giver(served: Served, bank: Bank) -> None:
    async with open_bank(served, bank) as (run, http), client(served, "eve", EMITTER) as writer:
        assert (await writer.post("/breadcrumbs", json=message(CLERK, "s1"))).status_code == 201
        question = await asked(run)
        assert await answer(http, question.context["request_id"], "session") == 204
        await run.until(Selector(schema_name=run.flow.answer))
        assert (await writer.post("/breadcrumbs", json=message(TELLER, "s1"))).status_code == 201
        await run.until(Selector(schema_name=run.flow.answer), 2)
        assert (await say(http, session="s1", agent=CASHIER))["status"] == "done"
        assert len(await run.written(None, run.flow.permission_request)) == 1
    assert len(bank.paid) == 3


async def test_one_of_several_concurrent_answers_is_accepted_and_different_ones_are_refused(
    served: Served, bank: Bank
) -> None:
    async with open_bank(served, bank) as (run, http):
        for at in range(1, 5):
            waiting = await say(http)
            choices = ["deny", "once", "deny", "once"]
            codes = await asyncio.gather(*(answer(http, waiting["permission"], each) for each in choices))
            accepted = {choice for choice, code in zip(choices, codes, strict=True) if code == 204}
            assert len(accepted) == 1
            assert sorted(codes) == [204, 204, 409, 409]
            await run.until(Selector(schema_name=run.flow.answer), at)
            assert len(await run.written(waiting["run"], run.flow.permission_answer)) == 1


async def test_an_answer_to_a_request_that_has_a_response_is_refused_with_the_reason(
    served: Served, bank: Bank
) -> None:
    async with open_bank(served, bank) as (run, http):
        await ask_for(run, 3)
        await asked(run)
        done = {"request_id": "r1", "tool": "pay", "status": "success", "output": "paid elsewhere"}
        record = {"title": "x", "schema_name": "tool.response.v1", "tags": ["request:r1"], "context": done}
        assert (await http.post("/breadcrumbs", json=record)).status_code == 201
        late = await http.post("/permissions/r1", json={"answer": "once"})
        assert late.status_code == 409
        assert "a response to request r1 exists already" in late.json()["error"]["message"]
        assert await run.written(None, run.flow.permission_answer) == []
    assert bank.paid == []


async def test_a_second_request_of_an_id_leaves_the_question_about_the_first_open(served: Served, bank: Bank) -> None:
    async with open_bank(served, bank) as (run, http):
        await ask_for(run, 3)
        await asked(run)
        second = await ask_for(run, 9_000)
        (refused,) = await run.until(Selector(schema_name=run.flow.response))
        assert "another request has the same id" in refused.context["error"]
        assert refused.context["request_id"] == second.id
        assert await answer(http, "r1", "once") == 204
        await run.until(Selector(schema_name=run.flow.response), 2)
    assert bank.amounts == [3]


async def test_a_question_that_was_asked_anew_can_be_answered_after_an_answer_that_names_none(
    served: Served, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bank(served, bank) as (run, http):
        request = await ask_for(run, 3)
        await asked(run)
        patched = {"context": {**request.context, "input": {"amount": 4}}}
        changed = await http.patch(f"/breadcrumbs/{request.id}", json=patched, headers={"If-Match": '"1"'})
        assert changed.status_code == 200, changed.text
        question = await asked(run, 2)
        raw = {"request_id": "r1", "answer": "once"}
        record = {"title": "x", "schema_name": "permission.answer.v1", "tags": ["request:r1"], "context": raw}
        assert (await http.post("/breadcrumbs", json=record)).status_code == 201
        assert await answer(http, "r1", "once") == 422
        assert await answer(http, "r1", "once", question=question.id) == 204
        (response,) = await run.until(Selector(schema_name=run.flow.response))
        assert response.context["status"] == "success"
    assert bank.amounts == [4]
    assert "to r1 is ignored" in caplog.text


async def test_a_run_whose_question_was_deleted_goes_on_without_the_tool(served: Served, bank: Bank) -> None:
    script = [PAYING[0], {"expect": "the question for permission was deleted", "say": "Then not."}]
    async with bank.open(script) as run, client(served, "ann") as http:
        await hire(run)
        waiting = await say(http)
        place = f"/breadcrumbs/{waiting['asked']['id']}"
        assert (await http.delete(place)).status_code in (200, 204)
        (said,) = await run.until(Selector(schema_name=run.flow.answer))
        assert said.context["message"] == "Then not."
        assert await answer(http, waiting["permission"], "once") == 404
    assert bank.paid == []
