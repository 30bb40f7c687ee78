"""Nearest vectors: the same as comparing with every one, with less work."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm.wordllama import WordLlamaEmbedder
from clew.trail.search.ranking import Floats, Ints
from clew.trail.search.vectors import EXACT, cosines, nearest, sign_codes, top

pytestmark = pytest.mark.req("O3")


WORDS = """
    ship sail thread maze king wool bull island war peace compile kernel cache lock query index table invoice refund
    customer payment cloud bucket deploy rollback cat dog horse garden rain snow summer tax law
"""


def unit(vectors: npt.NDArray[np.float64]) -> Floats:
    found: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return found


def find(query: Floats, vectors: Floats, allowed: Ints, k: int = 10) -> tuple[Ints, Floats]:
    signs = np.ascontiguousarray(sign_codes(vectors).T)
    return nearest(query, vectors, signs, allowed, k)


def recall(vectors: Floats, queries: Floats, allowed: Ints, k: int = 10) -> float:
    signs = np.ascontiguousarray(sign_codes(vectors).T)
    shares = []
    for query in queries:
        found, _ = nearest(query, vectors, signs, allowed, k)
        exact = allowed[np.argsort(-(vectors[allowed] @ query), kind="stable")[:k]]
        shares.append(len(np.intersect1d(found, exact)) / k)
    return float(np.mean(shares))


@pytest.mark.req("SYL-74")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
@pytest.mark.parametrize("kind", ["random", "clustered", "one-sided"])
def test_recall_at_ten_of_ten_thousand_with_any_filter(kind: str, share: float) -> None:
    """Vectors without a negative number have nothing that their signs could tell."""
    dice = np.random.default_rng(7)
    centres = dice.standard_normal((50, 256)) * (1.5 if kind == "clustered" else 0.0)
    vectors = unit(centres[dice.integers(50, size=10_000)] + dice.standard_normal((10_000, 256)))
    queries = unit(centres[dice.integers(50, size=20)] + dice.standard_normal((20, 256)))
    if kind == "one-sided":
        vectors, queries = np.abs(vectors), np.abs(queries)
    allowed = np.flatnonzero(dice.random(10_000) < share)
    assert recall(vectors, queries, allowed) >= 0.95


@pytest.mark.req("SYL-74")
def test_recall_with_vectors_of_real_text() -> None:
    dice = np.random.default_rng(8)
    texts = [" ".join(dice.choice(WORDS.split(), size=6)) for _ in range(6_000)]
    packed = WordLlamaEmbedder().embed(texts)
    vectors: Floats = np.frombuffer(b"".join(packed), "<f4").reshape(6_000, 256)
    assert len(vectors) > EXACT
    assert recall(vectors, vectors[::400], np.arange(6_000)) >= 0.95


@pytest.mark.req("RCR-15")
def test_few_of_a_hundred_thousand_vectors_are_compared_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(9)
    vectors = dice.standard_normal((100_000, 256), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    signs, compared = np.ascontiguousarray(sign_codes(vectors).T), list[int]()

    def count(query: Floats, vectors: Floats, slots: Ints) -> Floats:
        compared.append(len(slots))
        return cosines(query, vectors, slots)

    monkeypatch.setattr("clew.trail.search.vectors.cosines", count)
    for allowed in (np.arange(100_000), np.arange(0, 100_000, 10)):
        compared.clear()
        found, cosine = nearest(vectors[7], vectors, signs, allowed, 10)
        assert (len(found), len(np.intersect1d(found, allowed))) == (10, 10)
        assert np.all(np.diff(cosine) <= 0)
        assert 0 < sum(compared) < 10_000


def test_many_that_are_nearly_the_same_are_all_found() -> None:
    """The sample from which the bound is judged has none of them."""
    dice = np.random.default_rng(11)
    vectors = unit(dice.standard_normal((20_000, 256)))
    close = dice.choice(20_000, 60, replace=False)
    vectors[close] = unit(vectors[5] + 0.02 * dice.standard_normal((60, 256)))
    found, _ = find(vectors[5], vectors, np.arange(20_000), k=60)
    assert set(found.tolist()) <= {5, *close.tolist()}


def test_only_allowed_slots_are_found_and_all_of_them_when_few() -> None:
    vectors = unit(np.random.default_rng(1).standard_normal((6_000, 32)))
    allowed = np.array([5, 17, 5_999])
    found, cosine = find(vectors[17], vectors, allowed)
    assert set(found.tolist()) == {5, 17, 5_999}
    assert found[0] == 17
    assert cosine[0] == pytest.approx(1.0, abs=1e-5)


def test_equal_vectors_come_in_order_of_their_slots() -> None:
    vectors = np.tile(unit(np.ones((1, 64))), (EXACT + 500, 1))
    found, _ = find(vectors[0], vectors, np.arange(len(vectors)), k=20)
    assert found.tolist() == list(range(20))


def test_the_same_question_gives_the_same_answer() -> None:
    vectors = unit(np.random.default_rng(2).standard_normal((6_000, 64)))
    answers = {tuple(find(vectors[0], vectors, np.arange(6_000))[0].tolist()) for _ in range(5)}
    assert len(answers) == 1


@pytest.mark.parametrize("width", [1, 3, 63, 64, 65, 100])
def test_any_width_works(width: int) -> None:
    vectors = unit(np.random.default_rng(3).standard_normal((5_000, width)) + 1e-9)
    found, cosine = find(vectors[0], vectors, np.arange(5_000), k=5)
    assert cosine.tolist() == pytest.approx(np.sort(vectors @ vectors[0])[::-1][:5].tolist(), abs=1e-5)
    assert len(found) == 5


def test_further_ones_that_were_met_on_the_way_come_after_the_nearest() -> None:
    vectors = unit(np.random.default_rng(4).standard_normal((5_000, 64)))
    signs = np.ascontiguousarray(sign_codes(vectors).T)
    few, _ = nearest(vectors[0], vectors, signs, np.arange(5_000), 5)
    more, cosine = nearest(vectors[0], vectors, signs, np.arange(5_000), 5, more=20)
    assert more[:5].tolist() == few.tolist()
    assert 5 < len(more) <= 25
    assert np.all(np.diff(cosine) <= 0)


def test_nothing_allowed_or_nothing_there_gives_nothing() -> None:
    vectors = unit(np.ones((3, 4)))
    for held, allowed in ((vectors, np.zeros(0, np.int64)), (np.zeros((3, 0), np.float32), np.arange(3))):
        found, cosine = nearest(vectors[0], held, np.zeros((1, 3), np.uint64), allowed, 5)
        assert (found.tolist(), cosine.tolist()) == ([], [])


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), max_size=30), st.integers(1, 40))
def test_top_is_a_stable_sort_cut_short(scores: list[float], k: int) -> None:
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]
    assert top(np.array(scores, np.float32), k).tolist() == expected


def test_sign_codes_have_a_bit_for_each_positive_number() -> None:
    codes = sign_codes(np.array([[1.0, -1.0, 0.0, 2.0] + [0.0] * 66, [-1.0] * 70]))
    assert codes.shape == (2, 2)
    assert np.bitwise_count(codes).sum(axis=1).tolist() == [2, 0]
