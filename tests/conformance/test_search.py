"""`Search`: the best breadcrumbs, including those just written, and full answers with every filter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import Change, Draft, Ttl
from clew.trail.model.query import MAX_LIMIT, MAX_QUERY, SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft, found_titles, lasting, look_for, make, make_all, short

pytestmark = pytest.mark.req("O2")


async def test_an_empty_trail_answers_with_nothing(trail: Trail, me: Principal) -> None:
    await trail.index.warm()
    await trail.index.warm()
    for ranking in ("default", "rcrt", "rrf", "text"):
        result = await look_for(trail, me, "anything", ranking=ranking)
        assert (result.hits, result.ranking) == ((), ranking)
    assert (await look_for(trail, me, vector=[1.0, 0.0])).hits == ()


async def test_words_of_title_description_and_content_are_found(trail: Trail, me: Principal) -> None:
    await make(trail, me, "Ariadne")
    await make(trail, me, "A", context={"description": "gave Theseus a thread"})
    await make(trail, me, "B", context={"deep": [{"er": "the Minotaur"}], "number": 77})
    assert await found_titles(trail, me, "ariadne") == ["Ariadne"]
    assert await found_titles(trail, me, "threads") == ["A"]
    assert await found_titles(trail, me, "minotaur labyrinth") == ["B"]
    assert await found_titles(trail, me, "labyrinth") == []
    assert await found_titles(trail, me, "deep er number") == []


async def test_a_hit_is_the_whole_breadcrumb_with_its_scores(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "Ball of thread", context={"a": 1}, tags=["t"], embedding=[1.0, 0.0])
    (hit,) = (await look_for(trail, me, "thread", vector=[1.0, 1.0])).hits
    assert hit.breadcrumb == await trail.records.get(made.id, by=me)
    assert hit.score > 0
    assert hit.text_score is not None
    assert hit.text_score > 0
    assert hit.vector_score == pytest.approx(0.707107)
    assert not hit.exact
    (hit,) = (await look_for(trail, me, "thread", ranking="text")).hits
    assert hit.vector_score is None
    (hit,) = (await look_for(trail, me, vector=[0.0, 1.0], ranking="vector")).hits
    assert (hit.score, hit.vector_score, hit.text_score) == (0.0, 0.0, None)


# -- bad requests -----------------------------------------------------------------------------------------


SENSELESS = [
    {},
    {"text": " \n"},
    {"text": "x" * (MAX_QUERY + 1)},
    {"text": "a", "limit": 0},
    {"text": "a", "limit": MAX_LIMIT + 1},
    {"vector": []},
    {"vector": [float("nan")]},
    {"vector": [float("inf"), 1.0]},
    {"vector": [1.0] * 5_000},
    {"text": "a", "weights": {"tags": 1.0}},
    {"text": "a", "weights": {"title": -1.0}},
    {"text": "a", "weights": {"title": float("nan")}},
    {"text": "a", "exclude": ["x"] * (MAX_LIMIT + 1)},
    {"text": "a", "keywords": ["x"] * (MAX_LIMIT + 1)},
    {"text": "a", "selector": Selector(tag_prefix="")},
    {"text": "a", "ranking": "vector"},
]


async def test_a_request_that_makes_no_sense_is_refused(trail: Trail, me: Principal) -> None:
    for parts in SENSELESS:
        request = SearchRequest(**parts)
        with pytest.raises((InvalidInput, TooLarge)):
            await trail.index.search(request, by=me)


SYNTAX = [
    '"thread',
    'thread"',
    "thread*",
    "*thread",
    "NEAR(thread",
    "NEAR(thread thread, 5)",
    "thread AND OR NOT",
    "title:thread",
    "-thread +thread",
    "^thread",
    "(thread",
    "thread)",
    "{thread}",
    "thread\\",
    "'thread'",
    "thread; DROP TABLE breadcrumbs",
    "thread\x00",
    "thread\ud83d",
    "thread \U0010ffff",
    "thread~2",
    "[thread TO *]",
    "thread" + " !" * 9_000,
]


async def test_query_syntax_has_no_meaning(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, "Ball of thread", "Something else")
    for text in SYNTAX:
        assert (await found_titles(trail, me, text))[:1] == ["Ball of thread"], short(text)


WORDLESS = ["!!!", "…", '"', "*", "\x00", "_", "()", "\ud83d"]


async def test_a_text_without_words_finds_nothing(trail: Trail, me: Principal) -> None:
    await make(trail, me, "Ball of thread")
    for text in WORDLESS:
        assert await found_titles(trail, me, text) == [], short(text)


async def test_a_text_of_only_stop_words_is_taken_literally(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, "To be or not to be", "Ball of thread", "Something else")
    assert (await found_titles(trail, me, "to be or not to be"))[0] == "To be or not to be"
    assert await found_titles(trail, me, "of") == ["Ball of thread"]


SCRIPTS = [
    ("糸の玉を追う", "糸の玉"),
    ("실타래를 따라", "실타래"),
    ("כדור חוטים", "חוטים"),
    ("كرة من الخيط", "الخيط"),
    ("Клубок ниток", "КЛУБОК"),
    ("Café Müller", "cafe muller"),
    ("Cafe Muller", "café MÜLLER"),
    ("ﬁle ﬂow", "file"),
    ("Straße", "STRASSE"),
]


async def test_words_of_any_script_are_found(trail: Trail, me: Principal) -> None:
    for title, text in SCRIPTS:
        made = await make(trail, me, title)
        await make_all(trail, me, "Ball of thread", "Something else")
        assert await found_titles(trail, me, text) == [title]
        await trail.records.delete(made.id, by=me)


async def test_unknown_words_do_not_push_out_the_one_that_is_known(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, "Ball of thread", "Something else")
    strange = " ".join(f"qx{number}z" for number in range(150))
    assert await found_titles(trail, me, f"{strange} thread") == ["Ball of thread"]


# -- filters ----------------------------------------------------------------------------------------------


FILTERS = [
    ({}, "abcd"),
    ({"schema_name": "note.v1"}, "ab"),
    ({"schema_names": ["note.v1", "task.v1"]}, "abc"),
    ({"except_schemas": ["note.v1"]}, "cd"),
    ({"any_tags": ["red", "blue"]}, "abc"),
    ({"all_tags": ["red", "blue"]}, "a"),
    ({"tag_prefix": "session:"}, "ad"),
    ({"session": "s1"}, "a"),
    ({"path": "src/**/*.py"}, "ab"),
    ({"context_match": [ContextMatch(path="n", op="gte", value=2)]}, "bc"),
    ({"schema_name": "note.v1", "all_tags": ["red"], "path": "src/*/*.py"}, "b"),
    ({"any_tags": ["blue"], "tag_prefix": "session:", "context_match": [ContextMatch(path="n", value=1)]}, "a"),
    ({"schema_name": "absent.v1"}, ""),
]


@pytest.mark.parametrize("by_vector", [False, True], ids=["text", "vector"])
@pytest.mark.req("RCR-15")
async def test_each_filter_alone_and_combined(trail: Trail, me: Principal, by_vector: bool) -> None:
    fields: dict[str, dict[str, Any]] = {
        "a": {"schema_name": "note.v1", "tags": ["red", "blue", "session:s1"], "context": {"path": "src/m.py", "n": 1}},
        "b": {"schema_name": "note.v1", "tags": ["red"], "context": {"path": "src/a/b.py", "n": 2}},
        "c": {"schema_name": "task.v1", "tags": ["blue"], "context": {"path": 7, "n": 3}},
        "d": {"tags": ["session:s2"]},
    }
    for name, given in fields.items():
        await make(trail, me, f"{name} thread", **given, embedding=[1.0, 0.5])
    request = {"vector": [1.0, 0.5], "ranking": "vector"} if by_vector else {"text": "thread"}
    for parts, expected in FILTERS:
        found = await found_titles(trail, me, selector=Selector(**parts), **request)
        assert "".join(sorted(title[0] for title in found)) == expected, parts


async def test_times_and_exclusions_filter_too(trail: Trail, me: Principal, clock: ManualClock) -> None:
    start = clock.now()
    for name in "abc":
        await make(trail, me, f"{name} thread")
        clock.advance(seconds=1)
    assert await found_titles(trail, me, "thread", selector=Selector(created_after=start)) == ["b thread", "c thread"]
    assert await found_titles(trail, me, "thread", selector=Selector(created_before=clock.now())) == [
        "a thread", "b thread", "c thread",
    ]  # fmt: skip
    first = (await look_for(trail, me, "thread")).hits[0].breadcrumb.id
    assert await found_titles(trail, me, "thread", exclude=[first, "unknown"]) == ["b thread", "c thread"]


async def test_filters_never_starve_the_limit(trail: Trail, me: Principal) -> None:
    """30 of 3,000 pass, and all the others match the query better."""
    crowd = [draft(f"thread thread {number}", embedding=[1.0, number / 9_000]) for number in range(2_970)]
    few = [
        draft(f"Rare {number}", context={"text": "a thread"}, tags=["rare"], embedding=[-1.0, number / 100])
        for number in range(30)
    ]
    await trail.records.create_many([*crowd, *few], by=me)
    rare = Selector(all_tags=["rare"])
    wanted = {f"Rare {number}" for number in range(30)}
    for request in (
        {"text": "thread"},
        {"text": "thread", "ranking": "text"},
        {"text": "thread", "vector": [1.0, 0.0]},
        {"text": "thread", "vector": [1.0, 0.0], "ranking": "rrf"},
        {"text": "thread", "vector": [1.0, 0.0], "ranking": "rcrt"},
        {"vector": [1.0, 0.0], "ranking": "vector"},
    ):
        assert set(await found_titles(trail, me, selector=rare, limit=30, **request)) == wanted
    assert len((await look_for(trail, me, "thread", limit=1_000)).hits) == 1_000


@pytest.fixture
def crowded() -> list[Draft]:
    """Enough breadcrumbs that not every one of them can be a candidate: half in a zone, few of those fitting."""
    outside = [draft(f"thread thread {number}") for number in range(2_200)]
    inside = [draft(f"Other {number}", tags=["zone"]) for number in range(2_200)]
    fitting = [draft(f"Fits {number}", context={"text": "a thread"}, tags=["zone"]) for number in range(40)]
    return [*outside, *inside, *fitting]


async def settled(trail: Trail, open_again: OpenAgain, by: Principal) -> Trail:
    """The trail opened again after its derived index, if it has one, took in all that was written."""
    await look_for(trail, by, "anything")
    await trail.close()
    again = await open_again()
    await again.index.warm()
    return again


async def test_a_wide_filter_does_not_starve_the_limit_either(
    trail: Trail, open_again: OpenAgain, me: Principal, crowded: list[Draft]
) -> None:
    await trail.records.create_many(crowded, by=me)
    zone = Selector(all_tags=["zone"])
    wanted = sorted(f"Fits {number}" for number in range(40))
    assert sorted(await found_titles(trail, me, "thread", selector=zone, limit=40)) == wanted
    again = await settled(trail, open_again, me)
    assert sorted(await found_titles(again, me, "thread", selector=zone, limit=40)) == wanted
    assert len(await found_titles(again, me, "thread", limit=1_000)) == 1_000


async def test_unknown_words_do_not_hide_candidates_in_a_large_trail(
    trail: Trail, open_again: OpenAgain, me: Principal, crowded: list[Draft]
) -> None:
    await trail.records.create_many(crowded, by=me)
    again = await settled(trail, open_again, me)
    strange = " ".join(f"qx{number}z" for number in range(40))
    assert len(await found_titles(again, me, f"{strange} fits", limit=10)) == 10


async def test_used_up_records_do_not_shorten_answers_of_a_large_trail(
    trail: Trail, open_again: OpenAgain, me: Principal, crowded: list[Draft]
) -> None:
    used = [draft("ship", ttl=Ttl(kind="usage", max_reads=1)) for _ in range(200)]
    left = [draft(f"one of the many words beside a ship {number}") for number in range(10)]
    made = await trail.records.create_many([*crowded, *used, *left], by=me)
    await asyncio.gather(*(trail.records.read(each.id, by=me) for each in made if each.title == "ship"))
    again = await settled(trail, open_again, me)
    assert len(await found_titles(again, me, "a ship sails", limit=10)) == 10


async def test_used_up_records_are_replaced_by_the_next_hits(trail: Trail, me: Principal) -> None:
    used = [draft(f"thread {number}", ttl=Ttl(kind="usage", max_reads=1)) for number in range(30)]
    made = await trail.records.create_many([*used, *(draft(f"a thread of {n}") for n in range(10))], by=me)
    assert len(await found_titles(trail, me, "thread", limit=10)) == 10
    await asyncio.gather(*(trail.records.read(each.id, by=me) for each in made[:30]))
    found = await found_titles(trail, me, "thread", limit=10)
    assert sorted(found) == sorted(f"a thread of {number}" for number in range(10))


async def test_a_field_that_counts_nothing_does_not_starve_the_limit(
    trail: Trail, open_again: OpenAgain, me: Principal, crowded: list[Draft]
) -> None:
    """Thousands of records have the word only in their titles, which are not searched."""
    await trail.records.create_many(crowded, by=me)
    wanted = sorted(f"Fits {number}" for number in range(40))
    assert sorted(await found_titles(trail, me, "thread", weights={"title": 0.0}, limit=40)) == wanted
    again = await settled(trail, open_again, me)
    assert sorted(await found_titles(again, me, "thread", weights={"title": 0.0}, limit=40)) == wanted


async def test_the_best_of_thousands_that_were_just_written_is_found_by_common_and_rare_words(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    """Nearly every record has the common words; the postings have none of the records yet, then all."""
    many = [draft(f"a load test of record {number}", context={"text": "with a note"}) for number in range(3_000)]
    best = draft("load test", context={"text": "load test load test"})
    rare = draft("the minotaur in a load test of records")
    await trail.records.create_many([*many[:1_500], best, rare, *many[1_500:]], by=me)
    for _ in range(2):
        assert (await found_titles(trail, me, "load test", limit=10))[0] == best.title
        assert len(await found_titles(trail, me, "note records", limit=1_000)) == 1_000
        assert (await found_titles(trail, me, "minotaur load test", limit=10))[:2] == [rare.title, best.title]
        trail = await settled(trail, open_again, me)


async def test_a_filter_follows_changes_few_and_many(trail: Trail, me: Principal) -> None:
    for selector in (Selector(all_tags=["new"]), Selector(any_tags=["new"], schema_name="note.v1")):
        assert await found_titles(trail, me, "thread", selector=selector) == []
    fields: dict[str, Any] = {"tags": ["new"], "schema_name": "note.v1"}
    made = await make(trail, me, "thread", **fields)
    for expected in (1, 2_401):
        for selector in (Selector(all_tags=["new"]), Selector(any_tags=["new"], schema_name="note.v1")):
            hits = (await look_for(trail, me, "thread", selector=selector, limit=1_000)).hits
            assert len(hits) == min(expected, 1_000)
        if expected == 1:
            await trail.records.create_many([draft(f"thread {number}", **fields) for number in range(2_400)], by=me)
    await trail.records.update(made.id, Change(tags=["old"]), expect=1, by=me)
    assert await found_titles(trail, me, "thread", selector=Selector(all_tags=["old"])) == ["thread"]
    hits = (await look_for(trail, me, "thread", selector=Selector(all_tags=["new"]), limit=1_000)).hits
    assert made.id not in [hit.breadcrumb.id for hit in hits]


# -- freshness --------------------------------------------------------------------------------------------


async def test_a_write_is_found_by_the_next_search_in_every_open_trail(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    for each in (trail, other):
        assert await found_titles(each, me, "thread") == []
    for number, writer in enumerate((trail, other, trail, other), 1):
        await make(writer, me, f"thread {number}", embedding=[1.0, number])
        for each in (trail, other):
            assert len(await found_titles(each, me, "thread", limit=100)) == number
            assert len(await found_titles(each, me, vector=[1.0, 1.0], ranking="vector", limit=100)) == number


async def test_updates_and_deletes_are_seen_by_the_next_search(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    made = await make(trail, me, "thread", tags=["a"], embedding=[1.0, 0.0])
    assert await found_titles(other, me, "thread", selector=Selector(all_tags=["a"])) == ["thread"]
    await trail.records.update(made.id, Change(title="wool", tags=["b"], embedding=[0.0, 1.0]), expect=1, by=me)
    for each in (trail, other):
        assert await found_titles(each, me, "thread") == []
        assert await found_titles(each, me, "wool", selector=Selector(all_tags=["a"])) == []
        (hit,) = (await look_for(each, me, "wool", vector=[0.0, 1.0], selector=Selector(all_tags=["b"]))).hits
        assert (hit.breadcrumb.version, hit.vector_score) == (2, 1.0)
    await trail.records.update(made.id, Change(embedding=None), expect=2, by=me)
    for each in (trail, other):
        assert await found_titles(each, me, vector=[0.0, 1.0], ranking="vector") == []
    await other.records.delete(made.id, by=me)
    for each in (trail, other):
        assert await found_titles(each, me, "wool") == []


async def test_hits_expire_between_two_searches(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await make(trail, me, "thread for a minute", ttl=lasting(clock, minutes=1), tags=["t"])
    await make(trail, me, "thread for ever", tags=["t"])
    tagged = Selector(all_tags=["t"])
    for selector in (Selector(), tagged):
        assert len(await found_titles(trail, me, "thread", selector=selector)) == 2
    clock.advance(minutes=1)
    for selector in (Selector(), tagged):
        assert await found_titles(trail, me, "thread", selector=selector) == ["thread for ever"]
    clock.advance(seconds=-1)
    for selector in (Selector(), tagged):
        assert len(await found_titles(trail, me, "thread", selector=selector)) == 2


async def test_searches_and_writes_at_once_disturb_nobody(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, *(f"thread {number}" for number in range(50)))

    async def write(number: int) -> int:
        made = await make(trail, me, f"thread new {number}")
        if number % 2:
            await trail.records.delete(made.id, by=me)
        return 0

    async def search() -> int:
        return len(await found_titles(trail, me, "thread", limit=1_000))

    counts = await asyncio.gather(*(search() if number % 3 else write(number) for number in range(90)))
    assert all(50 <= count <= 80 for count in counts if count)
    assert await search() == 50 + sum(number % 2 == 0 for number in range(0, 90, 3))


async def test_searches_that_wait_together_find_each_write_that_was_answered_before_them(
    trail: Trail, open_again: OpenAgain, me: Principal, stranger: Principal
) -> None:
    """Writers of two owners and of two open trails, whose searches share the work of reading new writes."""
    other = await open_again()

    async def write_and_search(number: int) -> list[list[str]]:
        by, writer = (me, stranger)[number % 2], (trail, other)[number // 2 % 2]
        word = "k" + str(number).translate(str.maketrans("0123456789", "abcdefghij")) + "z"
        made = await make(writer, by, f"thread {word}")
        found = [await found_titles(trail, by, word)]
        await writer.records.update(made.id, Change(title=f"wool {word}"), expect=1, by=by)
        found.append(await found_titles(trail, by, word))
        await writer.records.delete(made.id, by=by)
        found.append(await found_titles(trail, by, word))
        return [[title.replace(word, "x") for title in titles] for titles in found]

    for found in await asyncio.gather(*(write_and_search(number) for number in range(60))):
        assert found == [["thread x"], ["wool x"], []]


async def test_a_reopened_trail_finds_what_it_found(trail: Trail, open_again: OpenAgain, me: Principal) -> None:
    await make_all(trail, me, *(f"thread {number}" for number in range(700)), embedding=[1.0, 2.0])
    before = await look_for(trail, me, "thread 77", vector=[1.0, 0.0], limit=50)
    await trail.close()
    assert await look_for(await open_again(), me, "thread 77", vector=[1.0, 0.0], limit=50) == before


# -- owners -----------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-19")
async def test_records_of_other_owners_are_neither_shown_nor_weighed(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    await make_all(trail, me, "thread of wool", "wool and more wool", "a ship with a thread", embedding=[1.0, 0.0])
    before = await look_for(trail, me, "thread wool ship", vector=[1.0, 1.0])
    await make_all(trail, stranger, *["thread of wool", "ship"] * 50, embedding=[1.0, 1.0])
    assert await look_for(trail, me, "thread wool ship", vector=[1.0, 1.0]) == before
    assert await found_titles(trail, Principal(owner_id="nobody"), "thread wool ship") == []


@pytest.mark.req("RCR-19")
async def test_records_of_a_hidden_scope_are_neither_shown_nor_weighed(trail: Trail, me: Principal) -> None:
    """Otherwise scores would reveal words of records that the caller may not read."""
    await make_all(trail, me, "thread of wool", "wool and more wool", "a ship with a thread")
    before = await look_for(trail, me, "thread wool ship")
    await make_all(trail, me, *["thread of wool", "ship"] * 50, scopes=["hr"])
    assert await look_for(trail, me, "thread wool ship") == before
