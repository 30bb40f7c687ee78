"""Relevance for a context: short messages, messages of other sessions, and duplicates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.conversations.context_explanations import preview_context
from clew.agents.conversations.conversation import Conversations
from clew.clock import ManualClock
from clew.context.draft import ContextDraft
from clew.context.relevance import question_of
from clew.knowledge.history.entries import Category, write_entry
from clew.knowledge.history.journal import Chronicle
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb
from tests.context.conftest import Place, agent, quiet

KNOWLEDGE = {"semantic": {"schemas": ["note.v1"]}}
LONG = " ".join(f"word{number}" for number in range(80))


@pytest.fixture
async def place(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Place]:
    """A trail with an embedder and all definitions of Clew."""
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    await bootstrap(trail, me)
    yield Place(trail, me, clock)
    await trail.close()


async def build(place: Place, trigger: Breadcrumb, **sources: Any) -> ContextDraft:
    return await place.builder.build(trigger, agent(**{**KNOWLEDGE, **sources}), by=place.me)


def shown(draft: ContextDraft) -> set[str]:
    return {item.id for item in draft.receipt.items if item.origin != "trigger"}


async def answer(place: Place, text: str, asked: Breadcrumb) -> Breadcrumb:
    tags = (*asked.session_tags, f"run:{asked.id}")
    return await place.write("", title="Answer", schema_name=place.flow.answer, context={"message": text}, tags=tags)


@pytest.mark.parametrize("text", ["x", "1", "what?", "go on", "hi there", "hello", "Thanks!", "…", "👍"])
async def test_a_message_without_content_words_finds_nothing(place: Place, text: str) -> None:
    await place.write(f"x 1 hello go on 👍 {LONG}")
    await place.write("how to write from a chat", title="Chat")
    await place.say("say hello and go on", session="other")
    assert shown(await build(place, await place.say(text))) == set()


@pytest.mark.parametrize("text", ["grapes", "grapes?", "犬"])
async def test_one_word_finds_records_about_it(place: Place, text: str) -> None:
    note = await place.write(f"{text.rstrip('?')} in the garden")
    assert shown(await build(place, await place.say(text))) == {note.id}


async def test_the_origin_of_a_message_is_not_part_of_the_question(place: Place) -> None:
    trigger = await place.say("the harvest", tags=("vine",))
    view = {"message": "the harvest", "content": "the harvest"}
    assert question_of(trigger, view).text == "the harvest vine"
    await place.write("a test of the test", title="Test")
    assert shown(await build(place, trigger)) == set()


async def test_close_messages_of_other_sessions_come_with_their_answers(place: Place) -> None:
    asked = await place.say("when is the harvest of the grapes this year", session="one")
    told = await answer(place, "In the second week of September.", asked)
    far = await place.say("please paint the kitchen wall", session="two")
    draft = await build(place, await place.say("when is the harvest of the grapes next year", session="new"))
    assert {asked.id, told.id} <= shown(draft)
    assert far.id not in shown(draft)


@pytest.mark.req("SYL-06")
async def test_the_conversation_of_a_named_session_stays_there(place: Place) -> None:
    asked = await place.say("when is the harvest of the grapes this year", session="one")
    told = await answer(place, "In the second week of September.", asked)
    record = {
        "id": "one",
        "state": "active",
        "created_at": "2026-01-01T00:00:00Z",
        "last_active_at": "2026-01-01T00:00:00Z",
    }
    await place.write("", title="one", schema_name=place.flow.session, context=record, tags=("session:one",))
    question = "when is the harvest of the grapes next year"
    assert shown(await build(place, await place.say(question, session="new"))) == set()
    assert {asked.id, told.id} <= shown(await build(place, await place.say(question, session="one.t1.1.engineer")))


@pytest.mark.req("SYL-07")
async def test_an_entry_of_another_session_is_shown_once_it_is_promoted_or_is_a_decision(place: Place) -> None:
    hint = await write_entry(place.trail, place.me, "grapes like chalk", Category.INSIGHT, "one", metadata={})
    chosen = await write_entry(
        place.trail, place.me, "grapes are picked by hand", Category.DECISION, "one", metadata={}
    )
    sources = {"semantic": {"schemas": ["node.v1"]}}
    draft = await build(place, await place.say("what do grapes like?", session="new"), **sources)
    assert shown(draft) == {chosen.id}
    await Chronicle(place.trail, place.me, "one", place.clock).promote(hint.id)
    draft = await build(place, await place.say("what do grapes like most?", session="new"), **sources)
    assert hint.id in shown(draft)


async def test_one_chat_does_not_lead_to_all_others(place: Place) -> None:
    """A chain of sessions, each linked to the next by meaning, and to a message of the present one."""
    chain = [await place.say(f"chain {name}", session=name, link=False) for name in ("first", "second", "third")]
    own = await place.say("an earlier line", session="new", link=False)
    note = await place.write("a note from afar", link=False)
    for near, far in ((own, chain[0]), (chain[0], chain[1]), (chain[1], chain[2])):
        await place.link(near, far, "semantic", weight=1.1)
    await place.link(own, note, "causal", weight=0.5)
    draft = await build(place, await place.say("and what about grapes", session="new", link=False))
    assert shown(draft) == {own.id, note.id}


async def test_the_same_question_of_many_sessions_appears_once(place: Place) -> None:
    texts = ("When is the harvest?", "when  is the HARVEST?", "When is the harvest?")
    asked = [await place.say(text, session=f"s{number}") for number, text in enumerate(texts)]
    told = await answer(place, "In September, as every year.", asked[1])
    trigger = await place.say("When is the harvest?", session="new")
    draft = await build(place, trigger)
    assert shown(draft) == {told.id}
    why = {each.id: each.why for each in draft.receipt.dropped}
    assert {why[each.id] for each in asked} == {f"has the same text as {trigger.id}"}
    assert draft.formatted_context.lower().count("when is the harvest?") == 1


async def test_repeated_short_lines_of_the_conversation_stay(place: Place) -> None:
    said = [await place.say(text) for text in ("yes", "go on", "yes", "go on")]
    draft = await build(place, await place.say("yes"))
    assert shown(draft) == {each.id for each in said}


async def test_records_with_the_same_short_content_and_different_titles_are_no_duplicates(place: Place) -> None:
    done = [
        await place.write("", title=f"grapes of {year}", context={"state": "picked"}, tags=("vine",), link=False)
        for year in (1, 2)
    ]
    assert shown(await build(place, await place.say("grapes", tags=("vine",)))) == {each.id for each in done}


async def test_no_text_is_shown_twice(place: Place) -> None:
    text = "Grapes are picked before the first frost, and pressed at once."
    resource = {"description": "grapes are picked before the  first frost…", "content": f"# Harvest\n\n{text}"}
    await place.write("", title="Harvest", context=resource, link=False)
    await place.write("", title="Grapes are small", context={"text": "Grapes are small and sweet."}, link=False)
    said = {"message": "which grapes are picked", "content": "which grapes are picked", "source": "test"}
    trigger = await place.write("", title="which grapes are…", schema_name=place.flow.message, context=said)
    shown_text = (await build(place, trigger)).formatted_context.lower()
    for once in ("before the first frost", "grapes are small", "which grapes are"):
        assert shown_text.count(once) == 1
    assert "description" not in shown_text
    assert "[1] note.v1, 2026-01-01 00:00" in shown_text


async def test_a_preview_equals_the_later_context(place: Place) -> None:
    sources = {**KNOWLEDGE, "always": []}
    context = {"agent_id": "guide", "context_sources": sources}
    await place.write("", title="Agent", schema_name=place.flow.agent, context=context, link=False)
    for name in ("one", "two", "three"):
        asked = await place.say(f"how are grapes picked, {name}", session=name)
        await answer(place, f"By hand, said {name}.", asked)
    await place.write("grapes are picked by hand")
    talk = Conversations(place.trail, place.flow, place.clock)
    place.clock.advance(seconds=1)
    for session in (None, "one"):
        previewed = await preview_context(
            place.builder, talk, place.clock, "how are grapes picked?", by=place.me, agent="guide", session=session
        )
        sent = await talk.send("how are grapes picked?", by=place.me, agent="guide", session=session)
        message = await place.trail.records.get(sent.id, by=place.me)
        definition = await talk.find_agent("guide", by=place.me)
        before = await place.builder.build(message, definition, by=place.me)
        assert await place.edges.link(message)
        after = await place.builder.build(message, definition, by=place.me)
        assert len(shown(previewed)) > 1
        assert shown(previewed) == shown(before) == shown(after)
        assert previewed.formatted_context == before.formatted_context == after.formatted_context
        await place.trail.records.delete(message.id, by=place.me)


async def test_explicit_edges_lead_from_a_message(place: Place) -> None:
    note = await place.write("far from it", link=False)
    trigger = await place.say("where?", link=False)
    await place.link(trigger, note)
    draft = await place.builder.build(trigger, quiet(graph={"enabled": True}), by=place.me)
    assert shown(draft) == {note.id}
