"""A question that finds what an earlier one found, and is loosely the same, is served by its answer: no model is asked
again. One that only finds the same is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.base import Knowledge
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import Classified, classify
from clew.knowledge.resolving.kept import MAX_FOUND, Kept, KeptByFinding, Place
from clew.knowledge.resolving.loosely import are_alike, are_loosely_the_same
from clew.knowledge.resolving.phrases import Intent, Target
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.store import Trail
from tests.knowledge.code.repositories import make_repository, write
from tests.knowledge.resolving.test_resolver import Writer, known

PAIRS = Path(__file__).parents[3] / "benchmarks" / "paraphrases"
FILES = {
    "src/attributes.py": (
        'def dump_attributes(thing):\n    """Print the attributes of an object."""\n    print(vars(thing))\n'
    ),
    "src/table.py": 'def read_table(path):\n    """Read a csv file into a numpy array."""\n    return path\n',
}
FIRST, AGAIN = "explain how we print attributes of an object", "explain how we display the object attributes"


@pytest.fixture
async def trail_of_all(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    await bootstrap(opened, me)
    yield opened
    await opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", FILES)


@pytest.fixture
def writer() -> Writer:
    return Writer("It goes over all of them [1].")


@pytest.fixture
async def knowledge(
    trail_of_all: Trail, clock: ManualClock, me: Principal, root: Path, writer: Writer
) -> AsyncIterator[Knowledge]:
    found = await known(trail_of_all, clock, me, root, writer)
    yield found
    await found.close()


@pytest.mark.req("SYL-60", "SYL-89", "O10")
@pytest.mark.parametrize(
    ("first", "again"),
    [
        (FIRST, AGAIN),
        (AGAIN, FIRST),
        ("explain how we read a csv into a numpy array", "explain how we load a numpy array from a csv"),
    ],
)
async def test_what_finds_the_same_and_is_loosely_the_same_asks_no_model_again(
    knowledge: Knowledge, writer: Writer, me: Principal, first: str, again: str
) -> None:
    told = await knowledge.resolver.resolve(first, by=me)
    served = await knowledge.resolver.resolve(again, by=me)
    assert (told.layer, served.layer, served.tokens, served.saved_tokens) == ("model", "cache", 0, told.tokens)
    assert (served.question, served.sources) == (again, told.sources)
    assert len(writer.asked) == 1
    report = knowledge.resolver.cache.report()
    assert (report.hits, report.misses) == (1, 1)


@pytest.mark.req("SYL-60", "SYL-89")
@pytest.mark.parametrize(
    "other",
    [
        "explain how we hide attributes of an object",
        "explain how we do not print attributes of an object",
        "explain why we print attributes of an object",
        "explain how we print 2 attributes of an object",
        "explain how we print attributes of the class",
        "explain how we print attributes of `object`",
    ],
)
async def test_what_only_finds_the_same_is_told_anew(
    knowledge: Knowledge, writer: Writer, me: Principal, other: str
) -> None:
    first = await knowledge.resolver.resolve(FIRST, by=me)
    answer = await knowledge.resolver.resolve(other, by=me)
    assert answer.sources[0].place == first.sources[0].place
    assert (answer.layer, len(writer.asked)) == ("model", 2)


@pytest.mark.req("SYL-60", "SYL-89")
async def test_once_a_file_has_changed_it_is_told_anew(
    knowledge: Knowledge, writer: Writer, me: Principal, root: Path
) -> None:
    await knowledge.resolver.resolve(FIRST, by=me)
    write(root, "src/attributes.py", "# moved\n" + FILES["src/attributes.py"])
    answer = await knowledge.resolver.resolve(AGAIN, by=me)
    assert (answer.layer, len(writer.asked)) == ("model", 2)
    assert answer.sources[0].place.startswith("src/attributes.py:2")


@pytest.mark.req("SYL-60")
async def test_who_may_see_something_else_is_told_anew(knowledge: Knowledge, writer: Writer, me: Principal) -> None:
    await knowledge.resolver.resolve(FIRST, by=me)
    other = msgspec.structs.replace(me, scopes=frozenset((*me.scopes, "team")))
    assert (await knowledge.resolver.resolve(AGAIN, by=other)).layer == "model"
    assert len(writer.asked) == 2


@pytest.mark.req("SYL-60")
async def test_where_something_is_never_asks_a_model_and_is_found_by_its_words_alone(
    knowledge: Knowledge, writer: Writer, me: Principal
) -> None:
    where = ["where do we print attributes of an object", "where do we display the object attributes"]
    assert [(await knowledge.resolver.resolve(each, by=me)).layer for each in where] == ["graph", "graph"]
    assert writer.asked == []


def keep(cache: IntentCache, question: str, *, found: tuple[str, ...] = ("a", "b"), **more: str) -> None:
    cache.put(question, classify(question), "answer", files={"a.py": "1"}, found=found, **more)


def recall(cache: IntentCache, question: str, *, found: tuple[str, ...] = ("a", "b"), **more: str) -> object:
    kept = cache.get_found(question, classify(question), found=found, **more)
    return None if kept is None else kept.value


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("found", "is_hit"),
    [
        (("a", "b"), True),
        (("a", "x", "y", "z"), True),
        (("b", "a", "x", "y"), True),
        (("b", "x", "y", "z"), False),
        (("x", "y"), False),
        ((), False),
    ],
)
def test_findings_are_one_when_their_first_or_half_of_them_are(
    clock: ManualClock, found: tuple[str, ...], is_hit: bool
) -> None:
    cache = IntentCache(clock)
    keep(cache, FIRST)
    assert (recall(cache, AGAIN, found=found) is not None) is is_hit
    assert are_alike(found, ("a", "b")) is are_alike(("a", "b"), found) is is_hit


@pytest.mark.req("SYL-60")
def test_an_answer_holds_for_its_audience_version_and_time(clock: ManualClock) -> None:
    cache = IntentCache(clock)
    keep(cache, FIRST, audience="alice", version="7", session_id="s1")
    assert recall(cache, AGAIN, audience="bob", version="7") is None
    assert recall(cache, AGAIN, audience="alice", version="7", session_id="s2") == "answer"
    clock.advance(minutes=29)
    assert recall(cache, AGAIN, audience="alice", version="7") == "answer"
    clock.advance(minutes=1)
    assert recall(cache, AGAIN, audience="alice", version="7") is None
    keep(cache, FIRST, audience="alice", version="7")
    assert recall(cache, AGAIN, audience="alice", version="8") is None


@pytest.mark.req("SYL-60", "SYL-63")
@pytest.mark.parametrize("changed", [["a.py"], [f"lib/{number}.py" for number in range(101)]])
def test_changed_files_end_it(clock: ManualClock, changed: list[str]) -> None:
    cache = IntentCache(clock)
    keep(cache, FIRST)
    cache.files_changed(["other.py"])
    assert recall(cache, AGAIN) == "answer"
    cache.files_changed(changed)
    assert recall(cache, AGAIN) is None


def test_a_general_answer_stays_in_its_session(clock: ManualClock) -> None:
    cache = IntentCache(clock)
    keep(cache, "is there a helper that prints attributes", session_id="s1")
    asked = "is there a helper that displays attributes"
    assert recall(cache, asked, session_id="s2") is None
    assert recall(cache, asked, session_id="s1") == "answer"


@pytest.mark.req("SYL-61")
@pytest.mark.parametrize(("confidence", "is_hit"), [(0.79, False), (0.80, True)])
def test_only_a_question_that_was_understood_is_served(clock: ManualClock, confidence: float, is_hit: bool) -> None:
    cache = IntentCache(clock)
    keep(cache, FIRST)
    what = Classified(target=Target.LIBRARIAN, intent=Intent.EXPLAIN, subject="", confidence=confidence)
    assert (cache.get_found(AGAIN, what, found=["a"]) is not None) is is_hit


def test_the_oldest_give_way_and_few_are_looked_at(clock: ManualClock) -> None:
    kept = KeptByFinding(clock)
    place = Place(kind=(Target.LIBRARIAN, Intent.EXPLAIN))
    for number in range(MAX_FOUND + 100):
        question = f"explain how we print thing{number}"
        held = Kept(
            question=question, value=number, created_at=clock.now(), expires_at=None, found=("one", f"{number}")
        )
        kept.put(place, held)
    assert len(kept) == MAX_FOUND

    def served(number: int, *found: str) -> object:
        hit = kept.find(f"explain how we display thing{number}", place, found, "")
        return None if hit is None else hit.value

    assert served(0, "one", "0") is None
    assert served(MAX_FOUND + 99, "one") == MAX_FOUND + 99
    assert served(500, "500") == 500
    assert served(500, "one") is None  # too many have found it since
    kept.forget(lambda each: True)
    assert len(kept) == 0


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("explain how we flatten a dict", "explain how we flatten dict items"),
        ("explain the number of unique in the list", "explain the number of unique values in the list"),
        ("explain how we read files", "explain how we read text files"),
        ("explain the setdefault of options", "explain the set default of options"),
        ("explain how we map csv to rows", "explain how we map rows from csv"),
    ],
)
def test_little_words_and_directions_may_be_left_out(one: str, other: str) -> None:
    assert are_loosely_the_same(one, other, Intent.EXPLAIN)
    assert are_loosely_the_same(other, one, Intent.EXPLAIN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("explain how we map rows from csv", "explain how we map csv rows"),
        ("explain how we map rows to users", "explain how we map rows from users"),
        ("explain the dict items", "explain the dict values"),
        ("explain the menu items", "explain the menu"),
        ("explain the values", "explain the items"),
        ("", "explain the items"),
        ("", ""),
    ],
)
def test_what_says_something_else_is_not_the_same(one: str, other: str) -> None:
    assert not are_loosely_the_same(one, other, Intent.EXPLAIN)
    assert not are_loosely_the_same(other, one, Intent.EXPLAIN)


@given(st.text(max_size=200))
def test_any_text_is_compared_the_same_way_round(text: str) -> None:
    assert are_loosely_the_same(text, FIRST, Intent.EXPLAIN) is are_loosely_the_same(FIRST, text, Intent.EXPLAIN)


@pytest.mark.req("SYL-60", "SYL-64")
def test_no_near_miss_is_served_though_it_finds_the_very_same(clock: ManualClock) -> None:
    pairs = [msgspec.json.decode(line) for line in (PAIRS / "apart.jsonl").read_bytes().splitlines()]
    assert len(pairs) >= 306
    wrong = []
    for first, second in ((pair[one], pair[two]) for pair in pairs for one, two in ("ab", "ba")):
        cache = IntentCache(clock)
        keep(cache, first)
        wrong += [(first, second)] if recall(cache, second) is not None else []
    assert wrong == []
