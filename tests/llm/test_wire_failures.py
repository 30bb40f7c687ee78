"""The errors for all failures over the wire; a cancelled call closes its connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clew.config import ProviderConfig
from clew.errors import ModelError
from clew.llm.messages import Message
from clew.llm.model import ModelRequest, Models, open_models
from clew.llm.providers import remote_model
from tests.llm.conftest import configured
from tests.llm.fake_provider import (
    DONE,
    FakeProvider,
    Write,
    block,
    chunk,
    completion,
    event,
    message_start,
    status,
    stream,
)
from tests.llm.wire_events import HELLO, KEY, WEATHER, Pieces, ask, responses

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
    ("lab", status(200, {"error": {"code": 402, "type": "server_error"}}), "rate", False),
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
    ("gpt", stream(responses("Hel", is_whole=False)), "malformed", True),
    ("gpt", status(429, {"error": {"message": "slow down"}}, {"retry-after": "7"}), "rate", True),
    ("lab", status(408, {"error": {"message": "the client was slow"}}), "timeout", True),
]
REPORTED = [
    ("lab", {"error": {"type": "overloaded_error"}}, "server"),
    ("lab", {"error": "out of order"}, "server"),
    ("claude", {"type": "error", "error": {"type": "overloaded_error", "message": "o"}}, "server"),
    ("claude", {"type": "error", "error": {"type": "authentication_error"}}, "auth"),
    ("claude", {"error": {"message": "prompt is too long"}}, "too_long"),
    ("gpt", {"error": {"message": "no such model", "code": "model_not_found"}}, "config"),
    ("gpt", {"error": "out of order"}, "server"),
]


@pytest.mark.req("O21")
@pytest.mark.parametrize(
    ("name", "answer", "kind", "is_retryable", "is_streamed"),
    [*((*each, True) for each in FAILURES), *((*each, False) for each in FAILURES if each[2] in ("rate", "auth"))],
)
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


@pytest.mark.req("O21")
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("name", "body", "kind"), REPORTED)
async def test_an_error_in_an_answer_with_the_status_200_is_what_the_provider_reports(
    provider: FakeProvider, models: Models, name: str, body: object, kind: str, is_streamed: bool
) -> None:
    provider.answers = [status(200, body)]
    model, _ = models.resolve(f"{name}:claude-haiku-4-5" if name == "claude" else f"{name}:m-1")
    with pytest.raises(ModelError) as told:
        await model.answer(ModelRequest(messages=HELLO), on_text=Pieces().take if is_streamed else None)
    assert told.value.kind == kind, str(told.value)


async def test_an_error_of_the_text_callback_is_no_failure_of_the_model(provider: FakeProvider, models: Models) -> None:
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


async def test_a_call_without_a_name_is_malformed(provider: FakeProvider, models: Models) -> None:
    called = {"id": "c", "type": "function", "function": {"arguments": "{}"}}
    answer = completion({"content": None, "tool_calls": [called]}, "tool_calls")
    with pytest.raises(ModelError, match="without a name") as told:
        await ask(models, "lab:m-1", status(200, answer), provider=provider, tools=(WEATHER,))
    assert (told.value.kind, told.value.retryable) == ("malformed", True)


async def test_half_of_a_surrogate_pair_in_a_request_is_no_fault_of_the_provider(
    provider: FakeProvider, models: Models
) -> None:
    broken = Message(role="user", content="Hello \ud83d")
    with pytest.raises(ModelError, match="half of a surrogate pair") as told:
        await ask(models, "lab:m-1", status(200, completion({"content": "no"})), provider=provider, messages=(broken,))
    assert (told.value.kind, told.value.retryable) == ("refused", False)
    assert provider.asked == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://me:proxyword@127.0.0.1:1"),
        ("ALL_PROXY", "foo://x"),
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/no/such/file.pem"),
    ],
)
async def test_settings_of_the_environment_that_cannot_be_used_are_named(
    provider: FakeProvider, models: Models, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelError, match="environment") as told:
        await ask(models, "lab:m-1", status(200, completion({"content": "no"})), provider=provider)
    assert (told.value.kind, told.value.retryable) == ("config", False)
    assert variable in told.value.hint
    assert "proxyword" not in f"{told.value} {told.value.hint}"


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
        "gpt": responses("Once ", is_whole=False),
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


async def test_calls_are_forbidden_where_the_switch_says_so(
    provider: FakeProvider, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_model, "is_allowed", False)
    with pytest.raises(ModelError, match="may not ask any model"):
        await ask(models, "lab:m-1", status(200, completion({"content": "no"})), provider=provider)
    assert provider.asked == []
