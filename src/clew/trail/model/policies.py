"""TTL policies as data: each is a breadcrumb of schema `ttl.policy.v1`, so adding one needs no code.

A new breadcrumb without a TTL in its draft gets the TTL of the most specific policy that matches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import NEVER, Ttl, check_schema_name, check_tags

MAX_SECONDS = 100 * 365 * 86_400
MAX_READS = 1_000_000_000


class TtlPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lifetime of breadcrumbs of a schema, with all of some tags, or both: `seconds` from their creation or
    `max_reads` consumer reads. If both are given, the earlier end applies."""

    schema_name: str | None = None
    all_tags: tuple[str, ...] = ()
    seconds: float | None = None
    max_reads: int | None = None
    description: str = ""


def parse_policy(context: dict[str, Any]) -> TtlPolicy:
    """The policy in a breadcrumb's context. Raises InvalidInput naming the field that is wrong."""
    try:
        return check_policy(msgspec.convert(context, TtlPolicy))
    except msgspec.ValidationError as error:
        raise InvalidInput("context", f"is not a TTL policy: {error}") from None


def check_policy(policy: TtlPolicy) -> TtlPolicy:
    """Refuse a policy that matches everything, sets no limit, or has a limit out of range."""
    check_schema_name(policy.schema_name)
    check_tags(policy.all_tags)
    if policy.schema_name is None and not policy.all_tags:
        raise InvalidInput(
            "schema_name", "is needed if no all_tags are given", hint="Name the schema or the tags of its breadcrumbs"
        )
    if policy.seconds is None and policy.max_reads is None:
        raise InvalidInput("seconds", "is needed if no max_reads is given")
    if policy.seconds is not None and not 0 < policy.seconds <= MAX_SECONDS:
        raise InvalidInput("seconds", f"must be more than 0 and at most {MAX_SECONDS:,}")
    if policy.max_reads is not None and not 1 <= policy.max_reads <= MAX_READS:
        raise InvalidInput("max_reads", f"must be between 1 and {MAX_READS:,}")
    return policy


def ttl_for(policies: Sequence[TtlPolicy], schema_name: str | None, tags: Sequence[str], now: datetime) -> Ttl:
    """The TTL that the policies give a breadcrumb created at `now`. If no policy matches, it never expires. The policy
    with the most tags wins, then a policy that names the schema, then the one that expires sooner. The order of the
    policies does not matter.
    """
    fitting = [policy for policy in policies if _fits(policy, schema_name, tags)]
    if not fitting:
        return NEVER
    return _ttl_of(min(fitting, key=_rank), now)


def _fits(policy: TtlPolicy, schema_name: str | None, tags: Sequence[str]) -> bool:
    if policy.schema_name is not None and policy.schema_name != schema_name:
        return False
    return all(tag in tags for tag in policy.all_tags)


def _rank(policy: TtlPolicy) -> tuple[int, bool, float, float]:
    """Lower wins. Policies of equal rank give the same TTL."""
    seconds = float("inf") if policy.seconds is None else policy.seconds
    reads = float("inf") if policy.max_reads is None else policy.max_reads
    return -len(set(policy.all_tags)), policy.schema_name is None, seconds, reads


def _ttl_of(policy: TtlPolicy, now: datetime) -> Ttl:
    if policy.seconds is None:
        return Ttl(kind="usage", max_reads=policy.max_reads)
    end = now + timedelta(seconds=policy.seconds)
    if policy.max_reads is None:
        return Ttl(kind="datetime", expires_at=end)
    return Ttl(kind="hybrid", expires_at=end, max_reads=policy.max_reads)
