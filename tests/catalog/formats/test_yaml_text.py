from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats.yaml_text import load_yaml
from clew.errors import FormatError

MARKS = st.sampled_from(
    ("\n", "  ", ": ", "- ", "? ", ", ", "[", "]", "{", "}", "|", ">", "'", '"', "#", "~", "@", "%", "\t")
)
WORDS = st.sampled_from(
    ("a", "&x ", "*x", "!!int ", "!!set ", "<<", "0x_", "1:99", "2026-01-02", "2026-99-99", "1e999", "---")
)


def test_values_are_plain_and_dates_are_text() -> None:
    text = "a: 2026-01-02\nb: [1, 2.5, yes, null]\n3: {c: 2026-01-02 03:04:05}"
    assert load_yaml("x", text) == {
        "a": "2026-01-02",
        "b": [1, 2.5, True, None],
        "3": {"c": "2026-01-02T03:04:05"},
    }


@pytest.mark.parametrize("text", ["1:30", "-1:30.5", "1:" * 80_000 + "1", "0x" + "f" * 5_000])
def test_times_of_day_and_endless_numbers_are_text(text: str) -> None:
    assert load_yaml("x", f"a: {text}") == {"a": text}


def test_numbers_of_every_kind_are_read() -> None:
    text = "[0, -12, +7, 1_000, 0x1F, 0b101, 017, 0.5, -1.5e+3, .25, .inf]"
    assert load_yaml("x", text) == [0, -12, 7, 1_000, 31, 5, 15, 0.5, -1_500.0, 0.25, float("inf")]


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x", "a: &x\n  <<: *x", "*x"])
def test_aliases_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="uses a YAML alias"):
        load_yaml("x", text)


@pytest.mark.parametrize("text", ["a: !!bool maybe", "!!python/name:os.system x", "!local x", "- !!binary aGk="])
def test_tags_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="uses a YAML tag"):
        load_yaml("x", text)


@given(st.lists(MARKS | WORDS).map("".join) | st.text())
def test_any_text_gives_plain_values_or_a_format_error(text: str) -> None:
    with contextlib.suppress(FormatError):
        msgspec.json.encode(load_yaml("x", text))
