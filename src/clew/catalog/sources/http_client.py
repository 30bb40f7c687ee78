"""One GET over the network: only to addresses that were checked, only to one host, and only so many bytes of answer.

Imported at the first request: httpx2 takes a tenth of a second that most runs do not need to spend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import httpx2
import msgspec

from clew.catalog.sources.url_checks import is_same_place, join_url, parse_url, shown_path
from clew.errors import SourceError
from clew.tls import tls_context
from clew.trail.work.claims import describe
from clew.trail.work.webhook_addresses import Address, Network, Resolve, WebhookTarget, refusal_of

MAX_REDIRECTS = 5
USER_AGENT = "clew-sources"


class SourceResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP response. Names of headers are in lower case; `next_url` is the `next` of its Link header."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    next_url: str = ""


class SourceClient:
    """Sends the requests of one source. It uses no proxies, so a request reaches the address that was checked."""

    def __init__(
        self, source: str, *, allow: Sequence[Network], timeout: float, max_bytes: int, resolve: Resolve
    ) -> None:
        self._source = source
        self._allow = allow
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._client = httpx2.AsyncClient(
            verify=tls_context(trust_env=False), trust_env=False, follow_redirects=False, timeout=timeout
        )

    async def get(self, url: str, headers: Mapping[str, str], seconds: float) -> SourceResponse | str:
        """The response, or a text with the reason of a temporary failure. Raises SourceError for a permanent
        failure."""
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(url, headers)
        except (TimeoutError, httpx2.TimeoutException):
            return f"did not answer within {seconds:.3g} seconds"
        except (httpx2.TransportError, httpx2.DecodingError, OSError) as error:
            return f"cannot be read ({describe(error)})"

    async def close(self) -> None:
        await self._client.aclose()

    async def _follow(self, url: str, headers: Mapping[str, str]) -> SourceResponse:
        """The answer at the end of redirects, which stay on the host."""
        first = parse_url(self._source, url)
        target = first
        for _ in range(MAX_REDIRECTS + 1):
            reply = await self._send(target, headers)
            location = reply.headers.get("location", "")
            if reply.status not in (301, 302, 303, 307, 308) or not location:
                return reply
            url = join_url(self._source, url, location)
            target = parse_url(self._source, url)
            if not is_same_place(first, target):
                raise SourceError(
                    self._source, f"{shown_path(first.path)} redirects to another host, {target.authority}"
                )
        raise SourceError(self._source, f"{shown_path(first.path)} redirects more than {MAX_REDIRECTS} times")

    async def _send(self, target: WebhookTarget, headers: Mapping[str, str]) -> SourceResponse:
        """The answer of the first checked address that takes a connection."""
        sent = {**headers, "Host": target.authority, "User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        failure: Exception = OSError(f"{target.host} has no address")
        for address in await self._checked_addresses(target):
            try:
                async with self._client.stream(
                    "GET", target.at(address), headers=sent, extensions={"sni_hostname": target.host}
                ) as response:
                    return await self._read(target, response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _checked_addresses(self, target: WebhookTarget) -> list[Address]:
        addresses = [ip_address(text) for text in await self._resolve(target.host, target.port)]
        for address in addresses:
            if reason := refusal_of(address, self._allow):
                hint = f"If you trust it, add {address}/{address.max_prefixlen} or its network to `allow` of the source"
                raise SourceError(self._source, f"{target.host} leads to {address}, {reason}", hint=hint)
        return addresses

    async def _read(self, target: WebhookTarget, response: httpx2.Response) -> SourceResponse:
        # A packed body could unpack to any size; we asked for a plain one.
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise SourceError(
                self._source,
                f"{shown_path(target.path)} sent a compressed answer, but an uncompressed one was requested",
            )
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_bytes:
                raise SourceError(
                    self._source, f"{shown_path(target.path)} answered more than {self._max_bytes:,} bytes"
                )
        return SourceResponse(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body),
            next_url=response.links.get("next", {}).get("url", ""),
        )
