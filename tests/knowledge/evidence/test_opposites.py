"""Statements that cannot both hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.evidence.conflicts import are_opposed, detect
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY, NOW, node

THREE, FIVE = "We use three retries because the gateway drops the first connection", "We retry five times, never three"


@pytest.mark.req("SYL-85")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (THREE, FIVE),
        ("Requires Python 3.10 or newer", "Requires Python 3.11"),
        ("The user prefers tabs over spaces", "The user does not prefer tabs over spaces"),
        ("Payments are settled at noon", "Payments are never settled at noon"),
    ],
)
def test_another_number_or_a_denial_of_the_same_is_a_contradiction(one: str, other: str) -> None:
    assert are_opposed(one, other)
    assert are_opposed(other, one)


@pytest.mark.req("SYL-85")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (THREE, "We use 3 retries because the gateway drops the first connection"),
        ("The cache has 3 shards", "The cache expires after 5 minutes"),
        ("Use 3 retries for HTTP calls", "Use 5 retries for the database"),
        ("See issue 55 for this", "See issue 117 for this"),
        ("The importer is not quick", "The exporter is quick"),
        ("", "12 3 4"),
    ],
)
def test_statements_about_another_subject_or_with_the_same_content_are_no_conflict(one: str, other: str) -> None:
    assert not are_opposed(one, other)
    assert not are_opposed(other, one)


@pytest.mark.req("SYL-85")
def test_a_contradiction_needs_something_that_was_noted_here_and_no_code() -> None:
    noted, told = node(HISTORY, "a", THREE, verified=True), node(ACADEMIC, "b", FIVE)
    [found] = detect([noted, told], NOW)
    assert {found.node_a, found.node_b} == {noted.id, told.id}
    assert "contradicts" in found.description
    assert found.resolution
    assert detect([told, node(ACADEMIC, "c", THREE)], NOW) == []
    assert detect([noted, node(CODE, "d", FIVE, path="a.py")], NOW) == []


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_order_of_two_texts_does_not_matter(one: str, other: str) -> None:
    assert are_opposed(one, other) == are_opposed(other, one)
    assert not are_opposed(one, one)
