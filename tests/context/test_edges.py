from __future__ import annotations

import asyncio
import itertools

import pytest

from clew.access import TEAM_SCHEMAS
from clew.context.edges import CAUSAL, HANDLER, MAX_TAGGED, SEMANTIC, TAG, TEMPORAL, edge_handler
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import matches, matches_envelope
from clew.trail.work.correlation import run_tag
from clew.trail.work.handlers import Worker
from tests.context.conftest import Place, handled_all


async def arrows(place: Place, breadcrumb: Breadcrumb, kind: str) -> set[tuple[str, str]]:
    found = await place.trail.edges.of(breadcrumb.id, by=place.me, types=(kind,))
    return {(edge.source, edge.target) for edge in found}


@pytest.mark.req("RCR-34")
async def test_a_request_causes_its_response_in_either_order_of_linking(place: Place) -> None:
    flow = place.flow
    given = {"title": "Request", "schema_name": flow.request, "tags": ("request:r1",)}
    request = await place.write("", **given, context={"tool": "x", "requestId": "r1", "input": {}}, link=False)
    given = {"title": "Response", "schema_name": flow.response, "tags": ("request:r1",)}
    context = {"request_id": "r1", "tool": "x", "status": "success", "output": {}, "execution_time_ms": 1}
    response = await place.write("", **given, context=context)
    assert await arrows(place, response, CAUSAL) == {(request.id, response.id)}
    await place.edges.link(request)
    assert await arrows(place, request, CAUSAL) == {(request.id, response.id)}


@pytest.mark.req("RCR-34")
async def test_a_request_without_a_tag_is_found_in_its_session(place: Place) -> None:
    asked = await place.write("", context={"requestId": "r7"}, tags=("session:s",), link=False)
    answered = await place.write("", context={"request_id": "r7"}, tags=("session:s",))
    assert await arrows(place, answered, CAUSAL) == {(asked.id, answered.id)}


@pytest.mark.req("RCR-34")
async def test_records_that_name_another_or_are_of_its_run_get_a_causal_edge(place: Place) -> None:
    message = await place.say("hello")
    context = {"consumer_id": "a", "trigger_event_id": message.id}
    built = await place.write("", title="Context", schema_name=place.flow.context, context=context)
    answer = await place.write("hi", tags=("session:s", run_tag(message.id)))
    assert await arrows(place, built, CAUSAL) == {(message.id, built.id)}
    assert (message.id, answer.id) in await arrows(place, answer, CAUSAL)


@pytest.mark.req("RCR-34")
async def test_a_session_is_a_chain_in_order_with_any_order_of_linking(place: Place) -> None:
    said = [await place.say(f"line {number}", link=False) for number in range(4)]
    await place.say("elsewhere", session="other")
    for each in reversed(said):
        await place.edges.link(each)
    chain = {pair for each in said for pair in await arrows(place, each, TEMPORAL)}
    assert chain == {(one.id, other.id) for one, other in itertools.pairwise(said)}


@pytest.mark.req("RCR-34")
async def test_a_shared_pointer_links_and_a_routing_or_state_tag_does_not(place: Place) -> None:
    one = await place.write("apples", tags=("orchard", "workspace:tools", "approved"))
    other = await place.write("ladders", tags=("orchard", "workspace:tools", "approved"))
    third = await place.write("nails", tags=("workspace:tools", "approved"))
    assert await arrows(place, one, TAG) == {(one.id, other.id)}
    assert await arrows(place, third, TAG) == set()


@pytest.mark.req("RCR-34")
async def test_close_meanings_are_linked_and_far_ones_are_not(place: Place) -> None:
    one = await place.write("the grapes are harvested in september")
    other = await place.write("the grapes are harvested in october")
    far = await place.write("quarterly invoice numbering policy")
    assert await arrows(place, one, SEMANTIC) == {(one.id, other.id)}
    assert await arrows(place, far, SEMANTIC) == set()


async def test_a_huge_group_of_one_tag_costs_each_member_a_few_edges(place: Place) -> None:
    last = None
    for number in range(40):
        last = await place.write(f"{number * 7919} item", tags=("everything",))
    assert last is not None
    assert len(await arrows(place, last, TAG)) == MAX_TAGGED


async def test_an_event_that_comes_again_adds_nothing(place: Place) -> None:
    await place.write("grapes in september", tags=("vine", "session:s"))
    again = await place.write("grapes in october", tags=("vine", "session:s"))
    before = await place.trail.edges.of(again.id, by=place.me)
    first = (await place.trail.upkeep.stats(by=place.me)).edges
    await place.edges.link(again)
    assert (await place.trail.upkeep.stats(by=place.me)).edges == first
    after = await place.trail.edges.of(again.id, by=place.me)
    assert [(e.source, e.type, e.target, e.weight) for e in after] == [
        (e.source, e.type, e.target, e.weight) for e in before
    ]


async def test_machinery_gets_no_edges_by_tag_time_or_meaning(place: Place) -> None:
    await place.write("grapes", tags=("vine", "session:s"))
    context = {"consumer_id": "a", "text": "grapes"}
    given = {"title": "Context", "schema_name": place.flow.context, "context": context, "tags": ("vine", "session:s")}
    machinery = await place.write("", **given)
    later = await place.write("more grapes", tags=("session:s",))
    assert await place.trail.edges.of(machinery.id, by=place.me) == []
    assert machinery.id not in {source for source, _ in await arrows(place, later, TEMPORAL)}


async def test_one_end_that_is_gone_does_not_cost_the_other_edges(place: Place) -> None:
    first = await place.say("one")
    written = await place.say("two", link=False)
    await place.trail.records.delete(first.id, by=place.me)
    assert await place.edges.link(written) == []
    await place.trail.records.delete(written.id, by=place.me)
    assert await place.edges.link(written) == []


@pytest.mark.req("RCR-34")
async def test_edges_are_built_behind_the_write_by_a_handler(place: Place) -> None:
    worker = Worker(place.trail, [edge_handler(place.trail, place.flow, by=place.me)], by=place.me, worker_id="w")
    await worker.register()
    one = await place.say("one", link=False)
    other = await place.say("two", link=False)
    assert await place.trail.edges.of(other.id, by=place.me) == []
    task = asyncio.create_task(worker.run())
    await handled_all(place, HANDLER)
    worker.stop()
    await task
    assert (one.id, other.id) in await arrows(place, other, TEMPORAL)


async def test_messages_of_the_team_and_calls_of_models_get_no_edges(place: Place) -> None:
    handler = edge_handler(place.trail, place.flow, by=place.me)
    assert not any(matches_envelope(handler.selector, each, ()) for each in TEAM_SCHEMAS)
    for tool, is_linked in ((place.flow.model_tool, False), ("search", True)):
        context = {"request_id": tool, "tool": tool, "status": "success", "output": {}, "execution_time_ms": 1}
        record = await place.write("", title=tool, schema_name=place.flow.response, context=context, link=False)
        assert matches(handler.selector, record) == is_linked
