from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import NEVER, Ttl, check_ttl
from clew.trail.model.policies import MAX_SECONDS, TtlPolicy, check_policy, parse_policy, ttl_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.req("RCR-11")
def test_a_policy_gives_its_schema_an_end() -> None:
    policies = [parse_policy({"schema_name": "system.ping.v1", "seconds": 600})]

    assert ttl_for(policies, "system.ping.v1", (), NOW) == Ttl(kind="datetime", expires_at=after(600))
    assert ttl_for(policies, "note.v1", (), NOW) == NEVER
    assert ttl_for(policies, None, (), NOW) == NEVER


@pytest.mark.req("RCR-11")
def test_a_policy_with_tags_needs_all_of_them() -> None:
    policies = [parse_policy({"schema_name": "tool.request.v1", "all_tags": ["health:check", "probe"], "seconds": 300})]

    assert ttl_for(policies, "tool.request.v1", ("probe", "x", "health:check"), NOW).expires_at == after(300)
    assert ttl_for(policies, "tool.request.v1", ("health:check",), NOW) == NEVER
    assert ttl_for(policies, "other.v1", ("probe", "health:check"), NOW) == NEVER


@pytest.mark.req("RCR-10")
def test_reads_and_seconds_choose_the_kind_of_ttl() -> None:
    by_reads = parse_policy({"schema_name": "a.v1", "max_reads": 2})
    by_both = parse_policy({"schema_name": "b.v1", "max_reads": 2, "seconds": 1.5})

    assert ttl_for([by_reads, by_both], "a.v1", (), NOW) == Ttl(kind="usage", max_reads=2)
    assert ttl_for([by_reads, by_both], "b.v1", (), NOW) == Ttl(kind="hybrid", expires_at=after(1.5), max_reads=2)


@pytest.mark.req("RCR-11")
def test_the_most_specific_policy_wins_in_any_order() -> None:
    two_tags = TtlPolicy(all_tags=("a", "b"), seconds=10)
    tag_and_schema = TtlPolicy(schema_name="x.v1", all_tags=("a",), seconds=20)
    one_tag = TtlPolicy(all_tags=("a",), seconds=5)
    schema_only = TtlPolicy(schema_name="x.v1", seconds=1)
    everything = [two_tags, tag_and_schema, one_tag, schema_only]

    for order in itertools.permutations(everything):
        assert ttl_for(order, "x.v1", ("a", "b"), NOW).expires_at == after(10)
        assert ttl_for(order, "x.v1", ("a",), NOW).expires_at == after(20)
        assert ttl_for(order, "y.v1", ("a",), NOW).expires_at == after(5)
        assert ttl_for(order, "x.v1", (), NOW).expires_at == after(1)


def test_a_repeated_tag_does_not_make_a_policy_more_specific() -> None:
    stuttering = TtlPolicy(all_tags=("a", "a", "a"), seconds=1)
    precise = TtlPolicy(all_tags=("a", "b"), seconds=2)

    assert ttl_for([stuttering, precise], None, ("a", "b"), NOW).expires_at == after(2)


@given(
    st.lists(
        st.builds(
            TtlPolicy,
            schema_name=st.sampled_from(["x.v1", "y.v1"]),
            all_tags=st.lists(st.sampled_from("abc"), max_size=3).map(tuple),
            seconds=st.none() | st.floats(0.001, MAX_SECONDS),
            max_reads=st.integers(1, 9),
        ),
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_the_same_policies_in_another_order_give_the_same_valid_ttl(policies: list[TtlPolicy], random: Any) -> None:
    shuffled = list(policies)
    random.shuffle(shuffled)

    ttl = ttl_for(policies, "x.v1", ("a", "b", "c"), NOW)

    assert ttl == ttl_for(shuffled, "x.v1", ("a", "b", "c"), NOW)
    assert check_ttl(ttl) == ttl


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({}, "schema_name"),
        ({"seconds": 5}, "schema_name"),
        ({"schema_name": "x.v1"}, "seconds"),
        ({"schema_name": "x.v1", "seconds": 0}, "seconds"),
        ({"schema_name": "x.v1", "seconds": -1}, "seconds"),
        ({"schema_name": "x.v1", "seconds": 1e300}, "seconds"),
        ({"schema_name": "x.v1", "seconds": float("nan")}, "seconds"),
        ({"schema_name": "x.v1", "seconds": "5"}, "context"),
        ({"schema_name": "x.v1", "seconds": True}, "context"),
        ({"schema_name": "x.v1", "max_reads": 0}, "max_reads"),
        ({"schema_name": "x.v1", "max_reads": 1.5}, "context"),
        ({"schema_name": "not a name", "seconds": 5}, "schema_name"),
        ({"all_tags": "ab", "seconds": 5}, "context"),
        ({"all_tags": ["\n"], "seconds": 5}, "tags[0]"),
        ({"schema_name": "x.v1", "second": 5, "seconds": 5}, "context"),
    ],
)
def test_a_malformed_policy_is_refused_with_its_field(context: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_policy(context)

    assert caught.value.field == field


def test_a_policy_built_in_code_is_checked_alike() -> None:
    with pytest.raises(InvalidInput):
        check_policy(TtlPolicy(all_tags=("a",), seconds=0))
    assert check_policy(TtlPolicy(all_tags=("a",), seconds=1)).seconds == 1
