"""Events: one ordered log of every change, and what a consumer makes of it."""

from __future__ import annotations

from datetime import datetime
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


MAX_DEATHS = 10
"""An event becomes a dead letter after this many workers died while they handled it."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long a failing event is tried: `attempts` in all, waiting `backoff` seconds, doubled
    each time up to `backoff_limit` and spread by jitter; never after `deadline` seconds from its first claim. A death
    of the worker is no failed attempt; `MAX_DEATHS` limits deaths."""

    attempts: int = 3
    backoff: float = 2.0
    backoff_limit: float = 300.0
    deadline: float | None = None


DEFAULT_RETRY = RetryPolicy()
WEBHOOK_RETRY = RetryPolicy(attempts=8, backoff=1.0)


class ClaimLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the claims of a consumer, over all workers and processes: `workers` claims in all, `each` for one group
    (a session, or a writer). Events with the tag `second_lane` come after all others. An eighth of the workers is kept
    for each lane, so that neither can block the other; of fewer than eight workers, none is kept."""

    workers: int = 32
    each: int = 8
    second_lane: str = "lane:work"

    @property
    def in_one_lane(self) -> int:
        """The most claims of one lane."""
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
    event of that number. Events of a session come one after the other unless `ordered` is false. With a `webhook` its
    events are posted there. Without a `retry` an event is tried 3 times, or 8 times with a webhook. With `limits` its
    groups take turns."""

    name: str
    selector: Selector = EVERYTHING
    retry: RetryPolicy | None = None
    start: Literal["now", "beginning"] = "now"
    after: int | None = None
    ordered: bool = True
    agent_id: str | None = None
    webhook: Webhook | None = None
    limits: ClaimLimits | None = None

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
    outside system that can recognise a repeated effect."""

    consumer: str
    event: Event
    attempt: int
    lease_until: datetime
    token: str
    key: str


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a consumer gave up on, with the reason. It can be replayed."""

    id: str
    consumer: str
    event: Event
    attempts: int
    reason: str
    failed_at: datetime


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer as stored, with where it stands. `seen_at` is when a worker of its agent last asked for events."""

    id: str
    consumer: Consumer
    cursor: int
    pending: int
    claimed: int
    dead: int
    seen_at: datetime | None = None


def sse_payload(event: Event) -> dict[str, Any]:
    """The event as the stream and the webhooks show it. Title and context are those of the version that the change
    made, or null when the reader cannot read that breadcrumb any more."""
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
    """Seconds to wait after a failed attempt; `jitter` in [0, 1) spreads it by half."""
    wait = min(policy.backoff * 2.0 ** (attempt - 1), policy.backoff_limit)
    return wait * (0.75 + 0.5 * jitter)
