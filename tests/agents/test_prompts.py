"""Prompts: how they are stored and rebuilt."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.agents.runs.prompts import PromptSnapshot, keep_snapshot, model_input, rebuild_prompt, source_of, text_at
from clew.agents.runs.requests import request_draft
from clew.errors import InvalidInput, NotFound
from clew.llm.messages import Message, ToolCall, ToolSpec
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import shipped_flow
from clew.trail.store import Trail

FLOW = shipped_flow(read_pieces())
SPEC = ToolSpec(name="count", description="Counts.", schema={"type": "object"})


async def ask(
    trail: Trail, me: Principal, messages: list[Message], after: Breadcrumb | None = None, system: str = "Be brief."
) -> Breadcrumb:
    """A request to a model as the agent runner writes it."""
    snapshot = await keep_snapshot(trail, FLOW, PromptSnapshot(system=system, tools=(SPEC,)), by=me)
    input = model_input(messages, after=after.id if after else None, snapshot=snapshot)
    draft = request_draft(FLOW, "llm", input, request_id="r", requested_by="a", tags=("run:x", "session:s"))
    return await trail.records.create(draft, by=me)


async def note(trail: Trail, me: Principal, **context: Any) -> Breadcrumb:
    return await trail.records.create(Draft(title="n", schema_name="note.v1", context=context), by=me)


@pytest.mark.req("BEY-04")
async def test_a_prompt_is_the_sum_of_what_each_request_added(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    context = await note(trail, me, text="What was looked up.")
    first = await ask(trail, me, [Message(role="user", source=source_of(context, "text"))])
    call = ToolCall(id="1", name="count", arguments={"to": 3})
    said = Message(role="assistant", content="Let me count.", tool_calls=(call,))
    result = await note(trail, me, output={"b": 2, "a": "ü"})
    told = Message(role="tool", tool_call_id="1", name="count", source=source_of(result, "output"))
    second = await ask(trail, me, [said, told], after=first)
    prompt = await rebuild_prompt(trail, FLOW, second, by=me)
    assert [(each.role, each.content) for each in prompt.messages] == [
        ("system", "Be brief."),
        ("user", "What was looked up."),
        ("assistant", "Let me count."),
        ("tool", '{"a":"ü","b":2}'),
    ]
    assert prompt.tools == (SPEC,)
    assert [each.role for each in (await rebuild_prompt(trail, FLOW, first, by=me)).messages] == ["system", "user"]


@pytest.mark.req("BEY-04")
async def test_a_prompt_of_the_past_stays_as_it_was_when_its_sources_change(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    context = await note(trail, me, text="before")
    request = await ask(trail, me, [Message(role="user", source=source_of(context, "text"))])
    before = await rebuild_prompt(trail, FLOW, request, by=me)
    await trail.records.update(context.id, Change(context={"text": "after"}), expect=1, by=me)
    await keep_snapshot(trail, FLOW, PromptSnapshot(system="Be long."), by=me)
    after = await rebuild_prompt(trail, FLOW, request, by=me)
    assert after == before
    assert after.digest == before.digest


async def test_the_same_instructions_are_kept_once(trail: Trail, me: Principal, stranger: Principal) -> None:
    await bootstrap(trail, me)
    snapshot = PromptSnapshot(system="a", tools=(SPEC,))
    first = await keep_snapshot(trail, FLOW, snapshot, by=me)
    assert await keep_snapshot(trail, FLOW, snapshot, by=me) == first
    assert await keep_snapshot(trail, FLOW, PromptSnapshot(system="b"), by=me) != first
    assert await keep_snapshot(trail, FLOW, snapshot, by=stranger) != first


async def test_a_text_that_was_deleted_is_told_as_missing(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    context = await note(trail, me, text="gone soon")
    request = await ask(trail, me, [Message(role="user", source=source_of(context, "text"))])
    await trail.records.delete(context.id, by=me)
    with pytest.raises(NotFound):
        await rebuild_prompt(trail, FLOW, request, by=me)


async def test_a_request_that_is_not_to_a_model_has_no_prompt(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    draft = request_draft(FLOW, "count", {}, request_id="r", requested_by="a")
    request = await trail.records.create(draft, by=me)
    with pytest.raises(InvalidInput, match="a request for count"):
        await rebuild_prompt(trail, FLOW, request, by=me)


async def test_a_text_that_is_not_there_is_named(trail: Trail, me: Principal) -> None:
    record = await note(trail, me, text="x")
    with pytest.raises(NotFound, match="deep"):
        text_at(record, "deep.er")
