"""Providers over the wire: requests and streams. The servers are ours and run on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.config import ProviderConfig
from clew.llm.messages import Message, ToolCall
from clew.llm.model import ModelRequest, Models, open_models
from tests.llm.conftest import configured
from tests.llm.fake_provider import (
    DONE,
    FakeProvider,
    block,
    chunk,
    completion,
    current,
    message_end,
    message_start,
    status,
    stream,
    usage,
)
from tests.llm.wire_events import HELLO, KEY, WEATHER, Pieces, ask, responses


async def test_text_is_streamed_in_pieces_that_make_up_the_answer(provider: FakeProvider, models: Models) -> None:
    provider.answers = [
        stream(
            chunk({"role": "assistant", "content": "Grüß "}),
            chunk({"content": "Gott 👋"}),
            chunk({}, "stop"),
            usage(10, 2, 4),
            DONE,
        )
    ]
    model, _ = models.resolve("lab:m-1")
    pieces = Pieces()
    answer = await model.answer(ModelRequest(messages=HELLO, temperature=0.5, max_tokens=50), on_text=pieces.take)
    assert pieces == ["Grüß ", "Gott 👋"]
    assert (answer.content, answer.finish_reason, answer.model) == ("Grüß Gott 👋", "stop", "m-1")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cached_tokens) == (10, 2, 4)
    [asked] = provider.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert asked.body["temperature"] == 0.5
    assert 50 in (asked.body.get("max_tokens"), asked.body.get("max_completion_tokens"))


@pytest.mark.req("O21")
async def test_tools_go_out_as_they_are_and_calls_come_back_under_their_own_names(
    provider: FakeProvider, models: Models
) -> None:
    called = {"id": "c_7", "type": "function", "function": {"name": "geo_get_weather", "arguments": '{"city": "Köln"}'}}
    answer = await ask(
        models,
        "lab:m-1",
        status(200, completion({"content": None, "tool_calls": [called]}, "tool_calls")),
        provider=provider,
        tools=(WEATHER,),
    )
    assert answer.tool_calls == (ToolCall(id="c_7", name="geo/get.weather", arguments={"city": "Köln"}),)
    assert (answer.content, answer.finish_reason) == ("", "tool_calls")
    [sent] = provider.asked[0].body["tools"]
    assert sent["function"]["name"] == "geo_get_weather"
    assert sent["function"]["parameters"] == WEATHER.schema
    assert "strict" not in sent["function"]


async def test_a_call_that_is_streamed_in_fragments_is_put_together(provider: FakeProvider, models: Models) -> None:
    def fragment(arguments: str, **more: Any) -> str:
        call = {"index": 0, "function": {"arguments": arguments, **more.pop("function", {})}, **more}
        return chunk({"tool_calls": [call]})

    provider.answers = [
        stream(
            chunk({"content": "Let me look."}),
            fragment("", id="c_1", type="function", function={"name": "geo_get_weather", "arguments": ""}),
            fragment('{"city": "'),
            fragment('Oslo", "days": 3}'),
            chunk({}, "tool_calls"),
            DONE,
        )
    ]
    model, _ = models.resolve("lab:m-1")
    pieces = Pieces()
    answer = await model.answer(ModelRequest(messages=HELLO, tools=(WEATHER,)), on_text=pieces.take)
    assert answer.content == "".join(pieces) == "Let me look."
    assert answer.tool_calls == (ToolCall(id="c_1", name="geo/get.weather", arguments={"city": "Oslo", "days": 3}),)


async def test_a_whole_conversation_with_calls_and_results_is_sent(provider: FakeProvider, models: Models) -> None:
    history = (
        *HELLO,
        Message(
            role="assistant",
            content="Two at once.",
            tool_calls=(
                ToolCall(id="a", name="geo/get.weather", arguments={"city": "Rome"}),
                ToolCall(id="b", name="gone tool", arguments={}),
            ),
        ),
        Message(role="tool", content="21 °C", tool_call_id="a", name="geo/get.weather"),
        Message(role="tool", content="no such tool", tool_call_id="b", name="gone tool"),
    )
    await ask(
        models,
        "lab:m-1",
        status(200, completion({"content": "Warm."})),
        provider=provider,
        messages=history,
        tools=(WEATHER,),
    )
    sent = provider.asked[0].body["messages"][2:]
    assert [each["role"] for each in sent] == ["assistant", "tool", "tool"]
    assert [each["function"]["name"] for each in sent[0]["tool_calls"]] == ["geo_get_weather", "gone_tool"]
    assert json.loads(sent[0]["tool_calls"][0]["function"]["arguments"]) == {"city": "Rome"}
    assert [(each["tool_call_id"], each["content"]) for each in sent[1:]] == [("a", "21 °C"), ("b", "no such tool")]


async def test_anthropic_streams_text_thought_and_tool_use_and_gets_the_thought_back(
    provider: FakeProvider, models: Models
) -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Where?"},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
    )
    text = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me "}, _text_delta("look."))
    call = block(
        2,
        {"type": "tool_use", "id": "tu_1", "name": "geo_get_weather", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"city": "Par'},
        {"type": "input_json_delta", "partial_json": 'is"}'},
    )
    provider.answers = [stream(message_start(20, 5), thought, text, call, message_end("tool_use", 9))]
    model, info = models.resolve("claude:claude-sonnet-5-5")
    pieces = Pieces()
    answer = await model.answer(ModelRequest(messages=HELLO, tools=(WEATHER,)), on_text=pieces.take)
    assert answer.content == "".join(pieces) == "Let me look."
    assert answer.tool_calls == (ToolCall(id="tu_1", name="geo/get.weather", arguments={"city": "Paris"}),)
    assert (answer.finish_reason, answer.model) == ("tool_calls", "claude-sonnet-5-5")
    assert answer.usage.output_tokens == 9
    assert answer.usage.cost == info.cost_of(answer.usage.input_tokens, 9, answer.usage.cached_tokens)
    asked = provider.asked[0]
    assert asked.path.startswith("/v1/messages")
    assert asked.body["system"] == "Be brief." or asked.body["system"][0]["text"] == "Be brief."
    assert asked.body["tools"][0]["input_schema"] == WEATHER.schema
    assert "cache_control" in json.dumps(asked.body)

    stored = json.loads(json.dumps(answer.extra))
    history = (
        *HELLO,
        Message(role="assistant", content=answer.content, tool_calls=answer.tool_calls, extra=stored),
        Message(role="tool", content="18 °C", tool_call_id="tu_1", name="geo/get.weather"),
    )
    provider.answers = [
        stream(message_start(), block(0, {"type": "text", "text": ""}, _text_delta("18.")), message_end())
    ]
    final = await model.answer(ModelRequest(messages=history, tools=(WEATHER,)), on_text=Pieces().take)
    assert final.content == "18."
    [said] = [each for each in provider.asked[1].body["messages"] if each["role"] == "assistant"]
    kinds = [each["type"] for each in said["content"]]
    assert kinds == ["thinking", "text", "tool_use"]
    assert said["content"][0]["signature"] == "c2lnbmVk"


def _text_delta(text: str) -> dict[str, str]:
    return {"type": "text_delta", "text": text}


async def test_openai_is_asked_by_its_own_protocol_and_told_to_keep_nothing(
    provider: FakeProvider, models: Models
) -> None:
    provider.answers = [stream(responses("Good day."))]
    model, _ = models.resolve("gpt:gpt-5")
    pieces = Pieces()
    answer = await model.answer(ModelRequest(messages=HELLO, tools=(WEATHER,)), on_text=pieces.take)
    assert answer.content == "".join(pieces) == "Good day."
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (8, 2)
    asked = provider.asked[0]
    assert asked.path == "/v1/responses"
    assert asked.body["store"] is False
    assert asked.body["tools"][0]["parameters"] == WEATHER.schema
    assert asked.body["tools"][0]["strict"] is False


@pytest.mark.req("SYL-99")
async def test_a_switch_in_the_settings_changes_the_model_of_the_call(provider: FakeProvider, tmp_path: Path) -> None:
    tables = {"lab": ProviderConfig(base_url=f"{provider.url}/v1")}
    for fast, agent in (("lab:small", "lab:own"), ("lab:tiny", "lab:other")):
        roles = {"fast": fast, "strong": "lab:big", "default": "lab:plain"}
        config = configured(tmp_path, tables, **roles, roles={"librarian": agent, "guide": "fast"})  # type: ignore[arg-type]
        models = open_models(config, {})
        provider.answers, provider.asked = [status(200, completion({"content": "ok"}))], []
        for agent_id, defined in (("guide", "strong"), ("librarian", ""), ("academic", "strong"), ("other", "")):
            model, info = models.for_agent(agent_id, defined)
            await model.answer(ModelRequest(messages=HELLO, model=info.name))
        called = [each.body["model"] for each in provider.asked]
        assert called == [fast.removeprefix("lab:"), agent.removeprefix("lab:"), "big", "plain"]
        await models.close()


async def test_many_calls_at_once_each_get_their_own_answer(provider: FakeProvider, models: Models) -> None:
    async def echo(writer: asyncio.StreamWriter) -> None:
        await status(200, completion({"content": current.get().body["messages"][-1]["content"]}))(writer)

    provider.answers = [echo]
    model, _ = models.resolve("lab:m-1")

    async def one(number: int) -> str:
        said = await model.answer(ModelRequest(messages=(Message(role="user", content=f"n{number}"),)))
        return said.content

    found = await asyncio.gather(*(one(number) for number in range(20)))
    assert found == [f"n{number}" for number in range(20)]


async def test_halves_of_surrogate_pairs_become_text_that_a_trail_can_hold(
    provider: FakeProvider, models: Models
) -> None:
    answer = await ask(models, "lab:m-1", status(200, completion({"content": "bad \ud83d end"})), provider=provider)
    assert answer.content.encode() == b"bad ? end"


def test_no_http_client_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from clew.llm.model import open_models; from clew.config import Config\n"
        "open_models(Config(), {'OPENAI_API_KEY': 'x'}).resolve('fast')\n"
        "print([name for name in ('pydantic', 'httpx', 'httpx2', 'yaml', 'keyring')"
        " if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
