"""The kind of a question, and its treatment of tests, found by rules without a model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clew.knowledge.answering.question import parse_question

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.req("SYL-65")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("why did we choose sqlite", "history"),
        ("how come jam was dropped", "history"),
        ("what changed last week", "history"),
        ("what changed in 2.1.0", "history"),
        ("when was the parser rewritten", "history"),
        ("who added the cache", "history"),
        ("which release removed the flag", "history"),
        ("what was decided about uploads", "history"),
        ("where is the cache", "code"),
        ("the cache", "code"),
        ("explain the cache", "explain"),
        ("how does the cache work", "explain"),
        ("what is our caching strategy", "explain"),
        ("how do I clear the cache", "howto"),
        ("can I turn the cache off", "howto"),
        ("how many entries does the cache hold", "quantity"),
        ("what is this project about?", "overview"),
        ("something else altogether", "code"),
        ("", "code"),
    ],
)
def test_rules_tell_the_kind_of_a_question(text: str, kind: str) -> None:
    assert parse_question(text, NOW).kind == kind


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("where is the cache", "last"),
        ("which tests cover the cache", "only"),
        ("what calls the cache, without tests", "never"),
        ("non-test callers of the cache", "never"),
        ("what calls the cache, tests included", "also"),
    ],
)
def test_a_question_says_how_tests_take_part(text: str, tests: str) -> None:
    assert parse_question(text, NOW).tests == tests


def test_a_question_is_parsed_into_names_paths_version_commit_and_period() -> None:
    asked = parse_question("why did `Pool.acquire` and fetch_user() in src/pool.py change in 2.1.0 last week", NOW)
    assert asked.names[:2] == ("Pool.acquire", "fetch_user")
    assert asked.paths == ("src/pool.py",)
    assert asked.version == "2.1.0"
    assert asked.period is not None
    assert asked.period.label == "from 2026-11-09 to 2026-11-15"
    assert parse_question("show commit 5a375ecde3", NOW).commit == "5a375ecde3"
    assert parse_question("what changed in Node.js, e.g. Python", NOW).names == ()
