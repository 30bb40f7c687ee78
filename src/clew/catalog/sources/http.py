"""The one reader of HTTP APIs: authorization, waiting and trying again, and errors that say what to do.

Each source handles its own pagination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_network
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import msgspec

from clew.catalog.sources.url_checks import is_same_place, parse_url, shown_path
from clew.clock import Clock, SystemClock
from clew.decode_errors import in_plain_words
from clew.errors import ConfigError, DeliveryRefused, NotFound, SourceError
from clew.trail.work.claims import printable
from clew.trail.work.webhook_addresses import Network, Resolve, parse_target, resolve_host

if TYPE_CHECKING:
    from clew.catalog.sources.http_client import SourceClient, SourceResponse

MAX_PAGES = 2_000
FIRST_WAIT = 1.0
LONGEST_WAIT = 30.0

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """A service: its address, the header for the token, and the source of new tokens."""

    source: str
    base_url: str
    renew: str
    header: str = "Authorization"
    scheme: str = ""
    headers: Mapping[str, str] = {}


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`token` names a secret. `allow` names networks that may be reached although they are not public."""

    token: str = ""
    base_url: str = ""
    allow: tuple[str, ...] = ()
    timeout_seconds: float = 30.0
    """Seconds for one attempt."""
    deadline_seconds: float = 120.0
    """Seconds for one answer, with all attempts and the pauses between them."""
    attempts: int = 6
    max_bytes: int = 20_000_000


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a successful answer. `next_url` is empty on the last page of an API that links its pages."""

    source: str
    path: str
    status: int
    body: bytes
    next_url: str = ""

    def read(self, kind: type[T]) -> T:
        """The JSON of the body. Raises SourceError if it is invalid or not of this kind."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except msgspec.ValidationError as error:
            wrong = in_plain_words(error, kind, "it")
            raise SourceError(self.source, f"{self.path} answered with JSON of unexpected form: {wrong}") from None
        except (msgspec.DecodeError, RecursionError):
            raise SourceError(self.source, f"{self.path} answered with incomplete or invalid JSON") from None


class HttpReader:
    """Reads one API. Neither its errors nor its repr ever hold the token, even if the server repeats it."""

    def __init__(
        self,
        api: Api,
        settings: HttpSettings,
        *,
        token: str = "",
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._api = api
        self._settings = settings
        self._base = _check_base(api.source, settings.base_url or api.base_url)
        self._token = _check_token(api.source, token)
        self._allow = _check_networks(api.source, settings.allow)
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._resolve = resolve
        self._client: SourceClient | None = None

    @property
    def other_base_url(self) -> str:
        """The base URL of the API if it is not the default one; otherwise empty."""
        return "" if self._base == self._api.base_url else self._base

    async def get(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        document: str = "",
        accept: Sequence[int] = (),
    ) -> HttpAnswer:
        """The answer to a path below the base URL, or to a whole URL of the same host.

        Requests to overloaded or unreachable servers are retried until the deadline of the settings. Raises
        SourceError, and NotFound if a `document` is named and the server has none. Statuses in `accept` count as
        success.
        """
        url = self._url_of(path, params or {})
        shown = shown_path(parse_url(self._api.source, url).path)
        reply = await self._ask(url, shown)
        if 200 <= reply.status < 300 or reply.status in accept:
            return HttpAnswer(
                source=self._api.source, path=shown, status=reply.status, body=reply.body, next_url=reply.next_url
            )
        raise self._refusal(reply, shown, document)

    async def get_json(self, path: str, kind: type[T], params: Mapping[str, str | int] | None = None) -> T:
        """The JSON of an answer. Raises SourceError."""
        return (await self.get(path, params)).read(kind)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _url_of(self, path: str, params: Mapping[str, str | int]) -> str:
        query = f"?{urlencode(params)}" if params else ""
        if not path.startswith(("http://", "https://")):
            return f"{self._base}{path}{query}"
        source = self._api.source
        if not is_same_place(parse_url(source, self._base), parse_url(source, path)):
            raise SourceError(self._api.source, "the next page that it names is on another host")
        return path + query

    async def _ask(self, url: str, shown: str) -> SourceResponse:
        """The first answer that does not ask for a retry."""
        client = self._opened()
        loop = asyncio.get_running_loop()
        remaining = self._settings.deadline_seconds
        for attempt in range(self._settings.attempts):
            started = loop.time()
            reply = await client.get(url, self._headers(), min(self._settings.timeout_seconds, remaining))
            remaining -= loop.time() - started
            if not isinstance(reply, str) and not _asks_for_patience(reply):
                return reply
            wait = self._wait_after(reply, attempt)
            if wait >= remaining or attempt + 1 == self._settings.attempts:
                raise self._given_up(reply, shown, wait)
            await self._sleep(wait)
            remaining -= wait
        raise SourceError(
            self._api.source, "has `attempts` below 1, so no request is sent", hint="Set `attempts` to 1 or more"
        )

    def _opened(self) -> SourceClient:
        if self._client is None:
            from clew.catalog.sources.http_client import SourceClient  # httpx2 is slow to import

            self._client = SourceClient(
                self._api.source,
                allow=self._allow,
                timeout=self._settings.timeout_seconds,
                max_bytes=self._settings.max_bytes,
                resolve=self._resolve,
            )
        return self._client

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", **self._api.headers}
        if self._token:
            headers[self._api.header] = f"{self._api.scheme} {self._token}".strip()
        return headers

    def _wait_after(self, reply: SourceResponse | str, attempt: int) -> float:
        """Seconds before the next retry: the time that the server asks for, or exponential backoff."""
        named = None if isinstance(reply, str) else wait_named_by(reply, self._clock.now())
        return min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) if named is None else named

    def _given_up(self, reply: SourceResponse | str, shown: str, wait: float) -> SourceError:
        if isinstance(reply, str):
            return self._error(f"{shown} {self._scrub(reply)}", "Check the network, and that the service is up")
        if reply.status == 429 or reply.status < 500:
            hint = "Try again later, or use a token with a higher limit"
            return self._error(f"{shown} is limited in rate, and asks to wait {wait:,.0f} seconds more", hint)
        return self._error(f"{shown} keeps answering {reply.status}", "The service has a problem; try again later")

    def _refusal(self, reply: SourceResponse, shown: str, document: str) -> SourceError | NotFound:
        if document and reply.status in (404, 410, 422):
            return NotFound("document", document)
        if reply.status in (401, 403):
            lack = "the token has expired, was revoked, or lacks rights" if self._token else "a token is needed"
            return self._error(f"{shown} answered {reply.status}: {lack}", self._api.renew)
        if reply.status in (404, 410):
            hint = "Check the names in the settings, and that the token may see it"
            return self._error(f"{shown} is not there ({reply.status})", hint)
        said = printable(self._scrub(reply.body[:4_000].decode(errors="replace")), 200)
        return self._error(f"{shown} answered {reply.status}" + (f": {said}" if said else ""))

    def _error(self, reason: str, hint: str = "") -> SourceError:
        return SourceError(self._api.source, reason, hint=hint)

    def _scrub(self, text: str) -> str:
        return text.replace(self._token, "***") if self._token else text


def count_pages(source: str) -> Iterator[int]:
    """Yield page numbers from 0. Raises SourceError beyond the maximum number of pages."""
    yield from range(MAX_PAGES)
    raise SourceError(source, f"gives more than {MAX_PAGES:,} pages", hint="Choose fewer documents in its settings")


def wait_named_by(reply: SourceResponse, now: datetime) -> float | None:
    """The seconds that a server asks to wait, from Retry-After or the reset time of its rate limit."""
    if (after := reply.headers.get("retry-after", "").strip()) and (wait := _seconds(after, now)) is not None:
        return wait
    reset = reply.headers.get("x-ratelimit-reset", "").strip()
    if reply.status < 500 and reset.isascii() and reset.isdecimal() and len(reset) <= 12:
        return max(0.0, int(reset) - now.timestamp())
    return None


def _seconds(text: str, now: datetime) -> float | None:
    """Seconds, or an HTTP date."""
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())


def _asks_for_patience(reply: SourceResponse) -> bool:
    """Whether a retry may succeed. GitHub and Google use 403 for rate limits too."""
    if reply.status != 403:
        return reply.status == 429 or reply.status >= 500
    is_used_up = reply.headers.get("x-ratelimit-remaining", "").strip() == "0"
    return is_used_up or "retry-after" in reply.headers or b"ateLimitExceeded" in reply.body[:4_000]


def _check_base(source: str, url: str) -> str:
    try:
        target = parse_target(url)
    except DeliveryRefused as error:
        raise ConfigError(f"{source}: base_url: {error.message.rpartition(': ')[2]}") from None
    if "?" in target.path or "#" in url:
        raise ConfigError(f"{source}: base_url: must not have a query")
    return url.rstrip("/")


def _check_token(source: str, token: str) -> str:
    """The token without surrounding whitespace. Raises ConfigError for a character that is invalid in a header, because
    a later error would reveal the token."""
    token = token.strip()
    if any(not " " <= letter <= "~" for letter in token):
        raise ConfigError(f"{source}: the token has characters that no header can hold; was it copied whole?")
    return token


def _check_networks(source: str, allow: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(network) for network in allow)
    except ValueError as error:
        raise ConfigError(f"{source}: allow: {error}") from None
