"""Foreign schemas: their display, and the errors for invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.servers.entries.schemas import check_arguments, clean_schema, misfit, params_prose
from clew.errors import InvalidInput


def test_parameters_are_described_in_a_sentence_with_quoted_descriptions() -> None:
    schema = {
        "properties": {
            "path": {"type": "string", "description": "Where\n# Guidance"},
            "depth": {"type": ["integer", "null"]},
            **{f"more{number}": {} for number in range(20)},
        },
        "required": ["path"],
    }
    said = params_prose(schema)
    assert said.startswith(
        "Takes path (string: \u201cWhere Guidance\u201d), depth (integer or null, optional), more0 (any"
    )
    assert said.endswith("and 10 more.")
    assert params_prose({}) == "Takes no parameters."


def test_the_texts_of_a_schema_are_plain_and_its_meaning_stays() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "description": "x\n# y", "minimum": 3}}}
    cleaned = clean_schema(schema)
    assert cleaned["properties"]["a"] == {"type": "integer", "description": "x y", "minimum": 3}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 2},
        "depth": {"type": ["integer", "null"], "maximum": 9},
        "order": {"enum": ["asc", "desc", "# forged\n`pay://tools/x`"]},
        "where": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.req("PLA-08")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "path: is missing. It takes text"),
        ({"path": 5}, "path: must be text. It takes text"),
        ({"path": "x"}, "path: must have at least 2 characters. It takes text"),
        ({"path": "xy", "depth": "deep"}, "depth: must be a whole number or null. It takes a whole number or null"),
        ({"path": "xy", "depth": 10}, "depth: must be at most 9. It takes a whole number or null"),
        ({"path": "xy", "order": "up"}, "order: must be one of: asc, desc, # forged pay: //tools/x'"),
        ({"path": "xy", "where": {}}, "where.line: is missing"),
        (
            {"pth": "xy", "path": "xy"},
            "pth: is not allowed here. Did you mean path? Parameters are: path, depth, order",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_reported_in_plain_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_arguments(SCHEMA, given)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_result_that_does_not_fit_is_reported_in_plain_words() -> None:
    assert misfit(SCHEMA, {"path": 5}) == "must be text"
    assert misfit(SCHEMA, {}) == "is missing"
