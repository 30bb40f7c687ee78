"""The tool `fetch`: reads web pages of public hosts that the policy or the user allows.

Every redirect is checked like the first address. Requests carry no keys and no cookies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import msgspec

from clew.errors import DeliveryRefused, InvalidInput, ToolFailure
from clew.fences import clean, fenced
from clew.secrecy import mask_document, mask_secrets
from clew.tls import tls_context
from clew.tools.html_text import html_to_text
from clew.tools.permissions.policy import Policy, decide
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool
from clew.trail.work.webhook_addresses import Network, Resolve, WebhookTarget, check_address, parse_target, resolve_host
from clew.trust import printable

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 5_000_000
MAX_REDIRECTS = 5
SECONDS = 30.0
NAME = "fetch"

_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")
_REDIRECTS = (301, 302, 303, 307, 308)


def fetch_tools(
    policy: Policy,
    *,
    allow: Sequence[Network] = (),
    resolve: Resolve = resolve_host,
    max_bytes: int = MAX_BYTES,
    seconds: float = SECONDS,
) -> tuple[Tool, ...]:
    """Return the tool `fetch`. `allow` lists private networks that it may reach. Without a rule for a host, it reads
    only the host that the user agreed to, and does not follow redirects to other hosts."""
    getter = _Getter(allow, resolve, max_bytes)

    @tool(
        name=NAME,
        effects=Effects(reads_only=True, repeats_safely=True),
        limits=ToolLimits(seconds=seconds + 5),
        category="web",
    )
    async def fetch(
        url: str,
        ctx: ToolContext,
        start: Annotated[int, msgspec.Meta(ge=0)] = 0,
        limit: Annotated[int, msgspec.Meta(ge=1, le=90_000)] = 20_000,
    ) -> str:
        """Read a web page as text. Only hosts that the user allows can be reached.

        Args:
            url: complete address, http or https
            start: first character to return, to continue a long page
            limit: number of characters to return
        """

        def check(target: WebhookTarget) -> None:
            decision = decide(policy, NAME, {"url": f"{target.scheme}://{target.authority}/"})
            is_agreed = ctx.permitted and target.host == _parse(url).host
            if decision.verdict == "deny" or (decision.verdict == "ask" and not is_agreed):
                hint = f"Ask the user to allow fetch({target.host}) in [permissions]"
                raise ToolFailure("permission", f"no rule allows fetching from {target.host}", hint=hint)

        try:
            async with asyncio.timeout(seconds):
                page = await getter.get(url, check)
        except TimeoutError:
            raise ToolFailure("timeout", f"no complete response within {seconds:g} seconds", retryable=True) from None
        return _render(page, start, limit)

    return (fetch,)


class _FetchedPage(msgspec.Struct, frozen=True):
    url: str
    status: int
    kind: str
    body: bytes
    charset: str


class _Getter:
    def __init__(self, allow: Sequence[Network], resolve: Resolve, max_bytes: int) -> None:
        self._allow = allow
        self._resolve = resolve
        self._max_bytes = max_bytes

    async def get(self, url: str, check: Callable[[WebhookTarget], None]) -> _FetchedPage:
        """Return the page after redirects. Raises InvalidInput, ToolFailure."""
        import httpx2  # takes a tenth of a second, and few conversations fetch anything

        # No proxy, so that the checked address is the one that is contacted; a new client, so that no cookie stays.
        verify = tls_context(trust_env=False)
        async with httpx2.AsyncClient(verify=verify, trust_env=False, follow_redirects=False, timeout=None) as client:
            for _ in range(MAX_REDIRECTS + 1):
                target = _parse(url)
                check(target)
                try:
                    found = await self._send(client, url, target)
                except (httpx2.HTTPError, OSError) as error:
                    reason = printable(str(error), 200) or type(error).__name__
                    raise ToolFailure("runtime", f"{target.host} cannot be read ({reason})", retryable=True) from None
                if isinstance(found, _FetchedPage):
                    return found
                url = urljoin(url, found)
        raise ToolFailure("runtime", f"{target.host} redirects more than {MAX_REDIRECTS} times")

    async def _send(self, client: httpx2.AsyncClient, url: str, target: WebhookTarget) -> _FetchedPage | str:
        """Return the page or the target of a redirect, from the first checked address that accepts a connection."""
        import httpx2  # see above

        headers = {"Host": target.authority, "User-Agent": "clew-fetch", "Accept-Encoding": "identity", "Accept": "*/*"}
        failure: Exception = OSError("no address found")
        try:
            addresses = await check_address(url, self._allow, resolve=self._resolve)
        except DeliveryRefused as error:
            raise ToolFailure(
                "permission", error.message.replace("no delivery to", "nothing is fetched from")
            ) from None
        for address in addresses:
            try:
                async with client.stream(
                    "GET", target.at(address), headers=headers, extensions={"sni_hostname": target.host}
                ) as response:
                    return await self._read(url, target, response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _read(self, url: str, target: WebhookTarget, response: httpx2.Response) -> _FetchedPage | str:
        location = str(response.headers.get("location", ""))
        if response.status_code in _REDIRECTS and location:
            return location
        kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
        if not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml")):
            raise InvalidInput("url", f"is {printable(kind, 100)}, and fetch reads only text")
        # A compressed body could expand to any size, and the request forbids compression.
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise ToolFailure("runtime", f"{target.host} sent a compressed response against the request")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_bytes:
                raise InvalidInput("url", f"answers more than {self._max_bytes:,} bytes")
        return _FetchedPage(url, response.status_code, kind, bytes(body), response.charset_encoding or "utf-8")


def _parse(url: str) -> WebhookTarget:
    try:
        return parse_target(url)
    except DeliveryRefused as error:
        reason = error.message.rpartition(": ")[2]
        raise InvalidInput("url", f"{mask_secrets(printable(error.url, 200))}: {reason}") from None


def _render(page: _FetchedPage, start: int, limit: int) -> str:
    """Format the text in a fence, below a line with its address and range."""
    try:
        text = page.body.decode(page.charset, errors="replace")
    except LookupError:
        text = page.body.decode(errors="replace")
    if page.kind in ("text/html", "application/xhtml+xml"):
        text = html_to_text(text)
    text = mask_document(clean(text))
    end = min(len(text), start + limit)
    rest = f" Go on with start {end}." if end < len(text) else ""
    place = mask_secrets(printable(page.url, 500))
    head = f"{place} answered {page.status}, characters {start:,} to {end:,} of {len(text):,}.{rest}"
    return f"{head}\n{fenced(text[start:end], 'text')}"
