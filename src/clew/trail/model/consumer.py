"""Consumers as a backend stores them: the checks at registration, and the callers that may claim events for one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput, NotFound
from clew.trail.model.event import Consumer
from clew.trail.model.selector import check_selector

decode_consumer = lru_cache(1_000)(msgspec.json.Decoder(Consumer).decode)
MAX_CLAIMS = 1_000
MAX_DELAY = 86_400.0
MIN_WEBHOOK_BACKOFF = 1.0
"""Seconds. A failing receiver must not be flooded."""


class StoredConsumer(msgspec.Struct, frozen=True):
    """A consumer's row. It sees the records that its owner may read with the consumer's scopes, regardless of the
    worker. `schemas` are those of its selector."""

    cid: int
    consumer: Consumer
    owner_id: str
    scopes: frozenset[str]
    cursor: int
    schemas: frozenset[str]

    def due_at(self, now: int) -> int:
        """The time in microseconds from which an event that is new at `now` can be claimed."""
        return now + int(self.consumer.delay * 1_000_000)

    def has_terms_of(self, other: StoredConsumer) -> bool:
        """Whether definition and scopes of both are equal."""
        return self is other or (self.consumer == other.consumer and self.scopes == other.scopes)


def to_stored(
    cid: int, definition: str, scopes: Iterable[str], cursor: int, name: str, by: Principal
) -> StoredConsumer:
    """The consumer in a row that belongs to the caller's owner. Raises NotFound if the caller lacks one of the
    consumer's scopes."""
    held = frozenset(scopes)
    if not by.scopes.issuperset(held):
        raise NotFound("consumer", name)
    consumer = decode_consumer(definition)
    return StoredConsumer(cid, consumer, by.owner_id, held, cursor, frozenset(consumer.selector.schemas))


def with_real_start(consumer: Consumer, present: Consumer | None, cursor: int) -> Consumer:
    """The consumer as it is stored. If a new consumer names its start, the stored start is `cursor`, the event after
    which it really begins. A consumer that is registered again keeps its start, even if it named none."""
    if present is not None:
        return msgspec.structs.replace(consumer, after=present.after)
    return consumer if consumer.after is None else msgspec.structs.replace(consumer, after=cursor)


def check_consumer(consumer: Consumer) -> Consumer:
    """Refuse names and policies that make no sense."""
    if not 1 <= len(consumer.name) <= 200 or not consumer.name.isprintable() or consumer.name.strip() != consumer.name:
        raise InvalidInput("name", "must be 1 to 200 printable characters")
    retry = consumer.retry_policy
    if not 1 <= retry.attempts <= 100 or not 0 <= retry.backoff <= 86_400 or not 0 <= retry.backoff_limit <= 86_400:
        raise InvalidInput("retry", "needs 1 to 100 attempts and a backoff of at most a day")
    if consumer.webhook is not None and min(retry.backoff, retry.backoff_limit) < MIN_WEBHOOK_BACKOFF:
        raise InvalidInput("retry", "needs a backoff and a backoff_limit of at least 1 second for a webhook")
    if retry.deadline is not None and not 0 < retry.deadline <= 31_536_000:
        raise InvalidInput("retry.deadline", "must be between 0 and a year in seconds")
    limits = consumer.limits
    if limits is not None and not (1 <= limits.workers <= 100_000 and 1 <= limits.each <= 100_000):
        raise InvalidInput("limits", "workers and each must be between 1 and 100,000")
    if not 0 <= consumer.delay <= MAX_DELAY:
        raise InvalidInput("delay", "must be between 0 and a day in seconds")
    if consumer.after is not None and consumer.after < 0:
        raise InvalidInput("after", "must be the number of an event, or 0")
    check_selector(consumer.selector)
    return consumer


def check_claim_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_CLAIMS:
        raise InvalidInput("limit", f"must be between 1 and {MAX_CLAIMS:,}")
