"""The same question in other words is served by the kept answer; one that only looks like it never is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.clock import ManualClock
from clew.knowledge.resolving.aspects import are_at_odds, aspect_of
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import classify
from clew.knowledge.resolving.subjects import stem_of
from clew.llm import open_embedder
from clew.trail.store import Embedder

PAIRS = Path(__file__).parents[3] / "benchmarks" / "paraphrases"


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    opened = open_embedder("wordllama")
    assert opened is not None
    return opened


def read(name: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in (PAIRS / f"{name}.jsonl").read_bytes().splitlines()]


def serves(first: str, second: str, embedder: Embedder, clock: ManualClock) -> bool:
    cache = IntentCache(clock, embedder)
    cache.put(first, classify(first), first)
    return cache.get(second, classify(second)) is not None


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("where do we validate tokens", "where is the token validation"),
        ("where is the upload size limit", "where is the limit of the upload size"),
        ("where do we delete expired sessions", "where do we remove expired sessions"),
        ("what calls load_settings", "where is load_settings called"),
        ("where is CreateSession", "where is create_session"),
        ("how do we paginate lists", "what is the pattern for list pagination"),
        ("how does the tokeniser work", "how exactly does the tokenizer actually work?"),
    ],
)
def test_a_question_about_code_in_other_words_is_served(
    embedder: Embedder, clock: ManualClock, one: str, other: str
) -> None:
    assert serves(one, other, embedder, clock)
    assert serves(other, one, embedder, clock)


@pytest.mark.req("SYL-64")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("why did we migrate the database", "what was the reason for the database migration"),
        ("when did we switch to Postgres", "at what point did we switch to Postgres"),
        ("what changed last week in the docs", "what changed in the docs last week"),
        ("did the deployment succeed", "so did the deployment actually succeed?"),
        ("have we seen timeouts like this before", "have we seen a timeout like this before"),
        ("where did we leave off", "where were we"),
    ],
)
def test_a_question_about_the_past_in_other_words_is_served(
    embedder: Embedder, clock: ManualClock, one: str, other: str
) -> None:
    assert serves(one, other, embedder, clock)
    assert serves(other, one, embedder, clock)


@pytest.mark.req("SYL-60", "SYL-64")
def test_no_near_miss_is_served_in_either_order(embedder: Embedder, clock: ManualClock) -> None:
    pairs = read("apart")
    assert len(pairs) >= 200
    orders = [order for pair in pairs for order in ((pair["a"], pair["b"]), (pair["b"], pair["a"]))]
    assert [order for order in orders if serves(*order, embedder, clock)] == []


@pytest.mark.req("SYL-60", "SYL-64")
@pytest.mark.parametrize("half", ["tuned", "held out"])
def test_most_paraphrases_are_served(embedder: Embedder, clock: ManualClock, half: str) -> None:
    pairs = [pair for pair in read("same") if pair["half"] == half]
    served = [pair for pair in pairs if serves(pair["a"], pair["b"], embedder, clock)]
    assert len(served) >= 0.6 * len(pairs)


@pytest.mark.req("SYL-60")
def test_among_many_kept_answers_a_paraphrase_gets_its_own(embedder: Embedder, clock: ManualClock) -> None:
    pairs = [pair for pair in read("same") if pair["intent"] != "RESUME"]
    cache = IntentCache(clock, embedder)
    for pair in pairs:
        cache.put(pair["a"], classify(pair["a"]), pair["id"])
    found = {pair["id"]: cache.get(pair["b"], classify(pair["b"])) for pair in pairs}
    assert [(asked, kept.value) for asked, kept in found.items() if kept is not None and kept.value != asked] == []


@pytest.mark.req("SYL-60")
def test_words_beyond_the_subject_still_tell_long_questions_apart(embedder: Embedder, clock: ManualClock) -> None:
    long = "where do we convert uploaded image archives into small thumbnail pictures for old {}"
    assert serves(long.format("phones"), long.format("phone"), embedder, clock)
    assert not serves(long.format("phones"), long.format("tablets"), embedder, clock)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("validate", "valid"),
        ("authorization", "author"),
        ("important", "import"),
        ("operators", "operations"),
        ("active", "activate"),
        ("container", "contains"),
    ],
)
def test_words_that_share_no_more_than_a_stem_stay_apart(one: str, other: str) -> None:
    assert stem_of(one) != stem_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("serialise", "serialization"),
        ("policies", "policy"),
        ("config", "configuration"),
        ("migrated", "migrations"),
        ("colour", "colors"),
    ],
)
def test_forms_and_spellings_of_a_word_are_one(one: str, other: str) -> None:
    assert stem_of(one) == stem_of(other)


@pytest.mark.parametrize(
    ("question", "aspect"),
    [
        ("explain the cache", ""),
        ("", ""),
        ("why did we drop Redis?", "why"),
        ("where is the class called render", ""),
        ("where is the template called", "callers"),
        ("what does load_all call", "=loadall callees"),
        ("where do we convert bytes to text", ">text"),
        ("what changed since yesterday", "@yesterday since:yesterday"),
        ("explain C++", "=c++"),
        ("list tests that don't run", "not"),
    ],
)
def test_an_aspect_holds_what_the_words_of_a_subject_do_not(question: str, aspect: str) -> None:
    assert aspect_of(question) == aspect


def test_what_lies_beyond_a_very_long_beginning_still_tells_questions_apart() -> None:
    long = "where is x_" + "y_" * 2_000
    assert aspect_of(long + "a") != aspect_of(long + "b")
    assert aspect_of("where is " * 2_000)


@given(st.text(max_size=300))
def test_any_text_has_the_same_aspect_every_time(text: str) -> None:
    assert aspect_of(text) == aspect_of(text)
    assert not are_at_odds(text, "")


def test_questions_are_at_odds_over_the_kind_of_a_thing_and_over_what_is_part_of_what() -> None:
    assert are_at_odds("explain the test of the parser", "explain the parser of the test")
    assert are_at_odds("where is the test parser", "where is the parser test")
    assert are_at_odds("where is the user class", "where is the user table")
    assert are_at_odds("explain the value at an index", "explain the index of a value")
    assert not are_at_odds("detect the image shape", "image shape detect")
    assert not are_at_odds("csv read", "read csv to an array")
    assert not are_at_odds("where is the limit of the upload", "where is the upload limit")
    assert not are_at_odds("where is the user class", "where is the user")
    assert not are_at_odds("", "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("explain the check for a numeric type", "explain the check for all numeric types"),
        ("explain the list of methods of the object", "explain the list of the object"),
        ("explain a list of lists", "explain a list"),
        ("explain the function in the file", "explain the file"),
        ("send a variable to a file", "send a method as a variable"),
    ],
)
def test_one_and_all_once_and_twice_and_two_kinds_are_at_odds(one: str, other: str) -> None:
    assert are_at_odds(one, other)
    assert are_at_odds(other, one)


def test_all_of_what_is_many_anyway_is_the_same() -> None:
    assert not are_at_odds("list all endpoints", "list the endpoints")
    assert not are_at_odds("explain the function for the file", "explain the function for this")
