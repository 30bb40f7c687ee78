"""`Search`: exact names first, then by the requested ranking, always in the same order."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft, found_titles, look_for, make, make_all

pytestmark = pytest.mark.req("O2")


# -- exact names ------------------------------------------------------------------------------------------


SPELLINGS = [
    "getUserProfile",
    "get_user_profile",
    "get user profile",
    "GetUserProfile",
    "get-user-profile",
    "GET_USER_PROFILE",
]


@pytest.mark.req("BEY-02")
@pytest.mark.parametrize("stored", ["getUserProfile", "get_user_profile", "Get user profile"])
async def test_an_exact_name_comes_first_in_any_spelling(trail: Trail, me: Principal, stored: str) -> None:
    await make(trail, me, "User profile get", context={"description": "get user profile " * 5})
    await make(trail, me, stored)
    await make(trail, me, "get user profile picture", context={"description": "get_user_profile getUserProfile"})
    for text in SPELLINGS:
        hits = (await look_for(trail, me, text)).hits
        assert hits[0].breadcrumb.title == stored, text
        assert [hit.exact for hit in hits] == [True, False, False], text


ALIKE = ["math.gcd", "math_gcd", "mathGcd", "weather_forecast", "weather_forecast.get"]


@pytest.mark.req("BEY-02")
async def test_the_exact_spelling_of_a_name_comes_first(trail: Trail, me: Principal) -> None:
    for title in ALIKE:
        await make(trail, me, title, context={"description": title})
    for called in ALIKE:
        assert (await found_titles(trail, me, called))[0] == called


async def test_an_identifier_within_a_sentence_brings_its_name_first(trail: Trail, me: Principal) -> None:
    await make(trail, me, "How to call the profile endpoint", context={"text": "call profile endpoint and more"})
    await make(trail, me, "get_user_profile")
    found = await found_titles(trail, me, "how do I call getUserProfile on the profile endpoint?")
    assert found[0] == "get_user_profile"


@pytest.mark.req("BEY-02")
async def test_each_of_three_thousand_tools_is_first_by_its_name(trail: Trail, me: Principal) -> None:
    verbs = ["get", "list", "create", "delete", "update", "search", "export", "import", "sync", "archive"]
    nouns = ["user", "invoice", "branch", "ticket", "page", "image", "queue", "secret", "volume", "report"]
    kinds = [f"{prefix}{suffix}" for prefix in ("git", "cloud", "mail", "chat", "shop", "doc") for suffix in "abcde"]
    names = [f"{verb}_{noun}_{kind}" for verb in verbs for noun in nouns for kind in kinds]
    assert len(names) == 3_000
    tools = [draft(name, context={"description": f"Can {name.replace('_', ' ')} and similar"}) for name in names]
    await trail.records.create_many(tools, by=me)
    await trail.index.warm()
    for name in names[::47]:
        for text in (name, name.title().replace("_", ""), name.replace("_", " ")):
            (hit,) = (await look_for(trail, me, text, limit=1)).hits
            assert hit.breadcrumb.title == name


# -- ranking ----------------------------------------------------------------------------------------------


@pytest.mark.req("BEY-02")
async def test_a_hundred_repeats_give_the_same_answer_also_from_another_open_trail(
    meaning: Trail, open_again: OpenAgain, me: Principal, wordllama: Any
) -> None:
    words = ["thread", "maze", "wool", "king", "ship", "sail", "crete"]
    titles = [f"{one} and {two}" for one in words for two in words]
    await make_all(meaning, me, *titles)
    request = SearchRequest(text="the thread through the maze", limit=20)
    first = await meaning.index.search(request, by=me)
    assert len(first.hits) == 20
    for _ in range(99):
        assert await meaning.index.search(request, by=me) == first
    assert await (await open_again(wordllama)).index.search(request, by=me) == first


async def test_equal_scores_stand_in_order_of_creation(trail: Trail, me: Principal) -> None:
    ids = await make_all(trail, me, *["Ball of thread"] * 20, embedding=[1.0, 0.0])
    for request in ({"text": "ball"}, {"vector": [1.0, 0.5]}, {"vector": [1.0, 0.5], "ranking": "vector"}):
        hits = (await look_for(trail, me, limit=12, **request)).hits
        assert [hit.breadcrumb.id for hit in hits] == ids[:12]


async def test_scores_fall_and_the_limit_takes_the_best(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, *(f"thread {'x ' * number}" for number in range(1, 30)))
    hits = (await look_for(trail, me, "thread", limit=29)).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for limit in (1, 7):
        assert (await look_for(trail, me, "thread", limit=limit)).hits == hits[:limit]


async def test_field_weights_change_the_order(trail: Trail, me: Principal) -> None:
    await make(trail, me, "Thread", context={"description": "about something", "text": "else entirely"})
    await make(trail, me, "Thing", context={"description": "thread", "text": "else entirely"})
    await make(trail, me, "Item", context={"description": "about something", "text": "thread entirely"})
    order = [("title", "Thread"), ("description", "Thing"), ("content", "Item")]
    for field, first in order:
        weights = {name: 50.0 if name == field else 0.1 for name, _ in order}
        assert (await found_titles(trail, me, "thread wool", weights=weights, ranking="text"))[0] == first
    only = await found_titles(trail, me, "thread wool", weights={"title": 0.0, "description": 0.0, "content": 1.0})
    assert only == ["Item"]


@pytest.mark.req("RCR-16")
async def test_the_rcrt_ranking_is_the_hand_computed_one(trail: Trail, me: Principal) -> None:
    await make(trail, me, "near", embedding=[1.0, 0.0])
    await make(trail, me, "lifted", embedding=[0.8, 0.6], tags=["click"])
    await make(trail, me, "both", embedding=[0.6, 0.8], tags=["click", "screenshot"])
    result = await look_for(trail, me, vector=[2.0, 0.0], ranking="rcrt", keywords=["Click", "screenshot"])
    assert [(hit.breadcrumb.title, hit.score) for hit in result.hits] == [
        ("both", pytest.approx(0.6 / 1.4 + 0.4 * 2 / 2, abs=1e-6)),
        ("lifted", pytest.approx(0.6 / 1.2 + 0.4 * 1 / 2, abs=1e-6)),
        ("near", pytest.approx(0.6 / 1.0 + 0.4 * 0 / 2, abs=1e-6)),
    ]
    assert result.ranking == "rcrt"


@pytest.mark.req("RCR-16")
async def test_the_rcrt_ranking_is_safe_without_keywords_and_takes_them_from_the_text(
    trail: Trail, me: Principal
) -> None:
    await make(trail, me, "near", embedding=[1.0, 0.0])
    await make(trail, me, "lifted", embedding=[0.8, 0.6], tags=["click"])
    plain = await look_for(trail, me, vector=[1.0, 0.0], ranking="rcrt")
    assert [(hit.breadcrumb.title, hit.score) for hit in plain.hits] == [
        ("near", pytest.approx(0.6, abs=1e-6)), ("lifted", pytest.approx(0.5, abs=1e-6)),
    ]  # fmt: skip
    worded = await look_for(trail, me, "the click", vector=[1.0, 0.0], ranking="rcrt")
    assert [hit.breadcrumb.title for hit in worded.hits] == ["lifted", "near"]
    assert worded.hits[0].score == pytest.approx(0.5 + 0.4, abs=1e-6)


async def test_rank_fusion_sums_reciprocal_ranks(trail: Trail, me: Principal) -> None:
    await make(trail, me, "thread", context={"text": "more"}, embedding=[0.0, 1.0])
    await make(trail, me, "thread and wool", embedding=[1.0, 1.0])
    await make(trail, me, "neither", embedding=[1.0, 0.0])
    hits = (await look_for(trail, me, "threads", vector=[1.0, 0.0], ranking="rrf")).hits
    scores = {hit.breadcrumb.title: hit.score for hit in hits}
    by_text = sorted((hit for hit in hits if hit.text_score), key=lambda hit: -(hit.text_score or 0))
    rank = {hit.breadcrumb.title: place for place, hit in enumerate(by_text, 1)}
    assert set(rank) == {"thread", "thread and wool"}
    assert scores["neither"] == pytest.approx(1 / 61, abs=1e-6)
    assert scores["thread and wool"] == pytest.approx(1 / 62 + 1 / (60 + rank["thread and wool"]), abs=1e-6)
    assert scores["thread"] == pytest.approx(1 / (60 + rank["thread"]), abs=1e-6)


async def test_meaning_is_found_without_a_common_word(meaning: Trail, me: Principal) -> None:
    await make_all(meaning, me, "Quarterly revenue report", "The kitten slept", "Compile the kernel")
    for ranking in ("default", "vector", "rrf", "rcrt"):
        found = await found_titles(meaning, me, "small cats", ranking=ranking)
        assert found[0] == "The kitten slept"
        assert len(found) == 3
