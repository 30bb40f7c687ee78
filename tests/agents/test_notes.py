from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.agents.repairs.reliability_settings import read_reliability
from clew.agents.tools.note_tools import note_tools, result_id
from clew.context.definition import read_definition
from clew.errors import InvalidInput, NotFound
from clew.tools.tool import Tool, ToolContext
from clew.trail.bootstrap import piece_id
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector, matches
from clew.trail.store import Trail

PAGE = {
    "url": "https://example.org/harbour",
    "domain": "example.org",
    "title": "The harbour",
    "content": "Ships need a pilot here.",
    "links": [],
    "images": [],
    "metadata": {},
}


@pytest.fixture
async def tools(trail: Trail, flow: Flow, me: Principal) -> dict[str, Tool]:
    results = (await read_reliability(trail, by=me)).notes
    return {each.name: each for each in note_tools(trail, results)}


async def save_page(trail: Trail, by: Principal) -> Breadcrumb:
    return await trail.records.create(Draft(title="The harbour", schema_name="note.v1", context=PAGE), by=by)


async def use(tools: dict[str, Tool], by: Principal, name: str, **arguments: object) -> str:
    used = tools[name]
    return (await used.call(used.check(arguments), ToolContext(by=by))).content


async def make_all(tools: dict[str, Tool], by: Principal, note: Breadcrumb, summary: str = "Take a pilot.") -> None:
    await asyncio.gather(
        use(tools, by, "save-note-tags", note_id=note.id, tags=["Harbour", "pilot", "harbour ", "a:b"]),
        use(tools, by, "save-note-summary", note_id=note.id, summary=summary),
        use(tools, by, "save-note-insights", note_id=note.id, insights=["Pilots are needed", " "]),
        use(tools, by, "save-note-eli5", note_id=note.id, explanation="Big boats need a helper."),
    )


@pytest.mark.req("RCR-46")
async def test_four_results_are_kept_side_by_side_and_tied_to_their_note(
    trail: Trail, tools: dict[str, Tool], me: Principal
) -> None:
    note = await save_page(trail, me)

    await make_all(tools, me, note)

    page = await trail.records.list(Selector(all_tags=(f"note:{note.id}",)), by=me)
    found = {each.schema_name: each for each in page.items}
    assert set(found) == {"note.tags.v1", "note.summary.v1", "note.insights.v1", "note.eli5.v1"}
    assert all(each.context["note_id"] == note.id for each in found.values())
    assert found["note.tags.v1"].context["tags"] == ["harbour", "pilot", "a b"]
    assert {"harbour", "pilot"} <= set(found["note.tags.v1"].tags)
    assert found["note.insights.v1"].context["insights"] == ["Pilots are needed"]
    edges = await trail.edges.of(note.id, by=me)
    assert {(each.source, each.type) for each in edges} == {(each.id, "based_on") for each in found.values()}


async def test_a_tool_knows_the_note_that_its_run_is_about(trail: Trail, tools: dict[str, Tool], me: Principal) -> None:
    note = await save_page(trail, me)
    used = tools["save-note-summary"]

    await used.call(used.check({"summary": "Take a pilot."}), ToolContext(by=me, run=note.id))

    summary = await trail.records.get(result_id(note.id, "note.summary.v1"), by=me)
    assert summary.context["note_id"] == note.id


async def test_a_note_that_is_looked_at_again_has_its_results_replaced(
    trail: Trail, tools: dict[str, Tool], me: Principal
) -> None:
    note = await save_page(trail, me)
    await make_all(tools, me, note)
    await make_all(tools, me, note, summary="Pilots are compulsory.")

    page = await trail.records.list(Selector(all_tags=(f"note:{note.id}",)), by=me)
    assert len(page.items) == 4
    summary = await trail.records.get(result_id(note.id, "note.summary.v1"), by=me)
    assert (summary.version, summary.context["summary"]) == (2, "Pilots are compulsory.")


async def test_a_note_that_there_is_not_and_results_that_say_nothing_are_refused(
    trail: Trail, tools: dict[str, Tool], me: Principal, stranger: Principal
) -> None:
    note = await save_page(trail, me)

    with pytest.raises(NotFound):
        await use(tools, stranger, "save-note-summary", note_id=note.id, summary="x")
    for name, empty in (
        ("save-note-summary", {"summary": " "}),
        ("save-note-tags", {"tags": [" ", ":"]}),
        ("save-note-insights", {"insights": []}),
        ("save-note-eli5", {"explanation": "\n"}),
    ):
        with pytest.raises(InvalidInput):
            await use(tools, me, name, note_id=note.id, **empty)
    assert (await trail.records.list(Selector(all_tags=(f"note:{note.id}",)), by=me)).items == ()


@pytest.mark.req("RCR-46")
async def test_the_shipped_agent_is_started_by_notes_and_sees_five_like_it_and_a_hundred_tags(
    trail: Trail, flow: Flow, me: Principal
) -> None:
    agent = read_definition(await trail.records.get(piece_id(me, "agent/note-processor"), by=me))
    note = await save_page(trail, me)
    bare = await trail.records.create(Draft(title="Port", schema_name="note.v1", context={"port": 1}), by=me)

    assert agent.context_trigger is not None
    assert matches(agent.context_trigger, note)
    assert not matches(agent.context_trigger, bare)
    sources = agent.context_sources
    assert (sources.semantic.schemas, sources.semantic.limit) == (("note.v1",), 5)
    assert [(each.schema_name, each.limit) for each in sources.always] == [("note.tags.v1", 100)]
