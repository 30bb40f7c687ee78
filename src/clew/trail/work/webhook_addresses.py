"""The addresses that a webhook may be posted to: public ones, and networks that the configuration names.

Connect only to the checked addresses, because the host name may resolve to others later.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import msgspec

from clew.errors import ConfigError, DeliveryRefused
from clew.lazy_pattern import lazy_pattern

MAX_URL = 2_000

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port → addresses as text. Raises OSError when the name has none."""

_HOST = lazy_pattern(r"[a-z0-9]([a-z0-9._-]{0,252}[a-z0-9.])?|[0-9a-f:.]+")
_NOT_IN_URLS = lazy_pattern(r"[\x00-\x20\x7f\\]")

_GLOBAL_IPV6 = IPv6Network("2000::/3")
_SPECIAL: tuple[tuple[Network, str], ...] = (
    (IPv6Network("::ffff:0:0/96"), "an IPv4-mapped address"),
    (IPv6Network("64:ff9b::/96"), "a NAT64 address"),
    (IPv6Network("64:ff9b:1::/48"), "a NAT64 address"),
    (IPv6Network("2002::/16"), "a 6to4 address"),
    (IPv6Network("2001::/23"), "an address of an IETF protocol"),
    (IPv6Network("3fff::/20"), "a documentation address"),
    (IPv4Network("100.64.0.0/10"), "a shared carrier address"),
    (IPv4Network("192.0.0.0/24"), "an address of an IETF protocol"),
    (IPv4Network("192.88.99.0/24"), "a 6to4 relay address"),
)
"""Ranges that embed or replace other addresses. Some versions of the standard library call them public."""


class WebhookTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook URL in parts. `host` is lower-case ASCII, without brackets; `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the `Host` header. It includes the port only if it is not the default of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def at(self, address: Address) -> str:
        """The URL with its host replaced by an address."""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{self.scheme}://{host}:{self.port}{self.path}"


_PORTS = {"http": 80, "https": 443}


def parse_networks(allow: Sequence[str]) -> tuple[Network, ...]:
    """The networks that the configuration allows. Raises ConfigError."""
    try:
        return tuple(ip_network(network) for network in allow)
    except ValueError as error:
        raise ConfigError(f"webhooks.allow: {error}") from None


def parse_target(url: str) -> WebhookTarget:
    """The parts of an http or https URL. Raises DeliveryRefused for an invalid or ambiguous URL."""
    if len(url) > MAX_URL or _NOT_IN_URLS.search(url):
        raise DeliveryRefused(url[:100], f"it must have at most {MAX_URL:,} characters, without spaces or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii").lower()
    except ValueError as error:
        raise DeliveryRefused(url, f"it is malformed ({error})") from None
    if parts.scheme not in _PORTS:
        raise DeliveryRefused(url, "only http and https are posted to")
    if "@" in parts.netloc:
        raise DeliveryRefused(f"{parts.scheme}://{host}", "a user or password has no place in it")
    if not _HOST.fullmatch(host):
        raise DeliveryRefused(url, "its host is malformed")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(scheme=parts.scheme, host=host, port=_PORTS[parts.scheme] if port is None else port, path=path)


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def check_address(url: str, allow: Sequence[Network] = (), *, resolve: Resolve = resolve_host) -> list[Address]:
    """The addresses of the host of a URL. Posting to all of them is allowed.

    Raises DeliveryRefused when the URL or one of its addresses is not allowed, OSError for an unknown host.
    """
    target = parse_target(url)
    addresses = [ip_address(text) for text in await resolve(target.host, target.port)]
    for address in addresses:
        if reason := refusal_of(address, allow):
            raise DeliveryRefused(url, f"{address} is {reason}")
    return addresses


def refusal_of(address: Address, allow: Sequence[Network] = ()) -> str | None:
    """The reason why an address may not be posted to; None when it may."""
    if any(address in network for network in allow):
        return None
    if special := next((what for network, what in _SPECIAL if address in network), None):
        return special
    for attribute in ("unspecified", "loopback", "link_local", "multicast", "reserved", "private"):
        if getattr(address, f"is_{attribute}"):
            return f"a {attribute.replace('_', '-')} address"
    if not address.is_global or (address.version == 6 and address not in _GLOBAL_IPV6):
        return "not a public address"
    return None
