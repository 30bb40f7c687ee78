"""Printed text cannot control the terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.terminal.output import clean, clean_json, count, one_line

POWERFUL = {chr(code) for code in (*range(32), *range(127, 160))} - {"\n", "\t"} | set("\u202e\u2066\u200f\u2028")


@given(st.text())
def test_a_cleaned_text_holds_no_control_character(text: str) -> None:
    assert not POWERFUL & set(clean(text))
    assert not (POWERFUL | {"\n", "\t"}) & set(one_line(text))


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_cleaned_json_is_the_same_value(value: object) -> None:
    cleaned = clean_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(cleaned) == value
    assert not POWERFUL & set(cleaned)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\x07b", "a\\x07b"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc", "\\u202eabc"),
        ("ünï ✓", "ünï ✓"),
    ],
)
def test_escapes_are_spelled_out_and_other_text_is_left_alone(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


def test_counts_are_written_as_people_write_them() -> None:
    assert [count(number, "edge") for number in (0, 1, 1200)] == ["0 edges", "1 edge", "1,200 edges"]
