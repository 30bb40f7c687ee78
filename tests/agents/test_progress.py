from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.runs.loop_detection import LOOK_BACK, REPEATS, CompletedCall, Loop, find_loop, fingerprint

names = st.sampled_from("abcdefgh")


@pytest.mark.req("BEY-09")
def test_identical_turns_stop_at_the_third() -> None:
    turn = fingerprint([CompletedCall(name="read", arguments={"path": "a"}, result="x")])

    assert find_loop([turn]) is None
    assert find_loop([turn] * 2) is None
    assert find_loop(["other", *[turn] * 3]) == Loop(period=1, repeats=3)


@pytest.mark.req("BEY-09")
@given(cycle=st.lists(names, min_size=1, max_size=4, unique=True), before=st.lists(names, max_size=10))
def test_a_cycle_of_up_to_four_turns_stops_within_three_repeats(cycle: list[str], before: list[str]) -> None:
    turns = [*before, *cycle * REPEATS]

    found = find_loop(turns)

    assert found is not None
    assert len(cycle) % found.period == 0
    assert found.repeats >= REPEATS


@given(turns=st.lists(names, max_size=40))
def test_a_loop_is_found_exactly_where_the_end_repeats(turns: list[str]) -> None:
    repeats = [
        period for period in range(1, 5) if len(turns) >= 3 * period and turns[-3 * period :] == turns[-period:] * 3
    ]

    found = find_loop(turns)

    assert (found.period if found else None) == (repeats[0] if repeats else None)
    assert find_loop(turns[-LOOK_BACK:]) is None or found is not None


def test_turns_that_differ_are_no_loop() -> None:
    assert find_loop([]) is None
    assert find_loop(["a", "b", "a", "b", "a", "c"]) is None
    assert find_loop(["a", "a", "b", "a", "a", "b", "a", "a"]) is None


def test_the_fingerprint_tells_results_apart_and_not_the_order_of_keys_or_of_parallel_calls() -> None:
    first = CompletedCall(name="poll", arguments={"a": 1, "b": [2]}, result="running")
    same = CompletedCall(name="poll", arguments={"b": [2], "a": 1}, result="running")
    later = CompletedCall(name="poll", arguments={"a": 1, "b": [2]}, result="done")
    other = CompletedCall(name="read", arguments={}, result=None)

    assert fingerprint([first, other]) == fingerprint([other, same])
    assert fingerprint([first]) != fingerprint([later])
    assert fingerprint([first]) != fingerprint([first, first])
    assert fingerprint([], "it is  done\n") == fingerprint([], "it is done")
    assert len({fingerprint([], text) for text in ("", "a", "ü", "\ud800")}) == 4


def test_polling_whose_answer_changes_is_progress() -> None:
    turns = [fingerprint([CompletedCall(name="status", result=f"{percent} %")]) for percent in range(100)]

    assert all(one != two for one, two in pairwise(turns))
    assert find_loop(turns) is None
