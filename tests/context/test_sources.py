from __future__ import annotations

import pytest
from msgspec import convert

from clew.context.definition import AlwaysSource, SemanticSource, SessionSource, Subscription
from clew.context.relevance import question_of
from clew.context.sources import fetch, find_always, find_pointed, find_seeds, find_session, find_similar
from tests.context.conftest import Place, agent, ids_of


def subscription(method: str, limit: int | None = None) -> Subscription:
    return convert(
        {"schema_name": "note.v1", "role": "context", "fetch": {"method": method, "limit": limit}}, Subscription
    )


@pytest.mark.req("RCR-27")
async def test_each_method_of_fetching_brings_its_own_set(place: Place) -> None:
    notes = [await place.write(f"note {word}", link=False) for word in ("apples", "pears", "plums", "quinces")]
    trigger = await place.say("tell me of plums")

    async def brought(method: str, limit: int | None = None) -> list[str]:
        return ids_of(await fetch(place.trail, subscription(method, limit), trigger, by=place.me))

    assert await brought("event_data") == [trigger.id]
    assert await brought("latest") == [notes[3].id]
    assert await brought("recent", 2) == [notes[2].id, notes[3].id]
    assert await brought("all") == ids_of(notes)
    assert await brought("all", 1) == [notes[0].id]
    assert (await brought("vector", 2))[0] == notes[2].id
    assert len(await brought("vector", 2)) == 2


@pytest.mark.req("RCR-27")
async def test_the_hits_of_a_trigger_never_include_the_trigger(place: Place) -> None:
    trigger = await place.write("plums are blue")
    other = await place.write("plums are sweet")
    assert ids_of(await fetch(place.trail, subscription("vector"), trigger, by=place.me)) == [other.id]


async def test_a_trigger_without_any_words_has_nothing_close_to_it(place: Place) -> None:
    await place.write("plums")
    trigger = await place.write("", title="...", context={"n": 1})
    found = await find_similar(
        place.trail, SemanticSource(), trigger, (), question=question_of(trigger), flow=place.flow, by=place.me
    )
    assert trigger.id not in [seed.breadcrumb.id for seed in found]


@pytest.mark.req("RCR-32")
async def test_a_needed_source_that_is_missing_is_reported_and_an_optional_one_is_not(place: Place) -> None:
    trigger = await place.say("hello")
    sources = (
        AlwaysSource(type="tag", tag="browser:active-tab", optional=True),
        AlwaysSource(type="schema", schema_name="guide.v1"),
        AlwaysSource(type="schema", schema_name="note.v1"),
    )
    note = await place.write("here")
    seeds, missing = await find_always(place.trail, sources, trigger, by=place.me)
    assert [seed.breadcrumb.id for seed in seeds] == [note.id]
    assert [each.source for each in missing] == ["guide.v1"]


async def test_a_tag_with_a_star_means_the_tags_of_the_trigger(place: Place) -> None:
    guide = await place.write("wait longer", tags=("error:timeout",))
    await place.write("ask first", tags=("error:permission",))
    source = AlwaysSource(type="tag", tag="error:*", method="recent", optional=True)
    failed = await place.write("it took too long", tags=("error:timeout", "tool:error"))
    seeds, _ = await find_always(place.trail, (source,), failed, by=place.me)
    assert guide.id in [seed.breadcrumb.id for seed in seeds]
    assert "ask first" not in [seed.breadcrumb.context["text"] for seed in seeds]
    calm = await place.say("all is well")
    assert await find_always(place.trail, (source,), calm, by=place.me) == ([], [])


@pytest.mark.req("RCR-33")
async def test_a_trigger_points_at_what_it_names_and_at_what_shares_its_pointers(place: Place) -> None:
    tool = await place.write("the tool")
    guide = await place.write("a guide", tags=("playwright",))
    trigger = await place.write(
        "", context={"tool_breadcrumb_id": tool.id, "gone": place.me.owner_id}, tags=("playwright",)
    )
    found = await find_pointed(place.trail, trigger, (), by=place.me)
    assert {seed.breadcrumb.id: seed.origin for seed in found} == {tool.id: "pointer", guide.id: "pointer"}
    assert any("tool_breadcrumb_id" in seed.reason for seed in found)


@pytest.mark.req("RCR-33")
async def test_a_session_gives_its_last_twenty_in_order_and_nothing_after_the_trigger(place: Place) -> None:
    said = [await place.say(f"line {number}", link=False) for number in range(25)]
    trigger = said[22]
    found = await find_session(place.trail, SessionSource(), trigger, (), place.flow, by=place.me)
    assert [seed.breadcrumb.id for seed in found] == ids_of(said[2:22])
    assert (
        await find_session(place.trail, SessionSource(), await place.write("alone"), (), place.flow, by=place.me) == []
    )


@pytest.mark.req("RCR-33")
async def test_chat_has_twenty_of_the_session_and_ten_hybrid_hits_unless_told_otherwise(place: Place) -> None:
    for number in range(14):
        await place.write(f"grapes of the year {number}", link=False)
    for number in range(23):
        await place.say(f"line {number}", link=False)
    trigger = await place.say("which grapes?")
    given = {"question": question_of(trigger), "flow": place.flow, "by": place.me}
    seeds, _ = await find_seeds(place.trail, agent().context_sources, trigger, (place.flow.message,), **given)
    origins = [seed.origin for seed in seeds]
    assert origins.count("semantic") == 10
    seeds, _ = await find_seeds(place.trail, agent().context_sources, trigger, (), **given)
    assert [seed.origin for seed in seeds].count("session") == 20
