"""A model behind a provider's API: one call of the library a step, without retries, and nothing kept but the
connection. The library and the SDK of the one provider are imported with the first call, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.errors import ConfigError, ModelError
from clew.llm.messages import ToolCall
from clew.llm.model_catalogue import ModelInfo
from clew.llm.providers import response_limits
from clew.llm.providers.provider import Provider
from clew.llm.providers.provider_errors import as_model_errors
from clew.llm.providers.provider_messages import (
    calls_of,
    extra_of,
    messages_out,
    names_of,
    storable,
    text_of,
    tools_out,
    usage_of,
)
from clew.llm.requests import FinishReason, ModelReply, ModelRequest, OnText

if TYPE_CHECKING:
    from pydantic_ai import messages as wire
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import ModelRequestParameters

MAX_ANSWER = 16_384
"""Tokens of an answer where the caller sets no limit and the provider wants one."""
Told = Callable[[], AbstractContextManager[None]]
_FINISHES: dict[str, FinishReason] = {"length": "length", "content_filter": "refused"}


class WireModel:
    """A model at a provider. `read_key` is called once, with the first request, and may block."""

    def __init__(self, provider: Provider, info: ModelInfo, read_key: Callable[[], str]) -> None:
        self.provider = provider
        self.info = info
        self._read_key = read_key
        self._key = ""
        self._client: Any = None
        self._models: dict[str, LibraryModel] = {}
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        return f"WireModel({self.info.full_name})"

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """See `Model`. An answer that is too long or too slow is a ModelError: see `response_limits`."""
        try:
            async with asyncio.timeout(response_limits.MAX_SECONDS) as whole:
                return await self._ask(await self._opened(request.model or self.info.name), request, on_text)
        except TimeoutError:
            if not whole.expired():
                raise
            raise response_limits.took_too_long(self.provider.name) from None

    async def close(self) -> None:
        """Close all connections. The model may be used again."""
        client, self._client = self._client, None
        self._models.clear()
        if client is not None:
            await client.close()

    async def _opened(self, name: str) -> LibraryModel:
        async with self._opening:
            if self._client is None:
                self._key, self._client = await asyncio.to_thread(self._connect)
            if name not in self._models:
                self._models[name] = await asyncio.to_thread(_library_model, self.provider, self._client, name)
            return self._models[name]

    def _connect(self) -> tuple[str, Any]:
        try:
            key = self._read_key()
        except ConfigError as error:
            raise ModelError("config", error.message, hint=error.hint) from None
        return key, _open_client(self.provider, key)

    async def _ask(self, model: LibraryModel, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        from pydantic_ai.direct import model_request  # was imported above, in a thread

        names = names_of(request.messages, request.tools)
        asked: dict[str, Any] = {
            "model": model,
            "messages": messages_out(request.messages, names, self.provider.name),
            "model_settings": self._settings(request),
            "model_request_parameters": _parameters(request, names),
        }
        told = partial(as_model_errors, self.provider, model.model_name, self._key)
        if on_text is None:
            with told():
                found = await model_request(**asked)
                response_limits.check_whole(found)
            content = text_of(found)
        else:
            found, content = await _stream(asked, told, on_text)
        calls = calls_of(found, names)
        return ModelReply(
            content=content,
            tool_calls=calls,
            finish_reason=_finish(found, calls),
            model=found.model_name or model.model_name,
            usage=usage_of(found.usage, self.info),
            extra=extra_of(found, self.provider.name),
        )

    def _settings(self, request: ModelRequest) -> Any:
        settings: dict[str, Any] = {"max_retries": 0}
        limit = request.max_tokens
        if limit is None and self.provider.kind == "anthropic":
            limit = min(self.info.output_tokens, MAX_ANSWER)
        if limit is not None:
            settings["max_tokens"] = limit
        if request.tools and self.provider.kind == "anthropic":
            settings["cache"] = True  # with tools there are further calls, and all begin alike
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        if self.provider.kind == "openai":
            settings["openai_store"] = False  # the trail is where a conversation is kept
        return settings


async def _stream(asked: dict[str, Any], told: Told, on_text: OnText) -> tuple[wire.ModelResponse, str]:
    """The answer and its text. What `on_text` raises is its own, and passes as it is."""
    from pydantic_ai.direct import model_request_stream  # was imported above, in a thread

    pieces: list[str] = []
    measure = response_limits.ResponseSize()
    async with AsyncExitStack() as stack:
        with told():
            stream = await stack.enter_async_context(model_request_stream(**asked))
        events = aiter(stream)
        while True:
            with told():
                event = await anext(events, None)
                measure.add(event)
            if event is None:
                break
            if piece := _piece(event):
                pieces.append(piece)
                await on_text(piece)
        with told():
            found = stream.get()
            if found.finish_reason is None:  # the connection ended in order, and the answer did not
                raise ValueError
        return found, "".join(pieces)


def _piece(event: Any) -> str:
    """The new text in an event; empty for all that is no text."""
    from pydantic_ai import messages as wire  # was imported above, in a thread

    match event:
        case wire.PartStartEvent(part=wire.TextPart(content=piece)):
            return storable(piece)
        case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=piece)):
            return storable(piece)
        case _:
            return ""


def _parameters(request: ModelRequest, names: Any) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition  # was imported above, in a thread

    tools = tools_out(request.tools, names)
    if request.output_schema is None:
        return ModelRequestParameters(function_tools=tools)
    wanted = OutputObjectDefinition(json_schema=request.output_schema, name="answer", strict=False)
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=wanted)


def _finish(response: wire.ModelResponse, calls: tuple[ToolCall, ...]) -> FinishReason:
    reason = _FINISHES.get(response.finish_reason or "")
    return reason or ("tool_calls" if calls else "stop")


def _open_client(provider: Provider, key: str) -> Any:
    """The SDK's client: no retries, no following of redirects, which could carry the key elsewhere, and no end of a
    response that is never reached."""
    import httpx2

    timeout = httpx2.Timeout(provider.timeout_seconds, connect=min(provider.timeout_seconds, 10.0))
    given: dict[str, Any] = {"api_key": key or "none", "base_url": provider.base_url, "max_retries": 0}
    http: dict[str, Any] = {
        "timeout": timeout,
        "follow_redirects": False,
        "headers": response_limits.PLAIN,
        "event_hooks": {"response": [response_limits.bound_response]},
    }
    if provider.kind == "anthropic":
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        return AsyncAnthropic(http_client=DefaultAsyncHttpxClient(**http), timeout=timeout, **given)
    from openai import AsyncOpenAI
    from openai import DefaultAsyncHttpxClient as HttpxClient

    return AsyncOpenAI(http_client=HttpxClient(**http), timeout=timeout, **given)


def _library_model(provider: Provider, client: Any, name: str) -> LibraryModel:
    import pydantic_ai.direct  # noqa: F401  # imported here, in a thread, so that the first call does not block the loop

    if provider.kind == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        own = AnthropicProvider(anthropic_client=client)
        return AnthropicModel(name, provider=own, profile={"json_schema_transformer": None})
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    profile = OpenAIModelProfile(json_schema_transformer=None, openai_chat_streaming_requires_finish_reason=True)
    if provider.kind == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=client), profile=profile)
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    compatible = OpenAICompatibleProvider(provider.name, openai_client=client)
    return OpenAIChatModel(name, provider=compatible, profile=profile)
