"""The semantic cache with real embedders and a clock that moves when told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.llm import HashEmbedder, open_embedder
from clew.llm.semantic_cache import CacheEntry, CacheStats, SemanticCache

pytestmark = pytest.mark.req("PLA-05")

ASKED = "How do I reset my password?"
PARAPHRASE = "how can I reset the password"
OTHER = "Which flour is best for bread?"


class Counting(HashEmbedder):
    """An embedder that counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.asked.extend(texts)
        return super().embed(texts)


@pytest.fixture
def cache(clock: ManualClock) -> SemanticCache:
    return SemanticCache(open_embedder("wordllama"), clock, threshold=0.7)


def test_the_same_question_gets_its_answer(cache: SemanticCache):
    cache.set(ASKED, {"answer": "Use the link"})
    hit = cache.get(ASKED)
    assert (hit.value, hit.query, hit.similarity) == ({"answer": "Use the link"}, ASKED, 1.0)


def test_a_paraphrase_above_the_threshold_gets_the_answer_and_another_question_none(cache: SemanticCache):
    cache.set(ASKED, "Use the link")
    cache.set(OTHER, "Rye")
    hit = cache.get(PARAPHRASE)
    assert (hit.value, hit.query) == ("Use the link", ASKED)
    assert 0.7 <= hit.similarity < 1.0
    assert cache.get("Where is the train station?") is None


def test_the_threshold_decides(clock: ManualClock):
    strict = SemanticCache(open_embedder("wordllama"), clock, threshold=0.99)
    strict.set(ASKED, "x")
    assert strict.get(PARAPHRASE) is None


def test_a_threshold_of_one_still_finds_an_equal_vector(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, threshold=1.0)
    cache.set("Read the file", "x")
    assert cache.get("READ the FILE!").value == "x"
    assert cache.get("Read that file") is None


def test_the_nearest_answer_wins(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, threshold=0.3)
    cache.set("read the configuration", "far")
    cache.set("read the configuration file again", "near")
    assert cache.get("read the configuration file").value == "near"


def test_an_expired_answer_is_missed_by_words_and_by_meaning(cache: SemanticCache, clock: ManualClock):
    cache.set(ASKED, "x", ttl=timedelta(minutes=5))
    clock.advance(minutes=4, seconds=59)
    assert cache.get(ASKED).value == cache.get(PARAPHRASE).value == "x"
    clock.advance(seconds=1)
    assert cache.get(PARAPHRASE) is None
    assert cache.get(ASKED) is None
    assert (cache.size, cache.stats().expired) == (0, 1)


def test_an_expired_answer_does_not_hide_a_living_one(cache: SemanticCache, clock: ManualClock):
    cache.set("how can I reset the password now", "old", ttl=timedelta(minutes=1))
    cache.set(ASKED, "new", ttl=timedelta(minutes=9))
    clock.advance(minutes=2)
    assert cache.get(PARAPHRASE).value == "new"


def test_the_ttl_of_the_cache_counts_unless_the_entry_has_its_own(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, ttl=timedelta(minutes=1))
    cache.set("short", 1)
    cache.set("long", 2, ttl=timedelta(minutes=3))
    clock.advance(minutes=2)
    assert cache.get("short") is None
    assert cache.get("long").value == 2


def test_without_a_ttl_answers_stay(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, ttl=None)
    cache.set("a question", 1)
    clock.advance(days=10_000)
    assert cache.get("a question").value == 1


def test_a_new_answer_replaces_the_old_one_and_its_time(cache: SemanticCache, clock: ManualClock):
    cache.set(ASKED, "old", ttl=timedelta(minutes=1))
    cache.set(ASKED, "new", ttl=timedelta(minutes=9))
    clock.advance(minutes=2)
    assert (cache.get(ASKED).value, cache.size) == ("new", 1)


def test_the_least_recently_used_answer_gives_way(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, max_entries=3)
    for word in ("alpha", "beta", "gamma"):
        cache.set(word, word)
    assert cache.get("alpha").value == "alpha"
    cache.set("delta", "delta")
    assert [entry.query for entry in cache.entries()] == ["gamma", "alpha", "delta"]
    assert cache.get("beta") is None
    assert cache.stats().evicted == 1


def test_a_deleted_answer_is_missed_by_words_and_by_meaning(cache: SemanticCache):
    cache.set(ASKED, "x")
    assert cache.delete(ASKED)
    assert not cache.delete(ASKED)
    assert cache.get(ASKED) is None
    assert cache.get(PARAPHRASE) is None


def test_clear_forgets_the_answers_and_keeps_the_counts(cache: SemanticCache):
    cache.set(ASKED, "x")
    cache.get(ASKED)
    cache.clear()
    assert cache.get(ASKED) is None
    assert cache.stats() == CacheStats(size=0, exact_hits=1, similar_hits=0, misses=1, evicted=0, expired=0)


def test_the_counts_tell_words_from_meaning(cache: SemanticCache):
    cache.set(ASKED, "x")
    for question in (ASKED, ASKED, PARAPHRASE, OTHER):
        cache.get(question)
    assert cache.stats() == CacheStats(size=1, exact_hits=2, similar_hits=1, misses=1, evicted=0, expired=0)


def test_the_same_words_are_found_without_embedding_them(clock: ManualClock):
    embedder = Counting()
    cache = SemanticCache(embedder, clock)
    cache.set(ASKED, "x")
    cache.get(ASKED)
    assert embedder.asked == [ASKED]


def test_an_empty_question_matches_only_itself(cache: SemanticCache):
    cache.set("", "nothing was asked")
    cache.set(ASKED, "x")
    assert cache.get("").value == "nothing was asked"
    assert cache.get(" ... ") is None


async def test_persisted_entries_are_restored_through_json(clock: ManualClock):
    saved: list[bytes] = []
    cache = SemanticCache(
        open_embedder("wordllama"),
        clock,
        threshold=0.7,
        on_persist=lambda entries: saved.append(msgspec.json.encode(entries)),
    )
    cache.set(ASKED, {"answer": ["Use the link"]})
    cache.set(OTHER, "Rye", ttl=timedelta(minutes=1))
    await cache.persist()
    clock.advance(minutes=2)
    entries = msgspec.json.decode(saved[0], type=list[CacheEntry])
    again = SemanticCache(open_embedder("wordllama"), clock, threshold=0.7, initial_entries=entries)
    assert again.get(PARAPHRASE).value == {"answer": ["Use the link"]}
    assert again.get(OTHER) is None
    assert again.size == 1


async def test_persist_waits_for_an_asynchronous_callback_and_leaves_the_expired_out(clock: ManualClock):
    seen: list[str] = []

    async def save(entries: list[CacheEntry]) -> None:
        seen.extend(entry.query for entry in entries)

    cache = SemanticCache(HashEmbedder(), clock, on_persist=save)
    cache.set("short", 1, ttl=timedelta(seconds=1))
    cache.set("long", 2)
    clock.advance(seconds=2)
    await cache.persist()
    assert seen == ["long"]


async def test_persist_without_a_callback_does_nothing(cache: SemanticCache):
    cache.set(ASKED, "x")
    await cache.persist()
    assert cache.size == 1


def test_entries_of_another_embedder_get_new_vectors(clock: ManualClock):
    first = SemanticCache(HashEmbedder(), clock)
    entry = first.set(ASKED, "x")
    embedder = open_embedder("wordllama")
    again = SemanticCache(embedder, clock, threshold=0.7, initial_entries=[entry])
    assert again.get(PARAPHRASE).value == "x"
    assert again.entries()[0].vector == embedder.embed([ASKED])[0]
    damaged = msgspec.structs.replace(entry, vector=b"123")
    assert SemanticCache(HashEmbedder(), clock, initial_entries=[damaged]).entries() == [entry]


def test_initial_entries_over_the_limit_keep_the_last(clock: ManualClock):
    first = SemanticCache(HashEmbedder(), clock)
    entries = [first.set(f"question {at}", at) for at in range(5)]
    cache = SemanticCache(HashEmbedder(), clock, max_entries=2, initial_entries=entries)
    assert [entry.value for entry in cache.entries()] == [3, 4]


def test_a_thousand_questions_in_and_out_stay_consistent(clock: ManualClock):
    cache = SemanticCache(HashEmbedder(), clock, threshold=0.999, max_entries=100)
    for at in range(1_001):
        cache.set(f"question number {at}", at)
        if at % 3 == 0:
            cache.delete(f"question number {at - 1}")
    kept = {entry.query: entry.value for entry in cache.entries()}
    assert len(kept) == 100
    for at in range(1_001):
        hit = cache.get(f"QUESTION number {at}")
        assert (hit.value if hit else None) == kept.get(f"question number {at}")


@pytest.mark.parametrize("settings", [{"threshold": 0.0}, {"threshold": 1.1}, {"max_entries": 0}])
def test_settings_that_make_no_sense_are_refused(clock: ManualClock, settings):
    with pytest.raises(InvalidInput) as refused:
        SemanticCache(HashEmbedder(), clock, **settings)
    assert refused.value.field in settings
