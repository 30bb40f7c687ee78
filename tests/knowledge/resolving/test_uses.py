"""Which questions are on what uses what, and which name and edges they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.resolving.uses import read_use_question


@pytest.mark.parametrize(
    ("question", "name", "edge_type", "backwards"),
    [
        ("what calls getbasetemp", "getbasetemp", "calls", True),
        ("What calls `fetchUser`?", "fetchUser", "calls", True),
        ("getbasetemp callers", "getbasetemp", "calls", True),
        ("callers of Trail.close()", "Trail.close", "calls", True),
        ("which functions call the function parse_config", "parse_config", "calls", True),
        ("where is parse_config called from", "parse_config", "calls", True),
        ("who uses compose", "compose", "all", True),
        ("where is compose used", "compose", "all", True),
        ("usages of the class Context", "Context", "all", True),
        ("what does resolve call", "resolve", "calls", False),
        ("what is called by resolve", "resolve", "calls", False),
        ("what does resolve depend on", "resolve", "all", False),
        ("who inherits from Shelf", "Shelf", "extends", True),
        ("subclasses of Shelf", "Shelf", "extends", True),
        ("who implements IntoResponse", "IntoResponse", "extends", True),
        ("what does NodeShelf extend", "NodeShelf", "extends", False),
        ("what imports clew.errors", "clew.errors", "imports", True),
        ("what does resolver import", "resolver", "imports", False),
        ("what imports body-parser", "body-parser", "imports", True),
        ("who uses the body-parser package", "body-parser", "imports", True),
        ("which files import github.com/spf13/pflag", "github.com/spf13/pflag", "imports", True),
        ("what imports @babel/core", "@babel/core", "imports", True),
    ],
)
def test_a_question_on_uses_names_one_thing_and_a_direction(
    question: str, name: str, edge_type: str, backwards: bool
) -> None:
    asked = read_use_question(question)
    assert asked is not None
    assert (asked.named.names, asked.edge_type, asked.backwards) == ((name,), edge_type, backwards)


@pytest.mark.parametrize(
    "question",
    [
        "where is compose",
        "what calls it",
        "what calls the payment service when an order is late",
        "how do I use kubernetes",
        "what does this do",
        "which linter is used here",
        "who changed compose",
        "",
    ],
)
def test_other_questions_are_not_taken_for_one_on_uses(question: str) -> None:
    assert read_use_question(question) is None


@given(st.text(max_size=2_000))
def test_any_text_may_be_asked(text: str) -> None:
    asked = read_use_question(text)
    assert asked is None or all(asked.named.names)
