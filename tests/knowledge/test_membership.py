"""Whether a domain can have anything to say (SYL-91)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.membership import (
    CAPACITY,
    REBUILD_AT,
    BloomFilter,
    Membership,
    XorFilter,
    telling_words,
    terms_of,
)

ASKED = 200_000


def others(number: int = ASKED) -> np.ndarray:
    """Keys that no filter was given: the upper half."""
    return np.random.default_rng(7).integers(2**63, 2**64, number, dtype=np.uint64)


def keys(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**63, number, dtype=np.uint64)


@pytest.mark.req("SYL-91")
@pytest.mark.parametrize("number", [0, 1, 2, 3, 100, 50_000])
def test_an_xor_filter_has_all_its_keys_and_one_in_256_of_others(number: int) -> None:
    given_keys = keys(number)
    built = XorFilter(given_keys)
    assert built.contains(given_keys).all()
    assert built.contains(others()).mean() < 1 / 256 * 1.2
    if number == 50_000:
        assert built.size * 8 / number < 9.9


@pytest.mark.req("SYL-91")
def test_a_bloom_filter_is_wrong_for_one_in_a_hundred_when_it_is_full() -> None:
    bloom = BloomFilter()
    assert not bloom.contains(others()).any()
    bloom.add(keys(CAPACITY))
    assert bloom.contains(keys(CAPACITY)).all()
    assert bloom.contains(others()).mean() < 0.011


@pytest.mark.req("SYL-91")
@given(st.lists(st.integers(0, 2**64 - 1), max_size=300), st.lists(st.integers(0, 2**64 - 1), max_size=50))
def test_no_filter_ever_misses_a_key(kept: list[int], added: list[int]) -> None:
    bloom = BloomFilter(100)
    bloom.add(np.array(added, np.uint64))
    assert XorFilter(iter([*kept, *kept])).contains(np.array(kept, np.uint64)).all()
    assert bloom.contains(np.array(added, np.uint64)).all()


@pytest.mark.req("SYL-91")
@given(st.lists(st.text(max_size=40), max_size=12), st.lists(st.text(max_size=40), max_size=12))
def test_every_text_that_was_taken_in_is_known(kept: list[str], added: list[str]) -> None:
    members = Membership(term for text in kept for term in terms_of(text))
    for text in added:
        members.add(text)
    assert all(members.contains(text) for text in (*kept, *added))


@pytest.mark.req("SYL-91")
@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("def parse_token(text)", "parseToken"),
        ("parsing tokens", "parse token"),
        ("parseToken", "parsetoken"),
        ("parsetoken", "parse_token"),
        ("Café Zürich", "cafe in zurich"),
        ("再试一次", "试"),
        ("to be or not", "not to be"),
    ],
)
def test_terms_are_words_whatever_their_case_ending_and_spelling_as_an_identifier(known: str, asked: str) -> None:
    members = Membership()
    assert not members.contains(asked)
    members.add(known)
    assert members.contains(asked)


@pytest.mark.req("SYL-91")
def test_one_known_word_is_enough_stop_words_are_not_and_no_words_tell_nothing() -> None:
    members = Membership(terms_of("where is the retry of the parser"))
    assert members.contains("what does kafka have to do with retries")
    assert not members.contains("where is the kafka of the zebra")
    assert members.contains("???")
    assert telling_words("where is the kafka") == ["kafka"]
    assert telling_words("where is the") == ["where", "is", "the"]


def word(number: int) -> str:
    """A word that is a term of its own, without an ending to lose."""
    letters = "bcdfghjklm"
    return "z" + "".join(letters[int(digit)] for digit in f"{number:07d}") + "z"


@pytest.mark.req("SYL-91")
def test_with_a_full_filter_and_as_much_new_as_there_may_be_wrong_answers_stay_below_the_bound() -> None:
    members = Membership(term for at in range(40_000) for term in terms_of(word(at)))
    members.add(" ".join(word(at) for at in range(40_000, 40_000 + CAPACITY)))
    assert all(members.contains(word(at)) for at in range(0, 40_000 + CAPACITY, 97))
    wrong = sum(members.contains(word(at)) for at in range(1_000_000, 1_020_000))
    assert wrong / 20_000 <= 0.015


@pytest.mark.req("SYL-91")
async def test_what_is_added_while_the_filter_is_made_anew_is_never_missed() -> None:
    members = Membership(terms_of("oldword"))
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def read() -> set[int]:
        found = terms_of("kept")
        reading.set()
        await go_on.wait()
        return found

    members.add("before " + " ".join(word(at) for at in range(REBUILD_AT + 200)))
    assert members.is_due
    rebuilding = asyncio.create_task(members.rebuild(read))
    await reading.wait()
    members.add("meanwhile oldword before")
    members.add(" ".join(word(at) for at in range(CAPACITY, 2 * CAPACITY + 10)))
    assert not members.is_due
    assert all(members.contains(text) for text in ("before", "oldword", "meanwhile"))
    await members.rebuild(read)  # one is under way: this does nothing
    go_on.set()
    await rebuilding
    assert all(members.contains(text) for text in ("kept", "meanwhile", "oldword", "before"))
    assert all(members.contains(word(at)) for at in range(CAPACITY, 2 * CAPACITY + 10, 50))
    gone = sum(members.contains(word(at)) for at in range(1_000))
    assert gone < 100, "what is there no more is forgotten"


@pytest.mark.req("SYL-91")
async def test_a_rebuild_that_fails_loses_nothing() -> None:
    members = Membership(terms_of("kept"))
    members.add("added")

    async def read() -> set[int]:
        members.add("meanwhile")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        await members.rebuild(read)
    assert all(members.contains(text) for text in ("kept", "added", "meanwhile"))
    members.add("later")
    assert members.contains("later")


@pytest.mark.req("SYL-91")
def test_the_filters_are_nobodys_tool() -> None:
    source = Path(__file__).parents[2] / "src" / "clew"
    texts = {path.relative_to(source): path.read_text() for path in source.rglob("*.py")}
    users = {str(path) for path, text in texts.items() if "clew.knowledge.membership" in text}
    tools = {str(path) for path, text in texts.items() if re.search(r"@tool\b|\bTool\(", text)}
    assert {"knowledge/shelves.py", "knowledge/searching.py"} <= users
    assert not any("Membership" in texts[Path(path)] for path in users & tools)
