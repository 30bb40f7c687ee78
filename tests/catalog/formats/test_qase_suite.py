from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.formats.types import QASE_CASE, QASE_SUITE
from clew.errors import FormatError
from tests.catalog.formats.documents import read, walk

CASE: dict[str, Any] = {
    "id": 5,
    "title": "Pay by card",
    "description": "A card is charged.",
    "preconditions": "A basket",
    "postconditions": None,
    "severity": 2,
    "suite_id": 17,
    "tags": [{"title": "smoke", "internal_id": 1}],
    "steps": [
        {"hash": "a", "position": 1, "action": "Open the till", "data": "card 4242", "expected_result": "It opens"},
        {"hash": "b", "position": 2, "action": "Pay", "data": None, "expected_result": None},
    ],
}
SUITE: dict[str, Any] = {"id": 17, "title": "Checkout", "description": "All about paying.", "cases_count": 2}


@pytest.mark.req("ERN-18")
def test_the_cases_of_a_suite_are_its_children() -> None:
    root = read({**SUITE, "cases": [CASE, {"id": 6, "title": "Pay by bill"}]}, QASE_SUITE, id="17", base="qa")
    assert [(node.path, node.name, node.type) for node in walk([root])] == [
        ("qa/17", "Checkout", "suite"),
        ("qa/17/cases/5", "Pay by card", "case"),
        ("qa/17/cases/6", "Pay by bill", "case"),
    ]
    assert root.description == "All about paying."
    assert "Pay by card" not in root.content


def test_a_case_tells_its_steps() -> None:
    root = read(CASE, QASE_CASE, id="5", base="cases")
    assert root.path == "cases/5"
    assert root.content == (
        "Test case 5: Pay by card\n\nA card is charged.\n\nGiven:\nA basket\n\n"
        "Steps:\n1. Open the till (with card 4242) → It opens\n2. Pay\n\nTags:\nsmoke"
    )
    assert root.description == "A card is charged."


def test_a_suite_without_cases_is_one_node_and_the_same_case_twice_keeps_both() -> None:
    assert read(SUITE, QASE_SUITE).children == ()
    root = read({**SUITE, "cases": [CASE, CASE]}, QASE_SUITE, id="17")
    assert [child.path for child in root.children] == ["17/cases/5", "17/cases/5-2"]


def test_a_case_without_a_title_is_refused_by_place() -> None:
    with pytest.raises(FormatError, match=r"is not a suite of Qase with its cases: cases\[0\]\.title: is missing"):
        read({**SUITE, "cases": [{"id": 1}]}, QASE_SUITE)
