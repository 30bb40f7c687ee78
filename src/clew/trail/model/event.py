"""Events: the ordered log of all changes, and the consumers that read it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import EVERYTHING, Selector

EventType = Literal["breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `seq` orders all changes of a trail and never repeats. `breadcrumb` is the version that the
    change made, or None when that breadcrumb is gone. On a claimed event `key` is the same for every attempt: give
    it to an outside system that can recognise a repeated effect; `attempt` counts from 1."""

    seq: int
    type: EventType
    breadcrumb_id: str
    owner_id: str
    version: int
    schema_name: str | None
    tags: tuple[str, ...]
    at: datetime
    breadcrumb: Breadcrumb | None = None
    key: str = ""
    attempt: int = 0


DEFAULT_LEASE = timedelta(seconds=30)
"""The time for which a claim belongs to its worker, unless the worker extends it."""
MAX_DEATHS = 10
"""An event becomes a dead letter after this many workers died while they handled it."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long a failing event is retried. There are at most `attempts` attempts. The pause between them
    starts at `backoff` seconds and doubles each time up to `backoff_limit`, with jitter. No attempt starts later than
    `deadline` seconds after the first claim. The death of a worker does not count as a failed attempt; `MAX_DEATHS`
    limits deaths."""

    attempts: int = 3
    backoff: float = 2.0
    backoff_limit: float = 300.0
    deadline: float | None = None


DEFAULT_RETRY = RetryPolicy()
WEBHOOK_RETRY = RetryPolicy(attempts=8, backoff=1.0)


class ClaimLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the claims of a consumer, over all workers and processes: `workers` claims in all, `each` for one group
    (a session, or a writer). Events with the tag `second_lane` are in the second lane and come after all others. Each
    lane has an eighth of the workers reserved, so that neither can block the other. With fewer than eight workers, none
    is reserved."""

    workers: int = 32
    each: int = 8
    second_lane: str = "lane:work"

    @property
    def in_one_lane(self) -> int:
        """The largest number of claims that one lane may have."""
        return self.workers - self.workers // 8


class GroupLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one group in one lane. `priority` is 1 in the second lane."""

    group: str
    priority: int = 0
    running: int = 0
    waiting: int = 0


class QueueLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The claimed and the waiting events of a consumer with limits."""

    limits: ClaimLimits
    running: int = 0
    waiting: int = 0
    groups: tuple[GroupLoad, ...] = ()


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A durable, named reader of the log. A new one starts with the next event, with the oldest one, or `after` the
    event of that number. Unless `ordered` is false, the events of a session are delivered one after the other. With a
    `webhook`, events are posted to its address. The default `retry` makes 3 attempts, or 8 with a webhook. With
    `limits`, the groups of the consumer take turns. No event is delivered before `delay` seconds have passed."""

    name: str
    selector: Selector = EVERYTHING
    retry: RetryPolicy | None = None
    start: Literal["now", "beginning"] = "now"
    after: int | None = None
    ordered: bool = True
    agent_id: str | None = None
    webhook: Webhook | None = None
    limits: ClaimLimits | None = None
    delay: float = 0.0

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy in force: the given one, or the default."""
        return self.retry or (DEFAULT_RETRY if self.webhook is None else WEBHOOK_RETRY)


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a webhook, and the name of the secret that signs the body."""

    url: str
    secret: str


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to handle one event until `lease_until`. `key` is the same for every attempt: give it to an
    outside system that can recognise a repeated effect. With a `refusal`, the queue gives the event up for this reason:
    the worker must end it with `finish` or `fail` and not attempt it again."""

    consumer: str
    event: Event
    attempt: int
    lease_until: datetime
    token: str
    key: str
    refusal: str = ""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a consumer gave up on, with the reason. It can be replayed."""

    id: str
    consumer: str
    event: Event
    attempts: int
    reason: str
    failed_at: datetime


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer as stored, with its progress and the counts of its events. `seen_at` is when a worker of its agent
    last asked for events."""

    id: str
    consumer: Consumer
    cursor: int
    pending: int
    claimed: int
    dead: int
    seen_at: datetime | None = None


def sse_payload(event: Event) -> dict[str, Any]:
    """The event in the form that the stream and webhooks send. Title and context are from the version that the change
    made. They are null if the reader can no longer read that breadcrumb."""
    shown = event.breadcrumb
    return {
        "type": event.type,
        "breadcrumb_id": event.breadcrumb_id,
        "owner_id": event.owner_id,
        "version": event.version,
        "schema_name": event.schema_name,
        "tags": list(event.tags),
        "updated_at": event.at,
        "title": shown.title if shown else None,
        "context": shown.context if shown else None,
    }


def retry_delay(policy: RetryPolicy, attempt: int, jitter: float) -> float:
    """Seconds to wait after a failed attempt; `jitter` in [0, 1) spreads it over 75 % to 125 % of the pause."""
    wait = min(policy.backoff * 2.0 ** (attempt - 1), policy.backoff_limit)
    return wait * (0.75 + 0.5 * jitter)
