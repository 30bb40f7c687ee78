"""`clew route`: the order of the decision, the metadata of questions, and errors."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clew.team.commands import COMMANDS
from clew.team.route import CERTAIN
from tests.cli.conftest import Clew

CERTAINLY = (
    ("what did we decide about the queue last week", "archivalist"),
    ("go ahead please", "control"),
    ("redesign the settings page with larger buttons", "designer"),
    ("review the changes in my branch", "inspector"),
    ("where is the rate limit configured", "librarian"),
    ("switch to the session about payments", "session"),
    ("tell task 3 to stop", "task"),
    ("add a unit test for the new parser", "tester"),
)


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """A file with one answer of a model."""

    def write(**answer: Any) -> str:
        common = {"intent": "GENERAL", "subject": "", "time_scope": "", "confidence": 0.9}
        place = tmp_path / "script.yaml"
        place.write_text(json.dumps([{"say": json.dumps({"routes": [common | answer]})}]), encoding="utf-8")
        return str(place)

    return write


def route(clew: Clew, *arguments: str) -> dict[str, Any]:
    result = clew("route", "--json", *arguments)
    assert result.code == 0, result.err
    answer: dict[str, Any] = result.json
    return answer


@pytest.mark.req("SYL-12", "SYL-15")
@pytest.mark.parametrize(("name", "target"), COMMANDS.items())
def test_a_slash_command_is_certain(clew: Clew, name: str, target: str) -> None:
    for message in (f"/{name}", f"/{name.upper()} 4 review the tests where we left off"):
        found = route(clew, message)
        assert (found["target"], found["confidence"], found["decided_by"]) == (target, 1.0, "command")


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(
    ("message", "target"),
    [("/sesion list", "session"), ("/tsak 4 interrupt", "task"), ("/reserach raft", "academic")],
)
def test_a_misspelled_command_is_still_one(clew: Clew, message: str, target: str) -> None:
    found = route(clew, message)
    assert (found["target"], found["decided_by"]) == (target, "command")


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(
    "message", ["/usr/bin/env is missing", "/home is full", "what does /task 3 do?", "/core dumped"]
)
def test_a_path_or_a_command_within_a_message_is_no_command(clew: Clew, message: str) -> None:
    assert route(clew, message)["decided_by"] != "command"


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(("message", "target"), CERTAINLY)
def test_the_classifier_decides_what_it_is_certain_of(clew: Clew, message: str, target: str) -> None:
    for talking_to in ((), ("--talking-to", "academic")):
        found = route(clew, message, *talking_to)
        assert (found["target"], found["decided_by"]) == (target, "classifier")
        assert found["confidence"] >= CERTAIN


@pytest.mark.req("SYL-12")
def test_a_follow_up_stays_with_who_is_talking(clew: Clew) -> None:
    for agent in ("academic", "Inspector", "designer"):
        found = route(clew, "and what about the second one", "--talking-to", agent)
        assert (found["target"], found["decided_by"]) == (agent.lower(), "follow-up")


@pytest.mark.req("SYL-12")
def test_an_unclear_message_goes_to_the_architect_with_a_question_back(clew: Clew) -> None:
    found = route(clew, "hmm the thing with the numbers")
    assert (found["target"], found["decided_by"]) == ("architect", "default")
    assert found["confidence"] < CERTAIN
    assert found["question"].endswith("?")
    assert "?" in clew("route", "hmm the thing with the numbers").err


@pytest.mark.req("SYL-12", "SYL-15")
def test_a_model_decides_what_the_classifier_is_not_certain_of(clew: Clew, script: Any) -> None:
    found = route(clew, "hmm the thing with the numbers", "--script", script(target="tester", confidence=0.7))
    assert (found["target"], found["decided_by"], found["confidence"]) == ("tester", "model", 0.7)
    assert "guide" in clew("usage").out


@pytest.mark.req("SYL-15")
def test_a_command_and_a_certain_message_ask_no_model_and_open_no_trail(clew: Clew, script: Any, folder: Path) -> None:
    for message in ("/session list", "tell task 3 to stop"):
        assert route(clew, message, "--script", script(target="academic"))["decided_by"] != "model"
    assert not folder.exists()


@pytest.mark.req("SYL-16")
@pytest.mark.parametrize(
    ("message", "intent", "subject"),
    [
        ("where is the auth middleware", "LOCATE", "auth_middleware"),
        ("what is our caching strategy", "PATTERN", "caching"),
        ("how does CreateSession work", "EXPLAIN", "create_session"),
        ("what testing frameworks do we use", "PATTERN", "testing"),
        ("what patterns do we use for error handling", "PATTERN", "error_handling"),
        ("where is the auth code", "LOCATE", "authentication"),
        ("what languages are used", "GENERAL", "languages"),
    ],
)
def test_a_question_to_the_librarian_has_intent_and_subject(
    clew: Clew, message: str, intent: str, subject: str
) -> None:
    found = route(clew, message, "--talking-to", "librarian")
    assert (found["target"], found["intent"], found["subject"]) == ("librarian", intent, subject)
    assert found["time_scope"] == ""


@pytest.mark.req("SYL-16")
def test_the_metadata_comes_with_the_target_from_one_model_call(clew: Clew, script: Any) -> None:
    file = script(target="librarian", intent="PATTERN", subject="Caching", time_scope="yesterday", confidence=0.92)
    found = route(clew, "what is our caching strategy", "--script", file)
    expected = {"target": "librarian", "intent": "PATTERN", "subject": "caching", "confidence": 0.92, "time_scope": ""}
    assert found.items() >= expected.items()


@pytest.mark.req("SYL-17")
@pytest.mark.parametrize(
    ("message", "intent", "subject", "time_scope"),
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
def test_a_question_to_the_archivalist_has_a_time_scope_too(
    clew: Clew, message: str, intent: str, subject: str, time_scope: str
) -> None:
    found = route(clew, message, "--talking-to", "archivalist")
    assert found["target"] == "archivalist"
    assert (found["intent"], found["subject"], found["time_scope"]) == (intent, subject, time_scope)


@pytest.mark.req("SYL-17")
def test_recently_is_the_last_seven_days_and_before_has_no_bounds(clew: Clew) -> None:
    today = datetime.now(UTC).date()
    recent = route(clew, "/history what changed recently")
    assert recent["since"] in {str(today - timedelta(days=back)) for back in (7, 8)}
    assert recent["until"] >= str(today)
    before = route(clew, "/history did we do this before")
    assert (before["time_scope"], before["since"], before["until"]) == ("", "", "")


@pytest.mark.req("SYL-17")
@pytest.mark.parametrize(
    ("said", "scope", "days"),
    [
        ("last 3 weeks", "last_3_weeks", 22),
        ("3 days ago", "3_days_ago", 1),
        ("yesterday", "yesterday", 1),
        ("last week", "last_week", 7),
        ("since friday", "since_friday", None),
        ("999 years ago", "999_years_ago", 365),
    ],
)
def test_a_time_scope_has_its_dates(clew: Clew, said: str, scope: str, days: int | None) -> None:
    found = route(clew, f"/history what changed in the parser {said}")
    assert (found["time_scope"], found["subject"]) == (scope, "parser")
    since, until = date.fromisoformat(found["since"]), date.fromisoformat(found["until"])
    assert days is None or (until - since).days + 1 == days


@pytest.mark.req("SYL-17")
def test_a_time_scope_of_the_model_that_means_no_time_has_no_dates(clew: Clew, script: Any) -> None:
    file = script(target="archivalist", time_scope="last 99999 years")
    assert route(clew, "hmm the thing with the numbers", "--script", file)["since"] == ""


@pytest.mark.req("SYL-17")
def test_the_model_gives_the_time_scope_with_the_target(clew: Clew, script: Any) -> None:
    file = script(target="archivalist", intent="LOCATE", subject="the queue", time_scope="last month", confidence=2)
    found = route(clew, "hmm the thing with the numbers", "--script", file)
    assert (found["intent"], found["subject"], found["time_scope"]) == ("GENERAL", "the_queue", "last_month")
    assert found["confidence"] == 1.0
    assert found["since"] < found["until"]


def test_a_person_sees_the_decision_line_by_line(clew: Clew) -> None:
    lines = clew("route", "where is the auth middleware").lines
    assert "target\tlibrarian" in lines
    assert "decided_by\tclassifier" in lines
    assert "subject\tauth_middleware" in lines
    assert not any(line.startswith("time_scope") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((" ",), "empty"),
        (("hello", "--talking-to", "cook"), "cook"),
        (("hello", "--talking-to", "task"), "task"),
        (("hm", "--script", "no.yaml"), "no.yaml"),
    ],
)
def test_wrong_arguments_are_reported(clew: Clew, arguments: tuple[str, ...], told: str) -> None:
    result = clew("route", *arguments)
    assert result.code == 2
    assert told in result.err


def test_a_key_in_a_message_is_not_shown(clew: Clew) -> None:
    key = "sk-ant-api03-" + "a1B2" * 12
    assert "a1b2" not in clew("route", "--json", f"/find {key}").out.lower()
