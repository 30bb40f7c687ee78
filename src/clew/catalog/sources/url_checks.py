"""Checks URLs that servers return: they are parsed in one way only, and must not lead to another host."""

from __future__ import annotations

from urllib.parse import urljoin

import msgspec

from clew.errors import DeliveryRefused, SourceError
from clew.trail.work.webhook_addresses import WebhookTarget, parse_target

MAX_QUERY = 8_000
"""The maximum length. It is larger than that of other URLs, because page tokens can be long."""


def parse_url(source: str, url: str) -> WebhookTarget:
    """The parts of a URL. Raises SourceError, without any part of the URL, if it is invalid."""
    place, mark, query = url.partition("#")[0].partition("?")
    try:
        target = parse_target(place)
    except DeliveryRefused:
        raise SourceError(source, "was redirected to a URL that is malformed or not http") from None
    if len(query) > MAX_QUERY or not (query.isascii() and query.isprintable()):
        raise SourceError(source, f"{shown_path(target.path)} has a query that a URL cannot hold")
    return msgspec.structs.replace(target, path=target.path + mark + query)


def join_url(source: str, url: str, location: str) -> str:
    """The URL that a redirect from another URL leads to. Raises SourceError."""
    try:
        return urljoin(url, location)
    except ValueError:
        raise SourceError(source, "was redirected to a URL that is malformed or not http") from None


def is_same_place(one: WebhookTarget, other: WebhookTarget) -> bool:
    """Whether a token for `one` may be sent to `other`: the same origin, or the same host upgraded to HTTPS."""
    if one.host != other.host:
        return False
    before, after = (one.scheme, one.port), (other.scheme, other.port)
    return before == after or (before, after) == (("http", 80), ("https", 443))


def shown_path(path: str) -> str:
    """A path as errors show it: without its query, which may hold secrets."""
    return path.partition("?")[0][:200]
