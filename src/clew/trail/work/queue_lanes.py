"""Lanes and attempts of a queue: which events wait for each other, and when one is given up. No I/O.

The events of a lane form a queue, and only the first one can be claimed. When it leaves, the next one becomes the
first.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from clew.clock import from_micros
from clew.trail.model.breadcrumb import session_of
from clew.trail.model.event import MAX_DEATHS, Claim, Consumer, Event, RetryPolicy, retry_delay

FIRST, CLAIMED, DEAD, BEHIND = range(4)
"""The states of a delivery: first of its lane, first and claimed, a dead letter, behind the first."""


def lane_of(event: Event, ordered: bool) -> str:
    """The lane of an event. Events of one session share a lane and are handled in order; without a session those of one
    run, else those of one breadcrumb. If not `ordered`, each event has its own lane."""
    if not ordered:
        return f"e:{event.seq}"
    session = session_of(event.tags)
    if session is not None:
        return f"s:{session}"
    run = next((tag for tag in event.tags if tag.startswith("run:")), None)
    return run or f"b:{event.breadcrumb_id}"


class Due(NamedTuple):
    """A row that can be claimed now."""

    seq: int
    lane: str
    state: int
    attempts: int
    deaths: int
    first_at: int


class Attempt(NamedTuple):
    """The next attempt at a row: its number, the time of the first attempt, and the reason if the row must be given up
    instead."""

    number: int
    first_at: int
    refusal: str | None


def next_attempt(row: Due, policy: RetryPolicy, now: int) -> Attempt:
    """The next attempt at a row. The row is given up if too many workers died with it or its deadline has passed. If
    the row is still claimed, its worker has died, and that attempt is counted as a death instead."""
    has_died = row.state == CLAIMED
    first_at = row.first_at or now
    deaths, number = row.deaths + has_died, row.attempts + (not has_died)
    refusal = None
    if deaths >= MAX_DEATHS:
        refusal = f"{deaths} workers died with it"
    elif is_late(policy.deadline, first_at, now):
        refusal = "past its deadline"
    return Attempt(number, first_at, refusal)


def next_due(policy: RetryPolicy, attempt: int, first_at: int, now: int, jitter: float) -> int | None:
    """The time at which an event is due again after a failed attempt, or None if that was the last attempt."""
    due = now + int(retry_delay(policy, attempt, jitter) * 1_000_000)
    return None if attempt >= policy.attempts or is_late(policy.deadline, first_at, due) else due


def is_late(deadline: float | None, first_at: int, moment: int) -> bool:
    return deadline is not None and moment > first_at + int(deadline * 1_000_000)


def make_claim(
    consumer: Consumer, event: Event, *, attempt: int, until: int, token: str, refusal: str | None = None
) -> Claim:
    key = f"{consumer.name}/{event.seq}"
    return Claim(
        consumer=consumer.name,
        event=msgspec.structs.replace(event, key=key, attempt=attempt),
        attempt=attempt,
        lease_until=from_micros(until),
        token=token,
        key=key,
        refusal=refusal or "",
    )


def cut_reason(reason: str) -> str:
    """The reason of a failure as it is stored."""
    return reason[:2_000].encode("utf-8", "replace").decode()
