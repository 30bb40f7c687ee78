"""How text becomes terms: identifiers split, accents folded, stems, ids that depend on the owner."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.trail.readable import Readable
from clew.trail.text import (
    HEADER,
    MAX_WORDS_PER_FIELD,
    STOP,
    name_id,
    owner_salt,
    pack_terms,
    pair_id,
    split_text,
    split_word,
    term_id,
)

SALT = owner_salt("acme", "secret")


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("thread", ("thread",)),
        ("getUserName", ("get", "user", "name")),
        ("get_user_name", ("get", "user", "name")),
        ("HTTPServer", ("http", "server")),
        ("parseJSON2Dict", ("parse", "json", "2", "dict")),
        ("__init__", ("init",)),
        ("v2", ("v", "2")),
        ("ABC", ("abc",)),
        ("Éclair", ("eclair",)),
        ("Straße", ("strasse",)),
        ("日本", ("日", "本")),
        ("Клубок", ("клубок",)),
        ("_", ()),
        ("", ()),
    ],
)
def test_a_word_is_split_into_its_parts(word: str, parts: tuple[str, ...]) -> None:
    assert split_word(word) == parts


def test_a_text_gives_parts_in_order_and_identifiers_as_a_whole() -> None:
    words = split_text("Call getUser(id), then close_all-files!")
    assert words.parts == ["call", "get", "user", "id", "then", "close", "all", "files"]
    assert words.compounds == ["getuser", "closeall"]
    assert split_text("") == split_text(" …!?")


@pytest.mark.parametrize(("one", "other"), [("ﬁle", "file"), ("Ｆｕｌｌ", "full"), ("cafe\u0301", "café"), ("①", "1")])
def test_forms_of_one_text_give_the_same_parts(one: str, other: str) -> None:
    assert split_text(one).parts == split_text(other).parts


@given(st.text())
def test_any_text_is_split_without_complaint(text: str) -> None:
    words = split_text(text)
    assert all(words.parts)
    assert all(part == part.lower() or not part.isascii() for part in words.parts)


def test_words_of_one_stem_have_one_id_and_owners_have_their_own() -> None:
    assert term_id("threads", SALT) == term_id("thread", SALT) == term_id("threading", SALT)
    assert term_id("thread", SALT) != term_id("wool", SALT)
    for other in (owner_salt("other", "secret"), owner_salt("acme", "another trail")):
        assert term_id("thread", SALT) != term_id("thread", other)
    assert 0 <= term_id("thread", SALT) < 2**32


def test_a_pair_knows_its_order() -> None:
    one, two = term_id("ball", SALT), term_id("thread", SALT)
    assert pair_id(one, two) != pair_id(two, one)
    assert 0 <= pair_id(2**32 - 1, 2**32 - 1) < 2**32


@pytest.mark.req("BEY-02")
def test_a_name_has_one_id_in_every_spelling() -> None:
    spellings = ("getUser", "get_user", "Get user", "get-user", "GET_USER", "get.user", " get  user! ")
    assert len({name_id(spelling, SALT) for spelling in spellings}) == 1
    assert name_id("getUsers", SALT) != name_id("getUser", SALT)
    assert name_id("getUser", SALT) != name_id("getUser", owner_salt("other", "secret"))


def unpacked(packed: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """Header, term ids, counts and pairs of a packed record."""
    words = np.frombuffer(packed, "<u4").tolist()
    terms, pairs = words[0], words[1]
    first, second = HEADER + terms, HEADER + 2 * terms
    assert len(words) == second + pairs
    return words[:HEADER], words[HEADER:first], words[first:second], words[second:]


def test_a_record_is_packed_with_counts_by_field() -> None:
    shown = Readable("Ball of thread", "a thread and a thread", "wool thread")
    (terms, pairs, in_title, length, name, _), ids, counts, adjacent = unpacked(pack_terms(shown, SALT))
    ball, thread, wool = (term_id(word, SALT) for word in ("ball", "thread", "wool"))
    assert (terms, pairs, in_title, name) == (len(ids), len(adjacent), 2, name_id("Ball of thread", SALT))
    assert ids[:2] == [ball, thread]
    found = dict(zip(ids, counts, strict=True))
    assert (found[ball], found[thread], found[wool]) == (1, 1 | 2 << 8 | 1 << 16, 1 << 16)
    assert adjacent == [pair_id(ball, thread), pair_id(thread, thread), pair_id(wool, thread)]
    assert length == 2 * 10 + 2 * 10 + 2 * 2
    assert {term_id(word, SALT) for word in ("of", "a", "and")} == set(ids) - {ball, thread, wool}


def test_an_empty_record_can_be_packed() -> None:
    header, ids, counts, pairs = unpacked(pack_terms(Readable("!", "", ""), SALT))
    assert (header[:4], ids, counts, pairs) == ([0, 0, 0, 10], [], [], [])


def test_a_huge_record_is_bounded() -> None:
    text = " ".join(f"word{number} " for number in range(50_000)) + "same " * 1_000
    packed = pack_terms(Readable("same " * 400, text, text), SALT)
    _, ids, counts, _ = unpacked(packed)
    assert len(ids) <= 3 * 2 * MAX_WORDS_PER_FIELD + 1_000
    assert counts[ids.index(term_id("same", SALT))] & 255 == 255


def test_stop_words_are_words() -> None:
    assert {"the", "of", "and"} <= STOP
    assert not STOP & {"thread", "search", "file", "user", "error", "list"}
    assert all(word == word.lower() and word.isalpha() for word in STOP)
