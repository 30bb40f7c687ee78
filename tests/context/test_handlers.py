from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

import clew.context
from clew.context.definition import AgentDefinition
from clew.context.handlers import REQUESTS, context_handler, request_handler
from clew.context.receipts import explain, explain_item
from clew.context.requests import answer_request
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, Ttl
from clew.trail.model.selector import Selector
from clew.trail.work.handlers import Handler, Worker
from tests.context.conftest import Place, agent, handled_all


async def run(place: Place, handlers: Sequence[Handler]) -> None:
    """Let handlers do what there is to do."""
    worker = Worker(place.trail, handlers, by=place.me, worker_id="w")
    task = asyncio.create_task(worker.run())
    await handled_all(place, *(each.name for each in handlers))
    worker.stop()
    await task


async def register(place: Place, handlers: Sequence[Handler]) -> None:
    await Worker(place.trail, handlers, by=place.me, worker_id="w").register()


def handlers_of(place: Place, *agents: AgentDefinition) -> list[Handler]:
    """The handlers of these agents, and the one for requests."""
    own = [context_handler(place.builder, place.trail, place.flow, each, by=place.me) for each in agents]
    requests = request_handler(place.builder, place.trail, place.flow, by=place.me)
    return [*(each for each in own if each is not None), requests]


async def contexts(place: Place, *tags: str) -> Sequence[Breadcrumb]:
    selector = Selector(schema_name=place.flow.context, all_tags=tags)
    return (await place.trail.records.list(selector, by=place.me, oldest_first=True)).items


@pytest.mark.req("RCR-31")
@pytest.mark.parametrize("schema", ["note.v1", "weather.report.v7"])
async def test_any_schema_triggers_a_context_for_the_agent_that_wants_it(place: Place, schema: str) -> None:
    wanting = agent("reader", trigger={"schema_name": schema})
    handlers = handlers_of(place, wanting)
    assert [each.name for each in handlers] == ["context/reader", REQUESTS]
    await register(place, handlers)
    trigger = await place.write("rain is coming", schema_name=schema, tags=("session:s",))
    await run(place, handlers)
    (found,) = await contexts(place, "consumer:reader")
    assert found.context["trigger_event_id"] == trigger.id
    assert found.session == "s"
    assert "rain is coming" in found.context["formatted_context"]


@pytest.mark.req("RCR-31")
async def test_a_request_is_answered_with_the_tags_that_it_wants(place: Place) -> None:
    handlers = handlers_of(place)
    await register(place, handlers)
    notes = [await place.write(f"note {word}") for word in ("apples", "pears", "plums")]
    await place.write("red", schema_name="made.up.v3")
    context = {
        "consumer_id": "note-processor",
        "reply_tags": ["consumer:note-processor", "request:xyz"],
        "sources": [
            {"schema": "note.v1", "method": "recent", "limit": 2},
            {"schema": "made.up.v3", "method": "latest"},
            {"schema": "absent.v1", "method": "all"},
        ],
        "query": "plums",
        "hops": 0,
    }
    await place.write("", title="Request", schema_name=place.flow.context_request, context=context)
    await run(place, handlers)
    (found,) = await contexts(place, "request:xyz")
    assert {"agent:context", "consumer:note-processor"} <= set(found.tags)
    told = explain(found)
    assert {item.id for item in told.receipt.items} >= {notes[1].id, notes[2].id}
    assert notes[0].id not in {item.id for item in told.receipt.items}
    assert [each.source for each in told.receipt.missing] == ["absent.v1"]


@pytest.mark.req("RCR-31")
async def test_a_request_can_be_about_another_breadcrumb(place: Place) -> None:
    about = await place.write("plums are ripe")
    close = await place.write("plums are sweet")
    context = {"consumer_id": "a", "trigger_event_id": about.id, "sources": [{"schema": "note.v1", "method": "vector"}]}
    request = await place.write("", title="R", schema_name=place.flow.context_request, context=context)
    draft = await answer_request(place.builder, place.trail, request, by=place.me)
    assert draft.trigger.id == about.id
    assert close.id in {item.id for item in draft.receipt.items}


async def test_a_request_that_cannot_be_understood_is_refused_when_it_is_written(place: Place) -> None:
    for context in ({}, {"consumer_id": "a", "sources": [{"method": "all"}]}, {"consumer_id": "a", "source": []}):
        with pytest.raises(InvalidInput):
            await place.write("", title="R", schema_name=place.flow.context_request, context=context)


async def test_a_message_to_another_agent_is_passed_over(place: Place) -> None:
    handlers = handlers_of(place, agent("one", trigger={"schema_name": place.flow.message}))
    await register(place, handlers)
    await place.say("for two", tags=("consumer:two",))
    mine = await place.say("for one", tags=("consumer:one",))
    everyone = await place.say("for all")
    await run(place, handlers)
    found = await contexts(place, "consumer:one")
    assert [each.context["trigger_event_id"] for each in found] == [mine.id, everyone.id]


async def test_a_context_counts_as_a_read_of_what_is_read_so_often(place: Place) -> None:
    handlers = handlers_of(place, agent("one", trigger={"schema_name": place.flow.message}))
    await register(place, handlers)
    once = await place.write("grapes, only once", ttl=Ttl(kind="usage", max_reads=1))
    first, second = await place.say("grapes"), await place.say("grapes again")
    await run(place, handlers)
    found = {each.context["trigger_event_id"]: explain(each) for each in await contexts(place)}
    assert once.id in {item.id for item in found[first.id].receipt.items}
    assert once.id not in {item.id for item in found[second.id].receipt.items}


@pytest.mark.req("BEY-04")
async def test_a_context_explains_every_item_and_what_is_not_in_it(place: Place) -> None:
    shown = await place.write("grapes are sweet")
    big = await place.write("grapes " + " ".join(f"w{number}" for number in range(60)))
    absent = await place.write("quarterly invoices", schema_name="other.v1", link=False)
    trigger = await place.say("are grapes sweet?")
    sources = {"semantic": {"schemas": ["note.v1"]}, "tokens": 300, "shares": {"knowledge": 0.2}, "graph": {"hops": 0}}
    draft = await place.builder.build(trigger, agent(**sources), by=place.me)
    written = await place.trail.records.create(draft.as_draft(), by=place.me)
    assert explain_item(written, trigger.id).verdict == "in"
    found = {id: explain_item(written, id) for id in (shown.id, big.id, absent.id)}
    assert found[shown.id].verdict == "in"
    assert "close to the trigger" in found[shown.id].why
    assert found[big.id].verdict == "dropped"
    assert "share of knowledge" in found[big.id].why
    assert found[absent.id].verdict == "not found"


async def test_only_a_context_can_be_explained(place: Place) -> None:
    with pytest.raises(InvalidInput, match="not a context"):
        explain(await place.write("a note"))


@pytest.mark.req("RCR-30", "RCR-31")
def test_no_schema_name_is_compiled_into_the_context_builder() -> None:
    import re

    folder = Path(clew.context.__file__).parent
    names = re.compile(r"[\"'][a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*\.v\d+[\"']")
    assert [
        (file.name, names.findall(file.read_text())) for file in folder.glob("*.py") if names.search(file.read_text())
    ] == []
