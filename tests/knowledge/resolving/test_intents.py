"""What a question wants, of whom and of what, without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.resolving.intents import classify, classify_history
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.subjects import subject_key, subject_of
from tests.knowledge.resolving.utterances import COMMANDS, UTTERANCES


@pytest.mark.req("SYL-12")
def test_nine_of_ten_utterances_go_to_whom_they_are_for() -> None:
    wrong = {
        text: classify(text).target.value for text, target in UTTERANCES.items() if classify(text).target != target
    }
    assert len(wrong) <= len(UTTERANCES) // 10, wrong


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(("text", "target"), COMMANDS.items())
def test_a_command_always_goes_where_it_says(text: str, target: str) -> None:
    found = classify(text)
    assert (found.target, found.by, found.confidence) == (target, "command", 1.0)


@pytest.mark.req("SYL-16")
@pytest.mark.parametrize(
    ("text", "intent", "subject"),
    [
        ("where is the auth middleware", "LOCATE", "auth_middleware"),
        ("what is our caching strategy", "PATTERN", "caching"),
        ("how does CreateSession work", "EXPLAIN", "create_session"),
        ("what testing frameworks do we use", "PATTERN", "testing"),
        ("what patterns do we use for error handling", "PATTERN", "error_handling"),
        ("find CreateUser function", "LOCATE", "create_user"),
        ("how do we handle errors", "PATTERN", "errors"),
        ("explain the pipeline", "EXPLAIN", "pipeline"),
        ("list all API endpoints", "GENERAL", "api_endpoints"),
    ],
)
def test_a_question_about_code_has_an_intent_and_a_subject(text: str, intent: str, subject: str) -> None:
    found = classify(text)
    assert (found.target, found.intent, found.subject, found.time_scope) == ("librarian", intent, subject, "")


@pytest.mark.req("SYL-17")
@pytest.mark.parametrize(
    ("text", "intent", "subject", "time_scope"),
    [
        ("how did we handle the auth migration", "HISTORICAL", "auth_migration", ""),
        ("what changed in the API recently", "ACTIVITY", "api", "recently"),
        ("did the database fix work", "OUTCOME", "database_fix", ""),
        ("similar errors to this before", "SIMILAR", "errors", ""),
        ("where did we leave off yesterday", "RESUME", "session", "yesterday"),
        ("how did we handle the auth migration last month", "HISTORICAL", "auth_migration", "last_month"),
        ("what did the team work on last week", "GENERAL", "team", "last_week"),
    ],
)
def test_a_question_about_the_past_also_has_a_time(text: str, intent: str, subject: str, time_scope: str) -> None:
    found = classify(text)
    assert (found.target, found.intent) == ("archivalist", intent)
    assert (found.subject, found.time_scope) == (subject, time_scope)


@pytest.mark.req("SYL-65")
@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("what did we do for uploads", Intent.HISTORICAL),
        ("which files changed", Intent.ACTIVITY),
        ("files changed by the last task", Intent.ACTIVITY),
        ("what did the engineer do", Intent.ACTIVITY),
        ("did the tests pass", Intent.OUTCOME),
        ("issues found in the review", Intent.OUTCOME),
        ("seen this before", Intent.SIMILAR),
        ("resume", Intent.RESUME),
        ("pick up the thread", Intent.RESUME),
        ("something else altogether", Intent.GENERAL),
        ("", Intent.GENERAL),
    ],
)
def test_rules_alone_tell_the_intents_of_history(text: str, intent: Intent) -> None:
    assert classify_history(text)[0] is intent


@given(st.text(max_size=400))
def test_any_text_gets_somebody_to_answer_it(text: str) -> None:
    found = classify(text)
    assert isinstance(found.target, Target)
    assert 0 < found.confidence <= 1


def test_a_very_long_text_is_looked_at_only_so_far() -> None:
    assert classify("explain " + "word " * 200_000).intent is Intent.EXPLAIN


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("token validation", "validated tokens", True),
        ("auth", "authz", False),
        ("retry policy", "retry policies", True),
        ("create_user", "delete_user", False),
        ("user_service", "users_service_v2", False),
    ],
)
def test_subjects_are_one_by_their_stems_in_any_order(one: str, other: str, are_same: bool) -> None:
    assert (subject_key(subject_of(one)) == subject_key(subject_of(other))) is are_same
