"""Lanes and attempts of a queue: which events wait for each other, and when one is given up. No I/O.

The events of a lane stand in line, and only the first can be claimed. Those behind it come up when it leaves.
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
    """Events of one session are handled in order; where there is none those of one run, and else those of one
    breadcrumb. Without an order each event has a lane of its own."""
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
    """The next attempt at a row: its number, when the first one began, and why there is none."""

    number: int
    first_at: int
    refusal: str | None


def next_attempt(row: Due, policy: RetryPolicy, now: int) -> Attempt:
    """A row is given up when too many workers died with it or its time is used up. The worker of a row that is still
    claimed has died, and its attempt counts as a death instead."""
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
    """When an event whose attempt failed is due again; None when it was the last one."""
    due = now + int(retry_delay(policy, attempt, jitter) * 1_000_000)
    return None if attempt >= policy.attempts or is_late(policy.deadline, first_at, due) else due


def is_late(deadline: float | None, first_at: int, moment: int) -> bool:
    return deadline is not None and moment > first_at + int(deadline * 1_000_000)


def make_claim(consumer: Consumer, event: Event, *, attempt: int, until: int, token: str) -> Claim:
    key = f"{consumer.name}/{event.seq}"
    return Claim(
        consumer=consumer.name,
        event=msgspec.structs.replace(event, key=key, attempt=attempt),
        attempt=attempt,
        lease_until=from_micros(until),
        token=token,
        key=key,
    )


def cut_reason(reason: str) -> str:
    """The reason of a failure as it is stored."""
    return reason[:2_000].encode("utf-8", "replace").decode()
