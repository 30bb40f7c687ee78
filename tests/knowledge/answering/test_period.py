"""The time that a question bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.answering.period import read_period

NOW = datetime(2026, 11, 16, 20, 15, tzinfo=UTC)
"""A Monday."""


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what changed today", "2026-11-16", "2026-11-16"),
        ("what happened yesterday?", "2026-11-15", "2026-11-15"),
        ("what happened the day before yesterday", "2026-11-14", "2026-11-14"),
        ("what changed this week", "2026-11-16", "2026-11-22"),
        ("what changed last week", "2026-11-09", "2026-11-15"),
        ("what changed last month", "2026-10-01", "2026-10-31"),
        ("what changed last quarter", "2026-07-01", "2026-09-30"),
        ("what changed last year", "2025-01-01", "2025-12-31"),
        ("what changed in the last two weeks", "2026-11-02", "2026-11-16"),
        ("what changed over the past 10 days", "2026-11-06", "2026-11-16"),
        ("last 3 days", "2026-11-13", "2026-11-16"),
        ("what changed 3 days ago", "2026-11-13", "2026-11-13"),
        ("what changed a month ago", "2026-10-01", "2026-10-31"),
        ("what changed in August 2026", "2026-08-01", "2026-08-31"),
        ("what changed in October 2024?", "2024-10-01", "2024-10-31"),
        ("what changed in august", "2026-08-01", "2026-08-31"),
        ("what changed in December", "2025-12-01", "2025-12-31"),
        ("what changed in 2024", "2024-01-01", "2024-12-31"),
        ("what changed in Q3 2025", "2025-07-01", "2025-09-30"),
        ("what changed since 2026-07-01", "2026-07-01", "2026-11-16"),
        ("what changed after 2026-07-01", "2026-07-02", "2026-11-16"),
        ("what changed since Friday", "2026-11-13", "2026-11-16"),
        ("what changed last Friday", "2026-11-13", "2026-11-13"),
        ("what changed on 1 July 2026", "2026-07-01", "2026-07-01"),
        ("what changed on July 1st, 2026", "2026-07-01", "2026-07-01"),
        ("commits between 2026-06-01 and 2026-07-01", "2026-06-01", "2026-07-01"),
        ("commits from January to March 2025", "2025-01-01", "2025-03-31"),
        ("commits from last week", "2026-11-09", "2026-11-15"),
    ],
)
def test_a_time_is_read_from_the_clock_that_is_given(question: str, first: str, last: str) -> None:
    found = read_period(question, NOW)
    assert found is not None
    assert found.label == (f"on {first}" if first == last else f"from {first} to {last}")


def test_before_a_time_is_everything_up_to_it() -> None:
    found = read_period("what changed before 2020", NOW)
    assert found is not None
    assert (found.label, found.until) == ("before 2020-01-01", datetime(2020, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "question",
    [
        "what changed in 2.10",
        "what changed in 2024.1",
        "what changed in v2026.1.2",
        "what may change in the router",
        "how is the second byte read",
        "the last version",
        "since the last release",
        "last 5 commits",
        "what comes before 3 marks",
        "since 20 decisions were made",
        "31 June 2026",
        "over the last 9999 years",
        "",
    ],
)
def test_apparent_times_are_none(question: str) -> None:
    assert read_period(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("what commits changed the kettle last week", "what commits changed the kettle"),
        ("what changed in October 2024?", "what changed ?"),
        ("in August 2026 what broke", "what broke"),
        ("where is the kettle", "where is the kettle"),
    ],
)
def test_the_words_of_a_time_are_no_part_of_the_rest(question: str, rest: str) -> None:
    found = read_period(question, NOW)
    assert (found.rest if found is not None else question) == rest


@given(st.text(max_size=300), st.datetimes(timezones=st.just(UTC)))
def test_any_text_may_be_read_at_any_time(text: str, now: datetime) -> None:
    found = read_period(text, now)
    assert found is None or found.since < found.until


WORDS = "in the last past since before 31 2026-02-30 99 years weeks ago may q3 1st"


@given(st.lists(st.sampled_from(WORDS.split())))
def test_words_of_time_in_any_order_never_fail(words: list[str]) -> None:
    found = read_period(" ".join(words), NOW)
    assert found is None or found.label
