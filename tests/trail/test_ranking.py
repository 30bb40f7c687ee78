"""The arithmetic of ranking, on small arrays that can be computed by hand."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from clew.trail.model.readable import ReadableText
from clew.trail.search.packing import pack_all
from clew.trail.search.ranking import (
    DENSE_SHARE,
    FIELD_WEIGHTS,
    MAX_TERMS,
    PAIR_BONUS,
    SATURATION,
    TITLE_SHARE,
    Corpus,
    Floats,
    Words,
    fuse,
    fuse_ranks,
    parse_question,
    score_lexical,
    score_rcrt,
    term_name,
    weigh,
)
from clew.trail.search.text import name_id, owner_salt, term_id

SALT = owner_salt("acme", "secret")


def floats(*numbers: float) -> Floats:
    return np.array(numbers, np.float32)


def corpus(*records: tuple[str, str, str], rarity: Callable[[Words], Floats] | None = None) -> Corpus:
    """Records as the index holds them; every term equally rare unless said otherwise."""
    packed = [np.frombuffer(each, "<u4") for each in pack_all([(ReadableText(*each), SALT) for each in records])]
    starts = np.cumsum([0, *(len(each) for each in packed[:-1])])
    lengths = [int(each[3]) / 10 for each in packed]
    return Corpus(
        heap=np.concatenate(packed),
        at=starts.astype(np.int64),
        rarity=rarity or (lambda ids: np.ones(len(ids), np.float32)),
        mean_length=sum(lengths) / len(lengths),
        number=len(lengths),
    )


def scores(text: str, held: Corpus, **weights: float) -> list[float]:
    found, _ = score_lexical(weigh(parse_question(text, SALT), held), held, np.arange(len(held.at)), weights)
    return found.tolist()


def saturated(amount: float) -> float:
    return amount * (SATURATION + 1) / (amount + SATURATION)


# -- questions --------------------------------------------------------------------------------------------


def test_a_question_has_its_terms_once_without_stop_words() -> None:
    question = parse_question("find the thread, the thread of Ariadne", SALT)
    assert question.words == ["find", "thread", "thread", "ariadne"]
    assert question.terms == [term_id(word, SALT) for word in ("find", "thread", "ariadne")]
    assert len(question.pairs) == 3


def test_a_question_of_only_stop_words_keeps_them() -> None:
    assert parse_question("to be or not", SALT).words == ["to", "be", "or", "not"]
    assert parse_question("!?", SALT).terms == []


def test_the_names_of_a_question_are_its_whole_and_its_identifiers() -> None:
    question = parse_question("call getUser now", SALT)
    assert question.names == [name_id("callGetUserNow", SALT), name_id("get_user", SALT)]
    assert term_name("getuser", SALT) == name_id("get-user", SALT) == zlib.crc32(b"getuser", SALT)


# -- words ------------------------------------------------------------------------------------------------


def test_one_word_in_each_field_counts_by_its_weight_and_saturates() -> None:
    held = corpus(("thread", "", ""), ("x", "thread", ""), ("x", "", "thread"), ("x", "y", "z"))
    found = scores("thread", held)
    expected = [saturated(FIELD_WEIGHTS[field]) for field in ("title", "description", "content")]
    lengths = np.array([1.0, 2.0, 1.2, 2.2]) / held.mean_length
    exponent = 0.5 * 1 / (1 + 15.0**2)
    assert found[:3] == pytest.approx((np.array(expected) * lengths[:3] ** -exponent).tolist(), rel=1e-5)
    assert found[3] == 0


def test_repeats_help_less_and_less() -> None:
    held = corpus(*(("x", "thread " * number, "") for number in (1, 2, 4)))
    one, two, four = scores("thread", held)
    assert one < two < four
    assert two - one > four - two


def test_rare_words_count_more() -> None:
    thread = term_id("thread", SALT)
    held = corpus(
        ("thread", "", ""), ("wool", "", ""), rarity=lambda ids: np.where(ids == thread, 5.0, 1.0).astype("f4")
    )
    first, second = scores("thread wool", held)
    assert first == pytest.approx(5 * second)


def test_words_side_by_side_earn_a_bonus() -> None:
    held = corpus(("x", "ball thread", ""), ("x", "thread ball", ""))
    together, apart = scores("ball thread", held)
    exponent = 0.5 * 4 / (4 + 15.0**2)
    assert together - apart == pytest.approx(PAIR_BONUS * (3.0 / held.mean_length) ** -exponent, rel=1e-4)


def test_a_weight_of_nothing_silences_a_field() -> None:
    held = corpus(("thread", "", ""), ("x", "thread", ""))
    assert scores("thread", held, title=0.0)[0] == 0
    assert scores("thread", held, description=0.0)[1] == 0


def test_the_share_of_the_title_that_a_question_explains() -> None:
    held = corpus(("ball thread", "", ""), ("thread", "", ""), ("wool", "thread", ""))
    _, titles = score_lexical(weigh(parse_question("thread", SALT), held), held, np.arange(3), {})
    assert titles.tolist() == pytest.approx([0.5, 1.0, 0.0])


def test_nothing_to_score_scores_nothing() -> None:
    held = corpus(("thread", "", ""))
    nothing = np.zeros(0, np.int64)
    for question, slots in ((parse_question("thread", SALT), nothing), (parse_question("!", SALT), np.arange(1))):
        lexical, titles = score_lexical(weigh(question, held), held, slots, {})
        assert (lexical.tolist(), titles.tolist()) == ([0.0] * len(slots), [0.0] * len(slots))


def test_words_with_a_hash_collision_are_distinguished() -> None:
    """The low 16 bits of two ids are equal for some pair among a few thousand words."""
    seen: dict[int, str] = {}
    dice = random.Random(1)
    for _ in range(5_000):
        word = "".join(dice.choices("bcdfghjklmnpqrstvwxz", k=9))
        other = seen.setdefault(term_id(word, SALT) & 0xFFFF, word)
        if other != word and term_id(other, SALT) != term_id(word, SALT):
            break
    else:
        pytest.fail("no two words share a place")
    held = corpus((word, "", ""), (other, "", ""), ("x", "", ""))
    first, second, third = scores(f"{word} {other}", held)
    assert first == pytest.approx(second)
    assert first > 0
    assert third == 0


def test_the_rarest_words_of_an_endless_question_count() -> None:
    words = [f"w{chr(97 + number % 26)}{chr(97 + number // 26)}x" for number in range(MAX_TERMS + 20)]
    last = term_id(words[-1], SALT)
    held = corpus((words[-1], "", ""), ("x", "", ""), rarity=lambda ids: np.where(ids == last, 5.0, 1.0).astype("f4"))
    assert scores(" ".join(words), held)[0] > 0


def test_words_that_no_record_has_take_no_room() -> None:
    thread = term_id("thread", SALT)
    held = corpus(("thread", "", ""), rarity=lambda ids: np.where(ids == thread, 1.0, 0.0).astype("f4"))
    strange = " ".join(f"qx{number}z" for number in range(3 * MAX_TERMS))
    weighed = weigh(parse_question(f"{strange} thread", SALT), held)
    assert (weighed.terms.tolist(), weighed.rarest(32), weighed.pairs.tolist()) == ([thread], [thread], [])
    assert scores(f"{strange} thread", held) == pytest.approx(scores("thread", held))


# -- fusing -----------------------------------------------------------------------------------------------


def test_the_default_score_is_made_of_its_three_parts() -> None:
    found = fuse(floats(4, 2, 0), floats(0, 1, 0.5), floats(0.5, -0.2, 0.25))
    expected = [
        (1 - DENSE_SHARE) * 1.0 + DENSE_SHARE * 1.0,
        (1 - DENSE_SHARE) * 0.5 + DENSE_SHARE * 0.0 + TITLE_SHARE * 1.0,
        DENSE_SHARE * 0.5 + TITLE_SHARE * 0.5,
    ]
    assert found.tolist() == pytest.approx(expected)
    assert fuse(floats(0, 0), floats(0, 0), floats(0, -1)).tolist() == [0.0, 0.0]
    assert fuse(floats(), floats(), floats()).tolist() == []


def test_rank_fusion_counts_only_lists_that_found_the_candidate() -> None:
    found = fuse_ranks(floats(3, 2, 0), floats(0, 0.5, 0.9))
    assert found.tolist() == pytest.approx([1 / 61, 1 / 62 + 1 / 62, 1 / 61], rel=1e-5)
    assert fuse_ranks(floats(1, 1), k=0).tolist() == pytest.approx([1.0, 0.5])


@pytest.mark.req("RCR-16")
def test_the_rcrt_formula() -> None:
    found = score_rcrt(floats(1.0, 0.5, 0.0, -1.0), np.array([0, 2, 4, 4]), 4)
    assert found.tolist() == pytest.approx([0.6, 0.6 / 1.5 + 0.2, 0.3 + 0.4, 0.2 + 0.4])


@pytest.mark.req("RCR-16")
def test_the_rcrt_formula_is_safe_without_keywords_and_lifts_by_them() -> None:
    assert score_rcrt(floats(1.0, 0.0), np.array([0, 0]), 0).tolist() == pytest.approx([0.6, 0.3])
    nearer, overlapping = score_rcrt(floats(0.95, 0.90), np.array([0, 1]), 3).tolist()
    assert overlapping > nearer
