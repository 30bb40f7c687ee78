"""The columns of the search index: added records can be read, dropped ones are gone."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from clew.trail.model.readable import ReadableText
from clew.trail.search.columns import FOREVER, Columns
from clew.trail.search.packing import pack_all
from clew.trail.search.text import name_id, owner_salt, term_id
from clew.trail.search.vectors import sign_codes

SALT = owner_salt("acme", "secret")
Row = tuple[int, int, int | None, bytes, bytes | None]


def row(
    rid: int, title: str = "thread", *, audience: int = 1, expires: int | None = None, vector: object = None
) -> Row:
    packed = None if vector is None else np.array(vector, "<f4").tobytes()
    return rid, audience, expires, pack_all([(ReadableText(title, "", ""), SALT)])[0], packed


def terms(*words: str) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([term_id(word, SALT) for word in words], np.uint32)


def rarity(number: int, frequency: int) -> float:
    return math.log(1 + (number - frequency + 0.5) / (frequency + 0.5))


def test_a_record_is_found_by_its_slot() -> None:
    columns = Columns()
    slots = columns.put([row(5, "Ball of thread", expires=77), row(9, "Wool", audience=2)])
    assert slots.tolist() == [0, 1]
    assert columns.size == 2
    assert columns.rid[:2].tolist() == [5, 9]
    assert columns.audience[:2].tolist() == [1, 2]
    assert columns.expires[:2].tolist() == [77, FOREVER]
    assert columns.name[:2].tolist() == [name_id("Ball of thread", SALT), name_id("Wool", SALT)]
    assert (columns.find(5), columns.find(9), columns.find(7), columns.find(10**9), columns.find(-1)) == (
        0,
        1,
        None,
        None,
        None,
    )
    assert columns.slots([9, 7, 5, 10**9]).tolist() == [1, 0]
    assert columns.put([]).tolist() == []


def test_the_terms_of_a_slot_are_those_of_its_record() -> None:
    columns = Columns()
    columns.put([row(1, "Ball of thread"), row(2, "Wool wool")])
    at = int(columns.at[1])
    packed = np.frombuffer(pack_all([(ReadableText("Wool wool", "", ""), SALT)])[0], "<u4")
    assert columns.heap[at : at + len(packed)].tolist() == packed.tolist()
    first, second = columns.term_texts(np.array([0, 1]))
    ball, of, thread, wool = (str(term_id(word, SALT)) for word in ("ball", "of", "thread", "wool"))
    assert sorted(first.split()) == sorted([ball, thread, of] * 2)
    assert second.split() == [wool] * 4
    assert packed[0] == 1


def test_a_replaced_record_moves_to_a_new_slot_and_leaves_the_old_one_empty() -> None:
    columns = Columns()
    columns.put([row(1, "thread", vector=[1.0, 0.0]), row(2, "wool", vector=[0.0, 1.0])])
    (slot,) = columns.put([row(1, "ship", audience=3, vector=[0.0, -1.0])]).tolist()
    assert (columns.find(1), columns.size) == (slot, 3)
    assert (columns.rid[0], columns.audience[0], columns.expires[0]) == (-1, -1, 0)
    assert columns.has_vector(np.arange(3)).tolist() == [False, True, True]
    assert columns.cosines(np.array([0.0, 1.0], np.float32), np.arange(3)).tolist() == [0, 1, -1]
    assert columns.totals([1]) == (1, 1.0)
    assert columns.totals([3]) == (1, 1.0)


def test_a_dropped_record_is_gone_and_dropping_again_is_harmless() -> None:
    columns = Columns()
    columns.put([row(1), row(2)])
    for _ in range(2):
        columns.drop([1, 99])
    assert columns.find(1) is None
    assert columns.slots([1, 2]).tolist() == [1]
    assert columns.totals([1]) == (1, 1.0)
    assert columns.rarity(terms("thread"), [1], 1).tolist() == pytest.approx([rarity(1, 1)])


def test_a_record_whose_reads_are_used_up_counts_as_expired_until_it_is_replaced() -> None:
    columns = Columns()
    columns.put([row(1), row(2)])
    columns.expire([2, 99])
    assert columns.expires[:2].tolist() == [FOREVER, 0]
    assert (columns.find(2), columns.spent) == (1, 1)
    columns.put([row(2)])
    assert columns.expires[2] == FOREVER


def test_texts_for_the_postings_may_be_made_after_their_records_have_gone() -> None:
    columns = Columns()
    columns.put([row(1, "thread"), row(2, "wool")])
    expected = list(columns.term_texts(columns.slots([1, 2])))
    texts = columns.term_texts(columns.slots([1, 2]))
    columns.drop([1])
    packed = pack_all([(ReadableText(f"ship {number}", "", ""), SALT) for number in range(3, 20_000)])
    columns.put([(number, 1, None, each, None) for number, each in enumerate(packed, 3)])
    assert list(texts) == expected


def test_rarity_counts_the_records_of_the_audiences_that_are_asked_about() -> None:
    columns = Columns()
    columns.put([row(number, "thread", audience=1) for number in range(1, 4)])
    columns.put([row(10, "wool", audience=1), *(row(number, "thread", audience=2) for number in range(20, 60))])
    assert columns.rarity(terms("thread", "wool", "absent"), [1], 4).tolist() == pytest.approx(
        [rarity(4, 3), rarity(4, 1), 0.0], rel=1e-5
    )
    assert columns.rarity(terms("thread"), [1, 2], 44).tolist() == pytest.approx([rarity(44, 43)], rel=1e-5)


def test_many_records_at_once_count_as_they_would_one_by_one() -> None:
    rows = [
        row(number, f"word{number % 7} thread and more words of a title", audience=number % 3) for number in range(400)
    ]
    together, apart = Columns(), Columns()
    together.reserve(400, 4_000)
    together.put(rows)
    for each in rows:
        apart.put([each])
    asked = terms("thread", "title", "word", "absent")
    for audiences in ([0], [1, 2], [0, 1, 2]):
        number, mean = together.totals(audiences)
        assert (number, mean) == pytest.approx(apart.totals(audiences))
        one, other = (columns.rarity(asked, audiences, number).tolist() for columns in (together, apart))
        assert one == pytest.approx(other)


def test_totals_without_audiences_are_zero() -> None:
    assert Columns().totals([1, 2]) == (0, 1.0)
    assert Columns().totals([]) == (0, 1.0)


@pytest.mark.req("SYL-75")
def test_a_thousand_random_changes_leave_what_a_plain_dictionary_has() -> None:
    dice, columns = random.Random(3), Columns()
    held: dict[int, tuple[int, list[float]]] = {}
    for _ in range(1_000):
        rid = dice.randrange(1, 300)
        if dice.random() < 0.4:
            columns.drop([rid])
            held.pop(rid, None)
        else:
            vector = [dice.uniform(-1, 1) for _ in range(70)]
            held[rid] = dice.randrange(1, 4), vector
            columns.put([row(rid, audience=held[rid][0], vector=vector)])
    present = {int(rid): slot for slot, rid in enumerate(columns.rid[: columns.size].tolist()) if rid >= 0}
    assert present.keys() == held.keys()
    for rid, slot in present.items():
        audience, vector = held[rid]
        assert columns.find(rid) == slot
        assert columns.audience[slot] == audience
        place = columns.vector_row[slot]
        assert columns.vectors[place].tolist() == pytest.approx(vector, abs=1e-6)
        assert columns.signs[:, place].tolist() == sign_codes(np.array(vector))[0].tolist()
    assert columns.totals([1, 2, 3])[0] == len(held)


def test_vectors_may_come_late_and_some_may_lack_them() -> None:
    columns = Columns()
    columns.put([row(1), row(2)])
    assert columns.vectors.shape == (0, 0)
    columns.put([row(3, vector=[0.6, 0.8]), row(4)])
    assert columns.has_vector(np.arange(4)).tolist() == [False, False, True, False]
    query = np.array([0.6, 0.8], np.float32)
    assert columns.cosines(query, np.arange(4)).tolist() == pytest.approx([0, 0, 1, 0])
    columns.put([row(number, vector=[1.0, 0.0]) for number in range(10, 3_000)])
    assert columns.nearest(query, np.arange(2, 3, dtype=np.int64), 1, more=0, roughly=False).tolist() == [2]
    assert len(columns.vectors) == columns.signs.shape[1]


def test_records_without_a_vector_take_no_room_among_the_vectors() -> None:
    columns = Columns()
    columns.put([row(1, vector=[0.6, 0.8])])
    packed = row(2)[3]
    columns.put([(number, 1, None, packed, None) for number in range(2, 10_000)])
    assert len(columns.vectors) < 1_000


def test_columns_whose_records_were_mostly_replaced_are_sparse() -> None:
    columns, packed = Columns(), row(1)[3]
    for _ in range(3):
        assert not columns.is_sparse
        columns.put([(number, 1, None, packed, None) for number in range(1, 3_000)])
    assert columns.is_sparse


def test_a_vector_of_another_width_counts_as_none() -> None:
    columns = Columns()
    columns.put([row(1, vector=[1.0, 0.0]), row(2, vector=[1.0, 0.0, 0.0])])
    assert columns.has_vector(np.arange(2)).tolist() == [True, False]
    columns.drop([1])
    assert columns.has_vector(np.arange(2)).tolist() == [False, False]
