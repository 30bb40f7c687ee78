"""The three protocols: requests and responses beyond plain text, and servers that deviate from them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from clew.errors import ModelError
from clew.llm.messages import Message, ToolCall
from clew.llm.model import ModelReply, ModelRequest, Models
from tests.llm.fake_provider import DONE, FakeProvider, Write, chunk, completion, event, status, stream
from tests.llm.wire_events import HELLO, WEATHER, Pieces, ask

CALL = {"id": "c_1", "type": "function", "function": {"name": "geo_get_weather", "arguments": '{"city": "Oslo"}'}}


async def ask_again(models: Models, name: str, reply: ModelReply, answer: Write, *, provider: FakeProvider) -> None:
    """Send an answer back with the result of its tool."""
    stored = json.loads(json.dumps(reply.extra))
    said = Message(role="assistant", content=reply.content, tool_calls=reply.tool_calls, extra=stored)
    result = Message(role="tool", content="18 °C", tool_call_id=reply.tool_calls[0].id, name="geo/get.weather")
    provider.asked.clear()
    await ask(models, name, answer, provider=provider, messages=(*HELLO, said, result), tools=(WEATHER,))


def response(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A whole answer of OpenAI's own protocol."""
    counted = {"input_tokens": 8, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}}
    return {"id": "r", "status": "completed", "model": "gpt-5", "output": list(items), "usage": counted, **more}


def sent(data: dict[str, Any]) -> Write:
    """One event of chat completions, and the end of its stream."""
    return stream(f"data: {json.dumps(data)}\n\n", DONE)


def failed(data: dict[str, Any]) -> Write:
    return stream(event("error", **data))


def failed_choice(**choice: Any) -> dict[str, Any]:
    """An answer of chat completions that broke off."""
    return {"choices": [{"message": {"content": "Hel"}, "finish_reason": "stop", **choice}]}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}


async def test_encrypted_thoughts_of_openai_go_back_with_the_call_that_they_led_to(
    provider: FakeProvider, models: Models
) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
    lost = {"type": "reasoning", "id": "rs_0", "summary": []}
    call = {"type": "function_call", "call_id": "c_1", "name": "geo_get_weather", "arguments": '{"city": "Oslo"}'}
    whole = status(200, response(lost, thought, call))
    reply = await ask(models, "gpt:gpt-5", whole, provider=provider, tools=(WEATHER,))
    assert reply.tool_calls == (ToolCall(id="c_1", name="geo/get.weather", arguments={"city": "Oslo"}),)
    assert (reply.finish_reason, reply.usage.cached_tokens) == ("tool_calls", 3)
    assert provider.asked[0].body["include"] == ["reasoning.encrypted_content"]
    await ask_again(models, "gpt:gpt-5", reply, status(200, response(message("18."))), provider=provider)
    sent = provider.asked[0].body["input"][2:]
    assert [each["type"] for each in sent] == ["reasoning", "function_call", "function_call_output"]
    assert sent[0] == thought


async def test_thoughts_go_to_no_other_provider(provider: FakeProvider, models: Models) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    use = {"type": "tool_use", "id": "c_1", "name": "geo_get_weather", "input": {"city": "Oslo"}}
    whole = {"model": "claude-sonnet-5-5", "content": [thinking, use], "stop_reason": "tool_use", "usage": {}}
    reply = await ask(models, "claude:claude-sonnet-5-5", status(200, whole), provider=provider, tools=(WEATHER,))
    assert reply.extra["provider"] == "claude"
    await ask_again(models, "lab:m-1", reply, status(200, completion({"content": "18."})), provider=provider)
    assert "Hm." not in json.dumps(provider.asked[0].body)
    await ask_again(
        models,
        "claude:claude-sonnet-5-5",
        reply,
        status(200, {**whole, "content": [{"type": "text", "text": "18."}], "stop_reason": "end_turn"}),
        provider=provider,
    )
    assert provider.asked[0].body["messages"][1]["content"][0] == thinking


async def test_thoughts_of_a_compatible_server_go_back_with_its_calls(provider: FakeProvider, models: Models) -> None:
    answer = completion({"content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]}, "tool_calls")
    reply = await ask(models, "lab:m-1", status(200, answer), provider=provider, tools=(WEATHER,))
    await ask_again(models, "lab:m-1", reply, status(200, completion({"content": "18."})), provider=provider)
    assert provider.asked[0].body["messages"][2]["reasoning_content"] == "Hm."
    plain = completion({"content": "Hello.", "reasoning_content": "Hm."})
    assert (await ask(models, "lab:m-1", status(200, plain), provider=provider)).extra == {}


async def test_anthropic_answers_by_a_schema_whose_objects_are_closed(provider: FakeProvider, models: Models) -> None:
    whole = {"model": "claude-haiku-5-5", "content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}, "additionalProperties": True}
    schema = {"type": "object", "properties": {"a": inner, "c": {"type": "object"}}}
    await ask(
        models,
        "claude:claude-haiku-5-5",
        status(200, whole),
        provider=provider,
        output_schema=schema,
        temperature=0.0,
    )
    body = provider.asked[0].body
    sent = body["output_config"]["format"]["schema"]
    assert sent["additionalProperties"] is False
    assert sent["properties"]["a"] == inner
    assert sent["properties"]["c"]["additionalProperties"] is False
    assert "temperature" not in body


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("lab", completion({"content": None, "refusal": "No."}, "content_filter"), "refused"),
        ("lab", completion({"content": "And"}, "length"), "length"),
        ("claude", {"content": [{"type": "text", "text": "No."}], "stop_reason": "refusal"}, "refused"),
        ("claude", {"content": [{"type": "text", "text": "And"}], "stop_reason": "max_tokens"}, "length"),
        ("gpt", response(message("And"), status="incomplete"), "length"),
        (
            "gpt",
            response(message("No."), status="incomplete", incomplete_details={"reason": "content_filter"}),
            "refused",
        ),
        (
            "gpt",
            response({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}),
            "refused",
        ),
    ],
)
async def test_the_reason_for_the_end_of_an_answer_is_the_same_for_all_protocols(
    provider: FakeProvider, models: Models, name: str, answer: dict[str, Any], expected: str
) -> None:
    reply = await ask(models, f"{name}:m-1", status(200, answer), provider=provider)
    assert (reply.finish_reason, reply.content) == (expected, "No." if expected == "refused" else "And")


async def test_a_server_that_does_not_stream_answers_in_one_piece(provider: FakeProvider, models: Models) -> None:
    provider.answers = [status(200, completion({"content": "At once."}))]
    pieces = Pieces()
    reply = await models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO), on_text=pieces.take)
    assert pieces == ["At once."]
    assert reply.content == "At once."


async def test_calls_without_ids_or_numbers_stay_apart(provider: FakeProvider, models: Models) -> None:
    def fragment(**call: Any) -> str:
        return chunk({"tool_calls": [call]})

    function = {"name": "geo_get_weather", "arguments": "{}"}
    provider.answers = [
        stream(
            fragment(function={**function, "arguments": {"city": "Rome"}}),
            fragment(function={"name": "geo_get_weather", "arguments": None}),
            fragment(index=7, id="x", function=function),
            fragment(index=7, id="y", function=function),
            chunk({}, "tool_calls"),
            DONE,
        )
    ]
    reply = await models.resolve("lab:m-1")[0].answer(
        ModelRequest(messages=HELLO, tools=(WEATHER,)), on_text=Pieces().take
    )
    assert [each.arguments for each in reply.tool_calls] == [{"city": "Rome"}, {}, {}, {}]
    assert len({each.id for each in reply.tool_calls}) == 4


@pytest.mark.parametrize(
    ("name", "answer", "kind"),
    [
        ("lab", stream('data: {"error": {"message": "Rate limit", "code": "rate_limit_exceeded"}}\n\n'), "rate"),
        ("lab", stream('data: {"error": {"message": "down"}}\n\n'), "server"),
        ("gpt", stream(event("error", error={"code": "server_error", "message": "down"})), "server"),
        (
            "gpt",
            stream(event("response.failed", response=response(status="failed", error={"code": "rate_limit_exceeded"}))),
            "rate",
        ),
        (
            "claude",
            status(400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9"}}),
            "too_long",
        ),
        ("claude", status(400, {"error": {"message": "Your credit balance is too low"}}), "rate"),
        ("lab", status(413, {"error": {"message": "big"}}), "refused"),
        ("lab", status(403, {"error": {"message": "no"}}), "auth"),
        *(
            (name, write({"error": {"code": code, "type": "invalid_request_error", "message": "no"}}), kind)
            for code, kind in (
                (401, "auth"),
                ("403", "auth"),
                (402, "rate"),
                (404, "config"),
                (429, "rate"),
                (502, "server"),
            )
            for name, write in (("lab", partial(status, 200)), ("lab", sent), ("gpt", failed))
        ),
        ("lab", status(200, failed_choice(finish_reason="error")), "server"),
        ("lab", status(200, failed_choice(error={"code": 429, "message": "slow"})), "rate"),
        ("lab", sent(failed_choice(finish_reason="error", error={"code": 401, "message": "no"})), "auth"),
    ],
)
async def test_errors_are_reported_by_their_code_their_words_or_their_status(
    provider: FakeProvider, models: Models, name: str, answer: Write, kind: str
) -> None:
    provider.answers = [answer]
    with pytest.raises(ModelError) as told:
        await models.resolve(f"{name}:m-1")[0].answer(ModelRequest(messages=HELLO), on_text=Pieces().take)
    assert told.value.kind == kind


async def test_a_date_to_try_again_at_becomes_seconds(provider: FakeProvider, models: Models) -> None:
    answer = status(429, {"error": {"message": "slow"}}, {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"})
    with pytest.raises(ModelError) as told:
        await ask(models, "lab:m-1", answer, provider=provider)
    assert told.value.retry_after == 3600.0


async def test_a_date_that_is_out_of_range_asks_for_no_wait(provider: FakeProvider, models: Models) -> None:
    answer = status(429, {"error": {"message": "slow"}}, {"retry-after": "Wed, 21 Oct 99999999999999 07:28:00 GMT"})
    with pytest.raises(ModelError) as told:
        await ask(models, "lab:m-1", answer, provider=provider)
    assert (told.value.kind, told.value.retry_after) == ("rate", None)


async def test_anthropic_gets_no_blank_text_and_no_unsigned_thoughts_back(
    provider: FakeProvider, models: Models
) -> None:
    name = "claude:claude-sonnet-5-5"
    use = {"type": "tool_use", "id": "c_1", "name": "geo_get_weather", "input": {"city": "Oslo"}}
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    unsigned = {"type": "thinking", "thinking": "Oh.", "signature": ""}
    blank = {"type": "text", "text": "\n"}
    after = status(200, {"content": [{"type": "text", "text": "18."}], "stop_reason": "end_turn"})
    whole = {"content": [signed, unsigned, blank, use], "stop_reason": "tool_use"}
    reply = await ask(models, name, status(200, whole), provider=provider, tools=(WEATHER,))
    await ask_again(models, name, reply, after, provider=provider)
    assert provider.asked[0].body["messages"][1]["content"] == [signed, use]
    unsigned_only = status(200, {**whole, "content": [unsigned, use]})
    assert (await ask(models, name, unsigned_only, provider=provider, tools=(WEATHER,))).extra == {}


async def test_anthropic_gets_no_answer_back_that_ends_with_a_thought(provider: FakeProvider, models: Models) -> None:
    name = "claude:claude-sonnet-5-5"
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    whole = status(200, {"content": [signed, {"type": "text", "text": " "}], "stop_reason": "max_tokens"})
    reply = await ask(models, name, whole, provider=provider)
    said = Message(role="assistant", content=reply.content, extra=reply.extra)
    provider.asked.clear()
    await ask(models, name, whole, provider=provider, messages=(*HELLO, said, Message(role="user", content="And?")))
    assert [each["role"] for each in provider.asked[0].body["messages"]] == ["user", "user"]


@pytest.mark.parametrize("earlier", [[], [message("Well.")]])
async def test_openai_gets_no_thought_back_that_led_to_nothing(
    provider: FakeProvider, models: Models, earlier: list[dict[str, Any]]
) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
    whole = status(200, response(*earlier, thought, status="incomplete"))
    assert (await ask(models, "gpt:gpt-5", whole, provider=provider)).extra == {}


async def test_half_of_a_surrogate_pair_in_a_thought_leaves_a_reply_that_can_be_stored(
    provider: FakeProvider, models: Models
) -> None:
    called = {**CALL, "id": "c\ud83d"}
    answer = completion({"content": None, "reasoning_content": "Hm \ud83d", "tool_calls": [called]}, "tool_calls")
    reply = await ask(models, "lab:m-1", status(200, answer | {"model": "m\ud83d"}), provider=provider)
    assert reply.extra == {}
    assert (reply.tool_calls[0].id, reply.model) == ("c?", "m?")


async def test_text_that_comes_only_with_the_end_of_a_stream_is_delivered_once(
    provider: FakeProvider, models: Models
) -> None:
    provider.answers = [stream(event("response.completed", response=response(message("At once."))))]
    pieces = Pieces()
    reply = await models.resolve("gpt:gpt-5")[0].answer(ModelRequest(messages=HELLO), on_text=pieces.take)
    assert (pieces, reply.content) == (["At once."], "At once.")


async def test_fragments_of_calls_with_the_same_id_and_name_stay_apart(provider: FakeProvider, models: Models) -> None:
    def fragment(index: int, arguments: str, **function: str) -> str:
        given = {**function, "arguments": arguments}
        return chunk({"tool_calls": [{"index": index, "id": "c_1", "function": given}]})

    provider.answers = [
        stream(
            fragment(0, '{"city": ', name="geo_get_weather"),
            fragment(1, '{"city": ', name="geo_get_weather"),
            fragment(0, '"Rome"}'),
            fragment(1, '"Oslo"}'),
            chunk({}, "tool_calls"),
            DONE,
        )
    ]
    reply = await models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO), on_text=Pieces().take)
    assert [each.arguments for each in reply.tool_calls] == [{"city": "Rome"}, {"city": "Oslo"}]
