"""A turn of a conversation is found by what stands beside it, too."""

from __future__ import annotations

from clew.knowledge.history.turns import lend_scores


def test_the_answer_to_a_found_question_comes_in() -> None:
    assert list(lend_scores({"question": 1.0}, [["hello", "question", "answer"]])) == ["question", "answer", "hello"]


def test_of_two_equal_turns_the_one_beside_another_hit_is_better() -> None:
    lent = lend_scores({"alone": 0.5, "near": 0.5, "hit": 0.4}, [["alone"], ["hit", "near"]])
    assert max(lent, key=lent.__getitem__) == "near"


def test_nothing_is_lent_from_one_conversation_to_another() -> None:
    assert lend_scores({"last": 1.0}, [["first", "last"], ["other"]]).keys() == {"first", "last"}


def test_what_is_in_no_conversation_keeps_its_score() -> None:
    assert lend_scores({"note": 0.3, "turn": 0.2}, [["turn"]]) == {"note": 0.3, "turn": 0.2}


def test_without_hits_there_are_none() -> None:
    assert lend_scores({}, [["a", "b"]]) == {}
    assert lend_scores({}, []) == {}
