"""Questions with the same words are two where a word has another part in them."""

from __future__ import annotations

import pytest

from clew.clock import ManualClock
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.intents import classify
from clew.knowledge.resolving.roles import are_turned_round, roles_in


@pytest.mark.parametrize(
    ("question", "marks"),
    [
        ("", set()),
        ("explain the parser", set()),
        ("explain the work queue", {"of:work"}),
        ("explain the function for this: file locking", set()),
        ("explain the function parse_date", set()),
        ("how does the retry policy work", set()),
        ("how does the scheduler wake the worker", {"doing:schedul~er"}),
        ("how do we wake the worker", set()),
        ("what users may pay", {"may"}),
        ("how should errors be logged", set()),
        ("how to turn off the light", {"turn-off"}),
        ("why we dont retry", {"not"}),
        ("explain the -V flag", {"=-V"}),
        ("mail sent by users", {"by:user"}),
        ("show us the users", set()),
        ("where do users pay us", {"whom:us", "doing:user"}),
        ("who removed auth", {"did:2"}),
        ("what changed in the docs last week", set()),
    ],
)
def test_the_marks_of_a_question(question: str, marks: set[str]) -> None:
    assert set(roles_in(question)) == marks


def test_who_does_it_to_whom_counts_and_other_orders_do_not() -> None:
    assert are_turned_round("how the producer blocks the consumer", "how the consumer blocks the producer")
    assert not are_turned_round("csv read numpy array", "read numpy array from csv file")
    assert not are_turned_round("image detect shape", "image shape detect")
    assert not are_turned_round("", "")


@pytest.mark.req("SYL-89", "O10")
@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("explain when the client trusts the server", "explain when the server trusts the client"),
        ("explain how to turn on the light", "explain how to turn off the light"),
        ("explain the source loader", "explain the part loader"),
        ("explain list of sets", "explain set of lists"),
    ],
)
def test_an_answer_is_not_given_to_the_opposite_question(clock: ManualClock, first: str, other: str) -> None:
    cache = IntentCache(clock)
    cache.put(first, classify(first), "an answer", found=["one"])
    assert cache.get(first, classify(first)) is not None
    assert cache.get(other, classify(other)) is None
    assert cache.get_found(other, classify(other), found=["one"]) is None
