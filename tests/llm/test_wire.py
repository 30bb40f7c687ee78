"""Providers over the wire: what is sent, what is streamed, what every failure becomes, and that a cancelled call closes
its connection. The servers are ours and run on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.config import ProviderConfig
from clew.errors import ModelError
from clew.llm.messages import Message, ToolCall, ToolSpec
from clew.llm.model import Answer, ModelRequest, Models, open_models
from tests.llm.conftest import configured
from tests.llm.fake_provider import (
    DONE,
    FakeProvider,
    Write,
    block,
    chunk,
    completion,
    current,
    event,
    message_end,
    message_start,
    status,
    stream,
    usage,
)

KEY = "sk-lab-0123456789abcdef0123"
HELLO = (Message(role="system", content="Be brief."), Message(role="user", content="Hello"))
WEATHER = ToolSpec(
    name="geo/get.weather",
    description="The weather of a city.",
    schema={
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "default": 1}},
        "patternProperties": {"^x-": {}},
    },
)


class Pieces(list[str]):
    async def take(self, piece: str) -> None:
        self.append(piece)


async def ask(models: Models, name: str, *answers: Write, provider: FakeProvider, **request: Any) -> Answer:
    provider.answers = list(answers)
    model, _ = models.resolve(name)
    return await model.answer(ModelRequest(**{"messages": HELLO, **request}))


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


def _responses(text: str, *, is_whole: bool = True) -> str:
    """Events of OpenAI's own protocol."""
    item: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    part = {"type": "output_text", "text": "", "annotations": []}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "output": [], "tools": []}
    base |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress"}
    begun = [
        event("response.created", sequence_number=0, response=base),
        event("response.output_item.added", sequence_number=1, output_index=0, item=item),
        event(
            "response.content_part.added",
            sequence_number=2,
            item_id="msg_1",
            output_index=0,
            content_index=0,
            part=part,
        ),
        event(
            "response.output_text.delta",
            sequence_number=3,
            item_id="msg_1",
            output_index=0,
            content_index=0,
            delta=text,
            logprobs=[],
        ),
    ]
    done = {**item, "status": "completed", "content": [{**part, "text": text}]}
    counted = {
        "input_tokens": 8,
        "output_tokens": 2,
        "total_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    ended = [
        event("response.output_item.done", sequence_number=4, output_index=0, item=done),
        event(
            "response.completed",
            sequence_number=5,
            response={**base, "status": "completed", "output": [done], "usage": counted},
        ),
    ]
    return "".join([*begun, *(ended if is_whole else [])])


FAILURES = [
    ("lab", status(429, {"error": {"message": "slow down"}}, {"retry-after": "7"}), "rate", True),
    ("lab", status(429, {"error": {"message": "pay", "code": "insufficient_quota"}}), "rate", False),
    ("lab", status(500, {"error": {"message": f"boom, your key is {KEY}"}}), "server", True),
    ("lab", status(503, "<html>no</html>"), "server", True),
    ("lab", status(401, {"error": {"message": f"{KEY} is bad"}}), "auth", False),
    ("lab", status(404, {"error": {"message": "unknown model"}}), "config", False),
    (
        "lab",
        status(400, {"error": {"message": "context length", "code": "context_length_exceeded"}}),
        "too_long",
        False,
    ),
    ("lab", status(400, {"error": {"message": "no\nsuch\x1b[31m thing"}}), "refused", False),
    ("lab", status(200, "this is no JSON"), "malformed", True),
    ("lab", status(302, "", {"location": "http://127.0.0.1:1/elsewhere"}), "malformed", True),
    ("lab", stream(chunk({"content": "Hel"}), "data: {broken\n\n", DONE), "malformed", True),
    ("lab", stream(chunk({"content": "Hel"}), "data: [1, 2]\n\n", DONE), "malformed", True),
    ("lab", stream(chunk({"content": "Hel"}), DONE), "malformed", True),
    ("lab", stream(chunk({"content": "Hel"}), ending="cut"), "unreachable", True),
    (
        "claude",
        status(429, {"type": "error", "error": {"type": "rate_limit_error"}}, {"retry-after": "7"}),
        "rate",
        True,
    ),
    ("claude", status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "o"}}), "server", True),
    ("claude", status(401, {"type": "error", "error": {"type": "authentication_error"}}), "auth", False),
    (
        "claude",
        stream(message_start(), event("error", error={"type": "overloaded_error", "message": "o"})),
        "server",
        True,
    ),
    ("claude", stream(message_start(), "event: content_block_delta\ndata: {nope\n\n"), "malformed", True),
    ("claude", stream(message_start(), ending="cut"), "unreachable", True),
    ("claude", stream(message_start(), block(0, {"type": "text", "text": "Hel"})), "malformed", True),
    ("gpt", stream(_responses("Hel", is_whole=False)), "malformed", True),
    ("gpt", status(429, {"error": {"message": "slow down"}}, {"retry-after": "7"}), "rate", True),
]


@pytest.mark.req("O21")
@pytest.mark.parametrize(("name", "answer", "kind", "is_retryable"), FAILURES)
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_each_failure_is_one_line_of_a_kind_after_one_call_and_never_holds_the_key(
    provider: FakeProvider,
    models: Models,
    name: str,
    answer: Write,
    kind: str,
    is_retryable: bool,
    is_streamed: bool,
) -> None:
    provider.answers = [answer]
    model, _ = models.resolve(f"{name}:claude-haiku-4-5" if name == "claude" else f"{name}:m-1")
    with pytest.raises(ModelError) as told:
        await model.answer(ModelRequest(messages=HELLO), on_text=Pieces().take if is_streamed else None)
    error = told.value
    if is_streamed:
        assert (error.kind, error.retryable) == (kind, is_retryable), str(error)
        assert error.retry_after == (7.0 if kind == "rate" and is_retryable else None)
    assert str(error).isprintable()
    assert error.hint
    assert KEY not in str(error)
    assert KEY not in repr(error)
    assert len(provider.asked) == 1


async def test_what_the_reader_of_the_text_raises_is_no_failure_of_the_model(
    provider: FakeProvider, models: Models
) -> None:
    async def fail(piece: str) -> None:
        raise ValueError("the reader's own")

    provider.answers = [stream(chunk({"content": "Hel"}), ending="hang")]
    with pytest.raises(ValueError, match="the reader's own"):
        await models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO), on_text=fail)
    await asyncio.wait_for(provider.gone.wait(), 60)


async def test_arguments_that_are_no_json_object_are_malformed(provider: FakeProvider, models: Models) -> None:
    for arguments in ('{"city": "Rom', "[1]", '"text"', '{"a": NaN}'):
        called = {"id": "c", "type": "function", "function": {"name": "geo_get_weather", "arguments": arguments}}
        with pytest.raises(ModelError, match="no JSON object") as told:
            await ask(
                models,
                "lab:m-1",
                status(200, completion({"content": None, "tool_calls": [called]}, "tool_calls")),
                provider=provider,
                tools=(WEATHER,),
            )
        assert told.value.kind == "malformed"


async def test_an_address_where_nobody_listens_is_unreachable(calls_allowed: None, tmp_path: Path) -> None:
    tables = {"lab": ProviderConfig(base_url="http://127.0.0.1:1/v1")}
    models = open_models(configured(tmp_path, tables), {})
    with pytest.raises(ModelError, match=r"lab cannot be reached at http://127\.0\.0\.1:1/v1") as told:
        await models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO))
    assert (told.value.kind, told.value.retryable) == ("unreachable", True)
    await models.close()


async def test_a_provider_that_says_nothing_for_too_long_is_a_timeout(provider: FakeProvider, tmp_path: Path) -> None:
    provider.answers = [stream(chunk({"content": "Hel"}), ending="hang")]
    tables = {"lab": ProviderConfig(base_url=f"{provider.url}/v1", timeout_seconds=0.2)}
    models = open_models(configured(tmp_path, tables), {})
    with pytest.raises(ModelError, match=r"did not answer within 0\.2 seconds") as told:
        await models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO), on_text=Pieces().take)
    assert told.value.kind == "timeout"
    await models.close()


@pytest.mark.parametrize("name", ["lab:m-1", "claude:claude-haiku-4-5", "gpt:gpt-5"])
async def test_cancelling_in_mid_stream_closes_the_connection_at_once(
    provider: FakeProvider, models: Models, name: str
) -> None:
    text = {"type": "text", "text": ""}
    first = {
        "lab": chunk({"content": "Once "}),
        "claude": message_start()
        + event("content_block_start", index=0, content_block=text)
        + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Once "}),
        "gpt": _responses("Once ", is_whole=False),
    }[name.partition(":")[0]]
    provider.answers = [stream(first, ending="hang")]
    came = asyncio.Event()

    async def take(piece: str) -> None:
        came.set()

    model, _ = models.resolve(name)
    asking = asyncio.ensure_future(model.answer(ModelRequest(messages=HELLO), on_text=take))
    await asyncio.wait_for(came.wait(), 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(provider.gone.wait(), 60)


async def test_cancelling_before_the_first_byte_closes_the_connection(provider: FakeProvider, models: Models) -> None:
    arrived = asyncio.Event()

    async def never(writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await asyncio.Event().wait()

    provider.answers = [never]
    asking = asyncio.ensure_future(models.resolve("lab:m-1")[0].answer(ModelRequest(messages=HELLO)))
    await asyncio.wait_for(arrived.wait(), 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(provider.gone.wait(), 60)


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
    provider.answers = [stream(_responses("Good day."))]
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


async def test_calls_are_forbidden_where_the_switch_says_so(
    provider: FakeProvider, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pydantic_ai.models.ALLOW_MODEL_REQUESTS", False)
    with pytest.raises(ModelError, match="may not ask any model"):
        await ask(models, "lab:m-1", status(200, completion({"content": "no"})), provider=provider)
    assert provider.asked == []


def test_neither_the_library_nor_any_provider_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from clew.llm.model import open_models; from clew.config import Config\n"
        "open_models(Config(), {'OPENAI_API_KEY': 'x'}).resolve('fast')\n"
        "print([name for name in ('pydantic', 'pydantic_ai', 'openai', 'anthropic', 'httpx2', 'yaml', 'keyring')"
        " if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
