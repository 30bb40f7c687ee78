"""Records packed for the ranking: counts, limits, and independence of neighbouring records."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.trail.model.readable import ReadableText
from clew.trail.search.packing import BATCH, MAX_WORDS_PER_FIELD, pack_all
from clew.trail.search.text import HEADER, STOP, are_whole, name_id, owner_salt, pair_id, split_text, term_id

SALT = owner_salt("acme", "secret")
TEXTS = st.text(alphabet="aZ_9 of.é中\n", max_size=40)


def pack_terms(shown: ReadableText, salt: int) -> bytes:
    return pack_all([(shown, salt)])[0]


def unpacked(packed: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """Header, term ids, counts and pairs of a packed record."""
    words = np.frombuffer(packed, "<u4").tolist()
    terms, pairs = words[0], words[1]
    first, second = HEADER + terms, HEADER + 2 * terms
    assert len(words) == second + pairs
    return words[:HEADER], words[HEADER:first], words[first:second], words[second:]


def test_a_record_is_packed_with_counts_by_field() -> None:
    shown = ReadableText("Ball of thread", "a thread and a thread", "wool thread")
    (terms, pairs, in_title, length, name, _), ids, counts, adjacent = unpacked(pack_terms(shown, SALT))
    ball, thread, wool = (term_id(word, SALT) for word in ("ball", "thread", "wool"))
    assert (terms, pairs, in_title, name) == (len(ids), len(adjacent), 2, name_id("Ball of thread", SALT))
    assert set(ids[:2]) == {ball, thread}
    found = dict(zip(ids, counts, strict=True))
    assert (found[ball], found[thread], found[wool]) == (1, 1 | 2 << 8 | 1 << 16, 1 << 16)
    assert set(adjacent) == {pair_id(ball, thread), pair_id(thread, thread), pair_id(wool, thread)}
    assert length == 2 * 10 + 2 * 10 + 2 * 2
    assert {term_id(word, SALT) for word in ("of", "a", "and")} == set(ids) - {ball, thread, wool}


def test_an_empty_record_can_be_packed() -> None:
    header, ids, counts, pairs = unpacked(pack_terms(ReadableText("!", "", ""), SALT))
    assert (header[:4], ids, counts, pairs) == ([0, 0, 0, 10], [], [], [])


def test_a_huge_record_is_bounded() -> None:
    text = " ".join(f"word{number} " for number in range(50_000)) + "same " * 1_000
    packed = pack_terms(ReadableText("same " * 400, text, text), SALT)
    _, ids, counts, _ = unpacked(packed)
    assert len(ids) <= 3 * 2 * MAX_WORDS_PER_FIELD + 1_000
    assert counts[ids.index(term_id("same", SALT))] & 255 == 255


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6))
def test_many_are_packed_as_each_would_be_alone(texts: list[tuple[str, str, str]]) -> None:
    records = [(ReadableText(*each), SALT + at) for at, each in enumerate(texts)]
    assert pack_all(records) == [pack_terms(*each) for each in records]
    assert all(are_whole(packed) for packed in pack_all(records))


def test_more_than_one_batch_is_packed_in_order() -> None:
    records = [(ReadableText(f"title {number}", "", ""), SALT) for number in range(2 * BATCH + 1)]
    names = [unpacked(packed)[0][4] for packed in pack_all(records)]
    assert names == [name_id(shown.title, SALT) for shown, _ in records]


@given(TEXTS, TEXTS, TEXTS)
def test_every_term_is_counted_in_its_field(title: str, description: str, content: str) -> None:
    header, ids, counts, pairs = unpacked(pack_terms(ReadableText(title, description, content), SALT))
    found = dict(zip(ids, counts, strict=True))
    expected: dict[int, int] = {}
    neighbours: set[int] = set()
    for field, text in enumerate((title, description, content)):
        words = split_text(text)
        for part in (*words.parts, *words.compounds):
            expected[term_id(part, SALT)] = expected.get(term_id(part, SALT), 0) + (1 << 8 * field)
        kept = [term_id(part, SALT) for part in words.parts if part not in STOP]
        neighbours |= {pair_id(first, second) for first, second in pairwise(kept)}
        if field == 0:
            assert set(ids[: header[2]]) == set(kept)
    assert found == expected
    assert set(pairs) == neighbours
