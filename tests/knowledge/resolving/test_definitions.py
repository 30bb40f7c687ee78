"""Which names a question spells out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.resolving.definitions import read_names


@pytest.mark.parametrize(
    ("question", "names", "kind", "is_spelled"),
    [
        ("where is TempPathFactory", ("TempPathFactory",), "", True),
        ("where is TypeAdapter defined?", ("TypeAdapter",), "", True),
        ("where is the class Context", ("Context",), "type", True),
        ("where is the trait IntoResponse", ("IntoResponse",), "type", True),
        ("where is `compose`", ("compose",), "", True),
        ("where is compose()", ("compose",), "", True),
        ("where is compose", ("compose",), "", False),
        ("which file defines check_array", ("check_array",), "", True),
        ("definition of Router::layer", ("Router::layer",), "", True),
        ("where is the backoff function", ("backoff",), "function", True),
    ],
)
def test_a_question_for_one_thing_names_it(question: str, names: tuple[str, ...], kind: str, is_spelled: bool) -> None:
    found = read_names(question)
    assert (found.names, found.kind, found.is_spelled, found.is_all) == (names, kind, is_spelled, True)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("where is the retry policy", ()),
        ("how does TempPathFactory make a directory", ("TempPathFactory",)),
        ("explain `mktemp` and parse_config", ("mktemp", "parse_config")),
        ("Why do I wait", ()),
        ("", ()),
    ],
)
def test_other_questions_may_spell_out_names_too(question: str, names: tuple[str, ...]) -> None:
    found = read_names(question)
    assert (found.names, found.is_all) == (names, False)


@given(st.text(max_size=2_000))
def test_any_text_may_be_asked(text: str) -> None:
    assert len(read_names(text).names) <= 3
