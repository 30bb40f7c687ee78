"""Hosts that a server names for a login. Only public ones are allowed, because a server could name a service of this
machine or network."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import httpx2

from clew.trail.work.webhook_addresses import Address, Resolve, refusal_of, resolve_host

if TYPE_CHECKING:
    from clew.catalog.servers.connections.server_errors import Faults

HINT = "A server at a public address may not do that. If it is meant so, give it a token instead of a login"


class LoginHosts:
    """Checks the hosts that a server redirects a login to. A server at a private address may redirect to other private
    addresses."""

    def __init__(self, home: str, resolve: Resolve | None = None) -> None:
        self._home = urlsplit(home)
        self._resolve = resolve or resolve_host

    async def look_up(self, url: str) -> tuple[list[Address], str]:
        """The addresses of the host of a URL, and the reason if one of them may not be contacted. Raises OSError for an
        unknown host."""
        parts = urlsplit(url)
        addresses = await self._addresses(parts)
        own = await self._addresses(self._home)
        for address in addresses:
            reason = refusal_of(address)
            if reason is not None and not _is_near(address, own):
                return addresses, f"{parts.hostname} is at {address}, {reason}"
        return addresses, ""

    def is_home(self, url: str) -> bool:
        return (urlsplit(url).hostname or "").lower() == self._home.hostname

    async def _addresses(self, parts: SplitResult) -> list[Address]:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return [ip_address(text.partition("%")[0]) for text in await self._resolve(parts.hostname or "", port)]


def _is_near(address: Address, own: Sequence[Address]) -> bool:
    """Whether a server with the addresses `own` is on the kind of network that `address` belongs to: link-local, or
    another that is not public."""
    if address.is_link_local:
        return any(each.is_link_local for each in own)
    return any(refusal_of(each) is not None for each in own)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to hosts other than the server's own only to checked addresses."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, hosts: LoginHosts, faults: Faults) -> None:
        self._inner = inner
        self._hosts = hosts
        self._faults = faults

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._hosts.is_home(str(request.url)):
            return await self._inner.handle_async_request(request)
        try:
            addresses, refusal = await self._hosts.look_up(str(request.url))
        except OSError as error:
            raise httpx2.ConnectError(f"{request.url.host} has no address", request=request) from error
        if refusal:
            self._faults.refuse(f"redirects the login to a refused address: {refusal}", HINT)
            raise httpx2.ConnectError(refusal, request=request)
        return await self._send(request, addresses)

    async def _send(self, request: httpx2.Request, addresses: list[Address]) -> httpx2.Response:
        """The answer of the first address that takes a connection; the certificate is checked for the name."""
        failure: httpx2.TransportError = httpx2.ConnectError(f"{request.url.host} has no address", request=request)
        for address in addresses:
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=str(address)),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()
