"""How text becomes terms: identifiers split, accents folded, stems, ids that depend on the owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.trail.search.text import (
    STOP,
    name_id,
    owner_salt,
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


def test_stop_words_are_words() -> None:
    assert {"the", "of", "and"} <= STOP
    assert not STOP & {"thread", "search", "file", "user", "error", "list"}
    assert all(word == word.lower() and word.isalpha() for word in STOP)
