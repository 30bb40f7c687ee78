"""Webhooks: a consumer's events, signed and posted to its URL, by default in at most eight attempts each.

An event that could not be delivered becomes a dead letter of that consumer: `trail.dead_letters` lists and replays it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import quote

import httpx2
import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, DeliveryRefused, InvalidInput, NotFound
from clew.tls import tls_context
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState, Webhook, sse_payload
from clew.trail.store import Trail
from clew.trail.work.claims import ClaimLoop, GiveBack, describe, is_meant, printable
from clew.trail.work.webhook_addresses import (
    Network,
    Resolve,
    check_address,
    parse_networks,
    parse_target,
    resolve_host,
)

MAX_RESPONSE = 1_024

Outcome = Literal["delivered", "failed", "refused", "gone"]
OnDelivery = Callable[[Outcome, float], None]
"""Called after each attempt with its outcome and duration in seconds."""

_log = logging.getLogger(__name__)


async def register_webhook(
    trail: Trail,
    consumer: Consumer,
    *,
    by: Principal,
    allow: Sequence[str] = (),
    resolve: Resolve = resolve_host,
) -> ConsumerState:
    """Register a consumer whose events are posted.

    Raises DeliveryRefused for a URL that may not be posted to, NotFound for an unknown secret, InvalidInput for a retry
    policy out of bounds.
    """
    if consumer.webhook is None:
        raise InvalidInput("webhook", "is missing", hint="Give its url and the name of its secret")
    url = consumer.webhook.url
    try:
        await check_address(url, parse_networks(allow), resolve=resolve)
    except OSError as error:
        hint = "Check the name, and that the machine that serves the trail can look it up"
        raise DeliveryRefused(url, f"its host is unknown ({describe(error)})", hint=hint) from None
    await trail.secrets.reveal(consumer.webhook.secret, by=by)
    return await trail.deliveries.register(msgspec.structs.replace(consumer, retry=consumer.retry_policy), by=by)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of X-Clew-Signature: an HMAC-SHA256 over timestamp, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def verify_signature(
    secret: str,
    timestamp: str,
    body: bytes,
    signature: str,
    *,
    now: datetime,
    tolerance: timedelta = timedelta(minutes=5),
) -> bool:
    """Whether a received body was signed with the secret. The timestamp may differ from `now` by at most
    `tolerance`."""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return False
    if abs(now.timestamp() - int(timestamp)) > tolerance.total_seconds():
        return False
    expected = sign(secret, timestamp, body)
    return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))


class WebhookSender:
    """Posts the events of every webhook consumer of the given owners, each consumer on its own.

    `owners` is called again every `every` seconds and after `refresh`, to find new and changed consumers. Redirects and
    proxies are not used, so that a post goes to the checked address. `tls` is for receivers whose certificates are not
    signed by a public authority.
    """

    def __init__(
        self,
        trail: Trail,
        *,
        owners: Callable[[], Awaitable[Sequence[Principal]]],
        clock: Clock,
        worker_id: str,
        allow: Sequence[str] = (),
        timeout: float = 10.0,
        every: float = 30.0,
        concurrency: int = 4,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
        on_delivery: OnDelivery = lambda outcome, seconds: None,
    ) -> None:
        self._trail = trail
        self._owners = owners
        self._worker_id = worker_id
        self._tls = tls or tls_context(trust_env=False)
        self._every = every
        self._concurrency = concurrency
        self._post = _Post(
            clock=clock,
            allow=parse_networks(allow),
            timeout=timeout,
            resolve=resolve,
            on_delivery=on_delivery,
        )
        self._running: dict[tuple[str, str], _RunningWebhook] = {}
        self._following = asyncio.Lock()
        self._is_running = False
        self._is_draining = False
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Deliver until `stop` or cancellation. Unfinished deliveries are given back."""
        self._is_running = True
        try:
            while not self._stop.is_set():
                await self.refresh()
                await self._wait_for_stop()
        finally:
            self._is_running = False
            async with self._following:
                await self._end(tuple(self._running))

    def stop(self) -> None:
        """Make `run` give back its claims and return. A stopped sender does not run again."""
        self._stop.set()

    async def drain(self) -> None:
        """Claim nothing more, and return when the claimed events are delivered."""
        self._is_draining = True
        async with self._following:
            running = list(self._running.values())
        for each in running:
            each.loop.drain()
        if running:
            await asyncio.wait([each.task for each in running])

    async def refresh(self) -> None:
        """Reload the consumers now, for example after a registration."""
        async with self._following:
            if self._is_running and not self._is_draining:
                await self._follow_consumers()

    async def _wait_for_stop(self) -> None:
        try:
            async with asyncio.timeout(self._every):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _follow_consumers(self) -> None:
        """Start and stop deliveries so that they match the current consumers."""
        try:
            wanted = await self._wanted()
        except ClewError as error:
            _log.warning("webhooks: the consumers could not be read: %s", error)
            return
        stale = [
            key
            for key, running in self._running.items()
            if key not in wanted or running.made_from != wanted[key] or running.task.done()
        ]
        await self._end(stale)
        for key, made_from in wanted.items():
            if key not in self._running:
                self._running[key] = self._begin(*made_from)

    async def _wanted(self) -> dict[tuple[str, str], tuple[Principal, Consumer]]:
        return {
            (owner.owner_id, state.consumer.name): (owner, state.consumer)
            for owner in await self._owners()
            for state in await self._trail.deliveries.consumers(by=owner)
            if state.consumer.webhook is not None
        }

    def _begin(self, owner: Principal, consumer: Consumer) -> _RunningWebhook:
        # One client a consumer: a kept connection is only ever used for the host it was opened for.
        client = httpx2.AsyncClient(
            verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._post.timeout
        )

        async def deliver(claim: Claim) -> Sequence[Draft] | GiveBack:
            return await self._post.deliver(self._trail, client, owner, consumer, claim)

        loop = ClaimLoop(
            self._trail,
            consumer.name,
            deliver,
            by=owner,
            worker_id=self._worker_id,
            concurrency=self._concurrency,
            lease=max(DEFAULT_LEASE, timedelta(seconds=3 * self._post.timeout)),
        )
        task = asyncio.create_task(_run(loop, client))
        return _RunningWebhook(made_from=(owner, consumer), loop=loop, task=task)

    async def _end(self, keys: Sequence[tuple[str, str]]) -> None:
        ending = [self._running.pop(key).task for key in keys]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunningWebhook:
    """The running deliveries of one consumer, and the principal and consumer for which they were started."""

    made_from: tuple[Principal, Consumer]
    loop: ClaimLoop
    task: asyncio.Task[None]


async def _run(loop: ClaimLoop, client: httpx2.AsyncClient) -> None:
    async with client:
        try:
            await loop.run()
        except NotFound:
            _log.info("a webhook's consumer was unregistered")
        except Exception:
            _log.exception("a webhook's deliveries ended; they begin again at the next refresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    """Turns a claim into a signed request, and its answer into an outcome."""

    clock: Clock
    allow: Sequence[Network]
    timeout: float
    resolve: Resolve
    on_delivery: OnDelivery

    async def deliver(
        self, trail: Trail, client: httpx2.AsyncClient, owner: Principal, consumer: Consumer, claim: Claim
    ) -> Sequence[Draft] | GiveBack:
        """Post one event. Returns an empty sequence if it was delivered or need not be, else the failure."""
        if consumer.webhook is None or not is_meant(consumer.selector, claim.event):
            return ()
        started = self.clock.now()
        outcome, result = await self._attempt(trail, client, owner, consumer.webhook, claim)
        self.on_delivery(outcome, (self.clock.now() - started).total_seconds())
        return result

    async def _attempt(
        self, trail: Trail, client: httpx2.AsyncClient, owner: Principal, webhook: Webhook, claim: Claim
    ) -> tuple[Outcome, Sequence[Draft] | GiveBack]:
        try:
            secret = await trail.secrets.reveal(webhook.secret, by=owner)
            async with asyncio.timeout(self.timeout):
                status, text = await self._send(client, webhook.url, secret, claim)
        except DeliveryRefused as error:
            return "refused", GiveBack(reason=describe(error), retry=False)
        except TimeoutError:
            return "failed", GiveBack(reason=f"no answer within {self.timeout:g} seconds")
        except (httpx2.HTTPError, OSError, ClewError) as error:
            return "failed", GiveBack(reason=describe(error))
        if 200 <= status < 300:
            return "delivered", ()
        reason = f"answered {status}" + (f": {text}" if text else "")
        return ("gone", GiveBack(reason=reason, retry=False)) if status == 410 else ("failed", GiveBack(reason=reason))

    async def _send(self, client: httpx2.AsyncClient, url: str, secret: str, claim: Claim) -> tuple[int, str]:
        """Post to the first checked address that accepts a connection. Returns the status and the beginning of the
        answer if it is a refusal."""
        target = parse_target(url)
        body = msgspec.json.encode(sse_payload(claim.event))
        headers = {**self._headers(claim, secret, body), "Host": target.authority}
        failure: Exception = OSError(f"{target.host} has no address")
        for address in await check_address(url, self.allow, resolve=self.resolve):
            try:
                async with client.stream(
                    "POST",
                    target.at(address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": target.host},
                ) as response:
                    said = "" if response.is_success else await _beginning(response)
                    return response.status_code, printable(said, 200)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    def _headers(self, claim: Claim, secret: str, body: bytes) -> dict[str, str]:
        timestamp = str(int(self.clock.now().timestamp()))
        return {
            "Content-Type": "application/json",
            "User-Agent": "clew-webhooks",
            "Accept-Encoding": "identity",
            "X-Clew-Signature": sign(secret, timestamp, body),
            "X-Clew-Timestamp": timestamp,
            "X-Clew-Delivery": quote(claim.key, safe="/"),
            "X-Clew-Attempt": str(claim.attempt),
            "X-Clew-Event": claim.event.type,
        }


async def _beginning(response: httpx2.Response) -> str:
    """The first kilobyte of an answer as text; the rest is not read."""
    taken = b""
    async for chunk in response.aiter_raw(MAX_RESPONSE):
        taken += chunk
        if len(taken) >= MAX_RESPONSE:
            break
    return taken[:MAX_RESPONSE].decode(errors="replace")
