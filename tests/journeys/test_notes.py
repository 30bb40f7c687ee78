"""A page that is saved gets tags, a summary, insights and a plain explanation."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.records import shipped_reliability
from tests.agents.runtimes import running

RESULTS = shipped_reliability().notes
SAVING: list[dict[str, Any]] = [
    {
        "user": "pilot",
        "call": [
            {"save-note-tags": {"tags": ["harbour", "pilotage"]}},
            {"save-note-summary": {"summary": "Ships need a pilot in Nes."}},
            {"save-note-insights": {"insights": ["Arriving without a pilot costs time."]}},
            {"save-note-eli5": {"explanation": "Big boats need a helper who knows the way."}},
        ],
        "tools": ["save-note-tags", "save-note-summary", "save-note-insights", "save-note-eli5"],
    },
    {"expect": "kept as", "say": "It is about pilots in Nes."},
]


def page(title: str, content: str) -> Draft:
    context = {
        "url": "https://example.org/nes",
        "domain": "example.org",
        "title": title,
        "content": content,
        "links": ["https://example.org/pilots"],
        "images": [],
        "metadata": {},
    }
    return Draft(title=title, schema_name="note.v1", context=context)


@pytest.mark.req("RCR-46")
async def test_saving_a_page_produces_four_results_that_are_linked_to_it(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAVING) as run:
        note = await trail.records.create(page("Nes", "Every ship over 20 m takes a pilot in Nes."), by=me)
        await run.until(Selector(schema_name=run.flow.answer, all_tags=(f"run:{note.id}",)))

        found = await run.until(Selector(all_tags=(f"note:{note.id}",)), 4)
        assert {each.schema_name for each in found} == {
            RESULTS.tags,
            RESULTS.summary,
            RESULTS.insights,
            RESULTS.eli5,
        }
        assert {each.context["note_id"] for each in found} == {note.id}
        edges = await trail.edges.of(note.id, by=me, types=("based_on",))
        assert {each.source for each in edges} == {each.id for each in found}
        requests = [each for each in await run.written(note.id, run.flow.request) if each.context["tool"] != "llm"]
        assert len(requests) == 4
        assert len({tag for each in requests for tag in each.tags if tag.startswith("turn:")}) == 1


@pytest.mark.req("RCR-46")
async def test_the_processor_sees_notes_like_it_and_the_tags_that_there_are(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAVING) as run:
        first = await trail.records.create(page("Nes", "Every ship over 20 m takes a pilot in Nes."), by=me)
        await run.until(Selector(schema_name=run.flow.answer, all_tags=(f"run:{first.id}",)))
        second = await trail.records.create(page("Oda", "In Oda a ship takes a pilot only at night."), by=me)
        await run.until(Selector(schema_name=run.flow.answer, all_tags=(f"run:{second.id}",)))

        [context] = await run.written(second.id, run.flow.context)
        origins = {each["id"]: each["origin"] for each in context.context["receipt"]["items"]}
        tags = await run.until(Selector(schema_name=RESULTS.tags, all_tags=(f"note:{first.id}",)))
        assert origins.get(first.id) == "semantic"
        assert origins.get(tags[0].id) == "always"
        assert "pilotage" in context.context["formatted_context"]
