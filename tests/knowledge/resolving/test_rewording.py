"""Turns of phrase that say the same are one before questions are compared; names and other things stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.clock import ManualClock
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import classify
from clew.knowledge.resolving.rewording import reword


def serves(first: str, second: str, clock: ManualClock) -> bool:
    cache = IntentCache(clock)
    cache.put(first, classify(first), first)
    return cache.get(second, classify(second)) is not None


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("where do we see whether a port is free", "where do we find out if a port is free"),
        ("where do we join two tables", "where do we join 2 tables"),
        ("where is the data frame cleaned", "where is the dataframe cleaned"),
        ("where do we turn a row into a record", "where do we convert a row into a record"),
        ("where do we load the settings file", "where do we read the settings file"),
        ("where do we delete an item from the queue", "where do we remove an element from the queue"),
        ("where do we check that two trees are the same", "where do we see if 2 trees are equal"),
        ("where do we get rid of old tokens", "where do we remove old tokens"),
        ("where do we check for eof", "where do we see whether the end of the file is reached"),
        ("where do we compute the hash of a str", "where do we calculate the hash of a string"),
        ("where do we parse a line into a record", "where do we convert a line into a record"),
        ("where do we load users from the table", "where do we read users from the table"),
        ("where do we remove an entry in the dict", "where do we remove an element from the dict"),
        ("where do we remove spaces at the end of the line", "where do we remove trailing spaces"),
        ("where do we write a function to count lines", "where do we count lines"),
        ("where do we make a folder for logs", "where do we create a folder for logs"),
        ("where is the last occurance of a comma", "where is the last occurrence of a comma"),
    ],
)
def test_the_same_in_another_turn_of_phrase_is_served(clock: ManualClock, one: str, other: str) -> None:
    assert serves(one, other, clock)
    assert serves(other, one, clock)


@pytest.mark.req("SYL-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("where do we join two tables", "where do we join three tables"),
        ("where do we remove all elements from the queue", "where do we remove an element from the queue"),
        ("where do we read a file", "where do we read a file into a list"),
        ("where do we turn a row into a record", "where do we turn a record into a row"),
        ("where is load_file", "where is read_file"),
        ("where is the item table", "where is the element table"),
        ("where is str_utils", "where is string_utils"),
        ("where is the load balancer", "where is the read balancer"),
        ("where do we parse a line", "where do we convert a line"),
        ("where do we remove users in groups", "where do we remove groups in users"),
        ("where do we write a function to the file", "where do we write the file"),
        ("where do we remove spaces at the end of the line", "where do we remove spaces at the start of the line"),
    ],
)
def test_another_thing_is_not_served(clock: ManualClock, one: str, other: str) -> None:
    assert not serves(one, other, clock)
    assert not serves(other, one, clock)


@pytest.mark.parametrize(
    "question",
    ["where is check_if_valid", "what calls obj.load()", "what changed recently", "why did we change it", ""],
)
def test_names_and_other_phrases_stay_as_they_are(question: str) -> None:
    assert reword(question) == question


@given(st.text(max_size=300))
def test_any_text_can_be_reworded_and_then_stays(text: str) -> None:
    assert isinstance(reword(text), str)
