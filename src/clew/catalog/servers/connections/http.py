"""The streamable HTTP transport with bounded answers, and a token that is renewed once when it is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.connections.stdio import MAX_MESSAGE
from clew.catalog.servers.login.login_hosts import CheckedTransport, LoginHosts
from clew.catalog.servers.login.tokens import Tokens
from clew.tls import tls_context

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


class TokenAuth(httpx2.Auth):
    """Sends the token, and sends a request once more when its token had expired."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._tokens.current()
        if token is None:
            yield request
            return
        request.headers["Authorization"] = f"Bearer {token.value}"
        response = yield request
        if response.status_code == 401 and (renewed := await self._tokens.renew(token)) is not None:
            request.headers["Authorization"] = f"Bearer {renewed.value}"
            yield request


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                self._faults.note = f"sent a message of over {MAX_MESSAGE:,} bytes"
                raise httpx2.StreamError(self._faults.note)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Limits the size of a response. An event stream may run forever; its limit applies to each event."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.status_code >= 400:
            self._faults.status = response.status_code
        # A packed body could unpack to any size; we asked for a plain one.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            self._faults.note = "sent a compressed answer, but an uncompressed one was requested"
            raise httpx2.DecodingError(self._faults.note, request=request)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedBody(response.stream, self._faults)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def open_http(
    url: str, headers: Mapping[str, str], auth: httpx2.Auth, timeout: float, faults: Faults
) -> AsyncIterator[TransportStreams]:
    """Connect to an address. Nothing is sent before the first message."""
    from mcp.client.streamable_http import streamable_http_client  # the SDK takes half a second to import

    inner = httpx2.AsyncHTTPTransport(verify=tls_context(trust_env=True))
    async with (
        httpx2.AsyncClient(
            headers={**headers, "Accept-Encoding": "identity"},
            auth=auth,
            timeout=httpx2.Timeout(timeout, read=max(timeout, 300.0)),
            transport=CheckedTransport(BoundedTransport(inner, faults), LoginHosts(url), faults),
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams
