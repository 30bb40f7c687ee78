"""The parameters of a tool on one line."""

from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.operations.markdown import describe_params


@pytest.mark.req("ERN-10")
@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({}, ""),
        ({"properties": {}}, ""),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "a (string)"),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]}, "a (string), b (any); needed: b"),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, "a (integer); none needed"),
        ({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "a (string); none needed"),
        ({"properties": {"a": {"enum": [1, 2]}}}, "a (one of a list); none needed"),
        ({"properties": {"a": {"$ref": "#/x"}}}, "a (object); none needed"),
        ({"properties": {"`a`\n## b": {"type": "`x`"}}}, "`a` ## b (`x`); none needed"),
        ({"properties": {"a": "nonsense"}, "required": "a"}, "a (any); none needed"),
        ({"properties": [1]}, ""),
    ],
)
def test_parameters_are_reported_by_name_and_type(schema: dict[str, Any], line: str) -> None:
    assert describe_params(schema) == line


def test_many_parameters_are_cut() -> None:
    schema = {"properties": {f"parameter_{at}": {"type": "string"} for at in range(500)}}
    assert len(describe_params(schema)) < 400
