"""Answers that are found again by what was wanted, for as long as they hold."""

from __future__ import annotations

import pytest

from clew.clock import ManualClock
from clew.knowledge.resolving.cache import BULK, IntentCache
from clew.knowledge.resolving.intents import Classified, classify
from clew.knowledge.resolving.phrases import Intent, Target
from clew.llm import open_embedder

WHERE = "where is the retry policy"
FILES = {"src/retry.py": "a1", "src/client.py": "b2"}


@pytest.fixture
def cache(clock: ManualClock) -> IntentCache:
    return IntentCache(clock, open_embedder("wordllama"))


def keep(cache: IntentCache, question: str, value: str = "answer", **more: object) -> None:
    cache.put(question, classify(question), value, **more)  # type: ignore[arg-type]


def recall(cache: IntentCache, question: str, **more: str) -> object:
    found = cache.get(question, classify(question), **more)
    return None if found is None else found.value


@pytest.mark.req("SYL-60", "O10")
@pytest.mark.parametrize("other", [WHERE, "which file has the retry policy", "Where are retry policies defined?"])
def test_the_same_want_in_other_words_is_the_same_answer(cache: IntentCache, other: str) -> None:
    keep(cache, WHERE, files=FILES)
    assert recall(cache, other) == "answer"


@pytest.mark.parametrize("other", ["where is the cache policy", "explain the retry policy", "where is the retry"])
def test_another_thing_or_another_want_is_not(cache: IntentCache, other: str) -> None:
    keep(cache, WHERE, files=FILES)
    assert recall(cache, other) is None


@pytest.mark.req("SYL-60")
def test_where_something_is_holds_until_a_file_of_the_answer_changes(cache: IntentCache, clock: ManualClock) -> None:
    keep(cache, WHERE, files=FILES)
    clock.advance(days=300)
    cache.files_changed(["src/other.py"])
    assert recall(cache, WHERE) == "answer"
    cache.files_changed(["src/client.py"])
    assert recall(cache, WHERE) is None


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("question", "minutes"),
    [
        ("what is our retry strategy", 60),
        ("explain the retry policy", 30),
        ("list all API endpoints", 15),
    ],
)
def test_answers_about_code_end_after_their_time(
    cache: IntentCache, clock: ManualClock, question: str, minutes: int
) -> None:
    keep(cache, question, files=FILES)
    clock.advance(minutes=minutes, seconds=-1)
    assert recall(cache, question) == "answer"
    clock.advance(seconds=1)
    assert recall(cache, question) is None


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize("question", [WHERE, "what is our retry strategy", "list all API endpoints"])
def test_an_answer_of_another_state_of_the_code_is_not_served(cache: IntentCache, question: str) -> None:
    keep(cache, question, files=FILES, version="7")
    assert recall(cache, question, version="7") == "answer"
    assert recall(cache, question, version="8") is None
    assert recall(cache, question, version="7") is None


@pytest.mark.parametrize("question", [WHERE, "how did we handle the auth migration", "list all API endpoints"])
def test_an_answer_is_for_those_who_may_see_the_same(cache: IntentCache, question: str) -> None:
    keep(cache, question, "of alice", audience="alice")
    assert recall(cache, question, audience="bob") is None
    assert recall(cache, question) is None
    assert recall(cache, question, audience="alice") == "of alice"


def test_each_audience_has_its_own_answer(cache: IntentCache) -> None:
    for name in ("alice", "bob"):
        keep(cache, WHERE, f"of {name}", audience=name)
    assert [recall(cache, WHERE, audience=name) for name in ("alice", "bob")] == ["of alice", "of bob"]


@pytest.mark.parametrize("question", ["where is it", "where is the", "why", "what is this"])
def test_an_answer_to_a_question_that_names_nothing_is_not_kept(cache: IntentCache, question: str) -> None:
    keep(cache, question)
    assert cache.report().size == 0
    assert recall(cache, question) is None


@pytest.mark.req("SYL-60")
def test_a_general_question_is_found_by_its_meaning(cache: IntentCache) -> None:
    keep(cache, "list all API endpoints", files=FILES)
    assert recall(cache, "list all of the API's endpoints") == "answer"
    assert recall(cache, "list all API tokens") is None
    cache.files_changed(["src/retry.py"])
    assert recall(cache, "list all API endpoints") is None


@pytest.mark.req("SYL-60")
def test_an_entry_counts_its_hits_and_knows_its_sources(cache: IntentCache, clock: ManualClock) -> None:
    keep(cache, WHERE, files=FILES)
    for _ in range(3):
        found = cache.get(WHERE, classify(WHERE))
    assert found is not None
    assert (found.hit_count, found.files, found.created_at) == (3, FILES, clock.now())
    assert cache.get("where is it", classify("where is it")) is None
    report = cache.report()
    assert (report.size, report.hits, report.misses, report.hit_rate) == (1, 3, 1, 0.75)


@pytest.mark.req("SYL-61")
@pytest.mark.parametrize(("confidence", "is_hit"), [(0.79, False), (0.80, True)])
def test_only_a_question_that_was_understood_gets_a_kept_answer(
    cache: IntentCache, confidence: float, is_hit: bool
) -> None:
    what = Classified(target=Target.LIBRARIAN, intent=Intent.LOCATE, subject="retry_policy", confidence=confidence)
    cache.put(WHERE, what, "answer")
    assert (cache.get(WHERE, what) is not None) is is_hit


@pytest.mark.req("SYL-63")
def test_many_changes_at_once_clear_the_answers_about_code_and_few_do_not(cache: IntentCache) -> None:
    for question in (WHERE, "explain the retry policy", "what is our retry strategy", "list all API endpoints"):
        keep(cache, question, files=FILES)
    keep(cache, "how did we handle retries")
    cache.files_changed([f"lib/{number}.py" for number in range(BULK - 1)])
    assert cache.report().size == 5
    cache.files_changed([f"lib/{number}.py" for number in range(BULK + 1)])
    assert cache.report().size == 1
    assert recall(cache, "how did we handle retries") == "answer"


@pytest.mark.req("SYL-64")
@pytest.mark.parametrize(
    ("question", "minutes"),
    [
        ("how did we handle the auth migration", 60),
        ("what changed in the API recently", 5),
        ("did the database fix work", 30),
        ("similar errors to this before", 30),
        ("where did we leave off", 2),
    ],
)
def test_answers_about_history_end_after_their_time(
    cache: IntentCache, clock: ManualClock, question: str, minutes: int
) -> None:
    keep(cache, question, session_id="s1")
    clock.advance(minutes=minutes, seconds=-1)
    assert recall(cache, question, session_id="s1") == "answer"
    clock.advance(seconds=1)
    assert recall(cache, question, session_id="s1") is None


@pytest.mark.req("SYL-64")
@pytest.mark.parametrize("question", ["what changed in the API recently", "where did we leave off"])
def test_what_is_told_of_a_session_is_its_own_and_ends_with_its_state(cache: IntentCache, question: str) -> None:
    for session in ("s1", "s2"):
        keep(cache, question, f"of {session}", session_id=session, version="7")
    assert recall(cache, question, session_id="s1", version="8") is None
    assert recall(cache, question, session_id="s2", version="7") == "of s2"


@pytest.mark.req("SYL-64")
def test_how_something_went_is_told_anew_once_more_is_known(cache: IntentCache) -> None:
    keep(cache, "did the database fix work", version="7")
    assert recall(cache, "did the database fix work", version="7") == "answer"
    assert recall(cache, "did the database fix work", version="8") is None


@pytest.mark.req("SYL-64")
def test_another_state_of_a_session_is_another_answer(cache: IntentCache) -> None:
    keep(cache, "where did we leave off", session_id="s1", version="7")
    assert recall(cache, "where did we leave off", session_id="s1", version="7") == "answer"
    assert recall(cache, "where did we leave off", session_id="s1", version="8") is None


@pytest.mark.req("SYL-64")
def test_all_but_the_same_words_about_history_are_found_without_their_subject(cache: IntentCache) -> None:
    keep(cache, "how did we handle the auth migration", session_id="")
    asked = "How did we handle this auth migration"
    what = Classified(target=Target.ARCHIVALIST, intent=Intent.HISTORICAL, subject="something_else", confidence=0.9)
    assert cache.get(asked, what) is not None


def test_without_an_embedder_only_subjects_count(clock: ManualClock) -> None:
    cache = IntentCache(clock)
    keep(cache, WHERE)
    keep(cache, "list all API endpoints")
    assert recall(cache, WHERE) == "answer"
    assert recall(cache, "list all API endpoints") is None


def test_the_oldest_give_way(clock: ManualClock) -> None:
    cache = IntentCache(clock)
    for number in range(2_100):
        keep(cache, f"where is thing{number}")
    assert cache.report().size == 2_000
    assert recall(cache, "where is thing0") is None
    assert recall(cache, "where is thing2099") == "answer"
