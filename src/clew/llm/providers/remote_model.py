"""A model behind a provider's API: one HTTP request per call, without retries, and without state except the connection.
The HTTP client is imported with the first call, in a thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, aclosing
from functools import partial
from typing import TYPE_CHECKING

from clew.errors import ConfigError, InvalidInput, ModelError
from clew.llm.messages import ToolCall, Usage
from clew.llm.model_catalogue import ModelInfo, ProviderKind
from clew.llm.providers import response_limits
from clew.llm.providers.anthropic_messages import AnthropicMessages
from clew.llm.providers.chat_completions import ChatCompletions
from clew.llm.providers.event_stream import read_events
from clew.llm.providers.openai_responses import OpenAIResponses
from clew.llm.providers.provider import Provider
from clew.llm.providers.provider_errors import as_model_errors, unusable_environment
from clew.llm.providers.tool_names import MAX_NAME, ToolNames, names_of
from clew.llm.providers.wire_format import (
    ProviderFailure,
    ProviderReply,
    WireCall,
    WireFormat,
    WireRequest,
    read_answer,
    read_json,
    storable,
)
from clew.llm.requests import ModelReply, ModelRequest, OnText
from clew.tls import tls_context
from clew.trail.model.breadcrumb import encode_canonical

if TYPE_CHECKING:  # the HTTP client takes a tenth of a second to import
    import httpx2

is_allowed = True
"""Whether this process may call models at all. Tests set it to False."""
CONNECT_SECONDS = 10.0
NO_LIST = (404, 405, 501)
"""The status of a server that does not list its models."""
DONE = "[DONE]"
"""The data of the event that ends a stream of chat completions."""
_FORMATS: dict[ProviderKind, WireFormat] = {
    "anthropic": AnthropicMessages(),
    "openai": OpenAIResponses(),
    "openai-compatible": ChatCompletions(),
}
_Told = Callable[[], AbstractContextManager[None]]


class WireModel:
    """A model at a provider. `read_key` is called once, with the first request, and may block."""

    def __init__(self, provider: Provider, info: ModelInfo, read_key: Callable[[], str]) -> None:
        self.provider = provider
        self.info = info
        self._read_key = read_key
        self._key = ""
        self._format = _FORMATS[provider.kind]
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        return f"WireModel({self.info.full_name})"

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """See `Model`. Also raises ModelError for an answer that is too long or too slow: see `response_limits`."""
        if not is_allowed:
            raise ModelError("config", "this process may not ask any model", hint="It is forbidden in tests")
        try:
            async with asyncio.timeout(response_limits.MAX_SECONDS) as whole:
                return await self._ask(await self._opened(), request, on_text)
        except TimeoutError:
            if not whole.expired():
                raise
            raise response_limits.took_too_long(self.provider.name) from None

    async def list_models(self, *, seconds: float) -> tuple[str, ...]:
        """The models that the provider lists, free of charge; empty if the provider has no list. Raises ModelError if
        the provider does not answer in time or does not accept the key."""
        if not is_allowed:
            raise ModelError("config", "this process may not ask any model", hint="It is forbidden in tests")
        client = await self._opened()
        url = f"{self.provider.base_url.rstrip('/')}/{self._format.models_path}"
        with as_model_errors(self.provider, self.info.name, self._key):
            try:
                async with asyncio.timeout(seconds):
                    response = await client.send(client.build_request("GET", url), stream=True)
                    try:
                        await _check(response)
                        return _listed(await _whole(response))
                    finally:
                        await response.aclose()
            except TimeoutError:
                reason = f"{self.provider.name} did not answer within {seconds:g} seconds"
                raise ModelError(
                    "timeout", reason, retryable=True, hint="Check that it runs, and your network"
                ) from None
            except ProviderFailure as error:
                if error.status not in NO_LIST:
                    raise
                return ()

    async def close(self) -> None:
        """Close all connections. The model may be used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _opened(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is not None:
                return self._client
            self._key, opened = await asyncio.to_thread(self._connect)
            self._client = opened
            return opened

    def _connect(self) -> tuple[str, httpx2.AsyncClient]:
        try:
            key = self._read_key()
        except ConfigError as error:
            raise ModelError("config", error.message, hint=error.hint) from None
        return key, _open_client(self.provider, self._format.headers(key))

    async def _ask(self, client: httpx2.AsyncClient, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        names = names_of(request.messages, request.tools)
        model = request.model or self.info.name
        asked = WireRequest(
            provider=self.provider,
            info=self.info,
            model=model,
            asked=request,
            names=names,
            is_streamed=on_text is not None,
        )
        told = partial(as_model_errors, self.provider, model, self._key)
        found = await self._send(client, self._format.body(asked), told, on_text)
        return ModelReply(
            content=storable(found.text),
            tool_calls=tuple(_call_of(each, names) for each in found.calls),
            finish_reason=found.finish,
            model=storable(found.model) or model,
            usage=_usage_of(found, self.info),
            extra=_extra_of(found, self.provider),
        )

    async def _send(
        self, client: httpx2.AsyncClient, body: dict[str, object], told: _Told, on_text: OnText | None
    ) -> ProviderReply:
        """The reply to one request. Errors of `on_text` are not converted."""
        url = f"{self.provider.base_url.rstrip('/')}/{self._format.path}"
        content, kind = _encoded(body), {"content-type": "application/json"}
        with told():
            request = client.build_request("POST", url, content=content, headers=kind)
            response = await client.send(request, stream=True)
        try:
            with told():
                await _check(response)
            if on_text is not None and "json" not in response.headers.get("content-type", ""):
                return await self._stream(response, told, on_text)
            with told():
                found = self._format.read(read_answer(await _whole(response)))
            if on_text is not None and found.text:
                await on_text(storable(found.text))
            return found
        finally:
            await response.aclose()

    async def _stream(self, response: httpx2.Response, told: _Told, on_text: OnText) -> ProviderReply:
        pieces: list[str] = []
        reader = self._format.reader()
        async with aclosing(read_events(response_limits.bounded(response.aiter_raw()))) as events:  # type: ignore[type-var]
            while True:
                with told():
                    data = await anext(events, DONE)
                    piece = storable(reader.add(read_answer(data))) if data != DONE else ""
                if data == DONE:
                    break
                if piece:
                    pieces.append(piece)
                    await on_text(piece)
        with told():
            found = reader.finish()
        if not pieces and found.text:  # the text came with the last event only
            pieces.append(storable(found.text))
            await on_text(pieces[0])
        found.text = "".join(pieces)
        return found


def _open_client(provider: Provider, headers: dict[str, str]) -> httpx2.AsyncClient:
    """A client without redirects, which could carry the key elsewhere. Raises ModelError if the proxy or the
    certificates from the environment cannot be used."""
    import httpx2

    timeout = httpx2.Timeout(provider.timeout_seconds, connect=min(provider.timeout_seconds, CONNECT_SECONDS))
    sent = {"user-agent": "clew", **response_limits.PLAIN, **headers}
    try:
        verify = tls_context(trust_env=True)
        return httpx2.AsyncClient(verify=verify, timeout=timeout, follow_redirects=False, headers=sent)
    except (ImportError, ValueError, OSError, httpx2.InvalidURL):
        raise unusable_environment(provider) from None


def _encoded(body: dict[str, object]) -> bytes:
    """The body of a request. Raises ModelError for a body that JSON cannot represent, which no provider would
    accept."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        reason = "the request holds half of a surrogate pair, which is not Unicode text"
    except (ValueError, TypeError, RecursionError):
        reason = "the request holds a value that cannot be written as JSON"
    raise ModelError("refused", reason, hint="Correct the message, the arguments or the schema that holds it")


async def _check(response: httpx2.Response) -> None:
    """Raises ProviderFailure for a status other than success, and ResponseTooLarge for a compressed response."""
    response_limits.check_encoding(response.headers)
    if response.is_success:
        return
    content = await _whole(response)
    try:
        body = read_json(content)
    except ValueError:
        body = content.decode("utf-8", "replace")
    raise ProviderFailure(response.status_code, body, response.headers.get("retry-after", ""))


async def _whole(response: httpx2.Response) -> bytes:
    return b"".join([piece async for piece in response_limits.bounded(response.aiter_raw())])


def _listed(content: bytes) -> tuple[str, ...]:
    """The names in a list of models; none in an answer of another shape."""
    try:
        return tuple(str(each["id"]) for each in read_json(content)["data"])
    except (ValueError, LookupError, TypeError):
        return ()


def _call_of(call: WireCall, names: ToolNames) -> ToolCall:
    """Convert a tool call. Raises ModelError for a call without a name, and for arguments that are not a JSON
    object."""
    if not call.name.strip():
        raise ModelError("malformed", "the model called a tool without a name", retryable=True, hint="Ask again")
    try:
        arguments = read_json(call.arguments) if isinstance(call.arguments, str) else call.arguments
        if not isinstance(arguments, dict):
            raise ValueError
        encode_canonical(arguments, "arguments")
    except (ValueError, InvalidInput):
        reason = f"the model called {call.name[:MAX_NAME]!r} with arguments that are no JSON object"
        raise ModelError("malformed", reason, retryable=True, hint="Ask again, or allow longer answers") from None
    return ToolCall(id=storable(call.id), name=names.back(storable(call.name)), arguments=arguments)


def _extra_of(reply: ProviderReply, provider: Provider) -> dict[str, object]:
    """The extra of a reply, with the name of the provider that it must go back to; empty if the trail cannot store
    it."""
    if not reply.extra:
        return {}
    extra = {"provider": provider.name, **reply.extra}
    try:
        encode_canonical(extra, "extra")
    except InvalidInput:
        return {}
    return extra


def _usage_of(reply: ProviderReply, info: ModelInfo) -> Usage:
    """The usage that the provider reports, with its cost by the catalogue."""
    cost = info.cost_of(reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.cache_write_tokens)
    return Usage(
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
        cost=cost,
    )
