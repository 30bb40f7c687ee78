from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import InvalidInput, SchemaViolation, TooLarge
from clew.trail.model.schema_cost import MAX_PATTERNS
from clew.trail.model.validation import MAX_SCHEMA, compile_schema

NOTE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 10},
        "count": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["a", "b"]},
        "a/b~c": {"$ref": "#/$defs/flag"},
    },
    "required": ["text"],
    "$defs": {"flag": {"type": "boolean"}},
}


def nested(depth: int, leaf: Any = None) -> dict[str, Any]:
    value: Any = {} if leaf is None else leaf
    for _ in range(depth):
        value = {"x": value}
    return value  # type: ignore[no-any-return]


def test_a_context_that_fits_passes() -> None:
    check = compile_schema(NOTE)

    check.check({"text": "hi"}, "note.v1")
    check.check({"text": "hi", "count": 0, "tags": [], "kind": "a", "a/b~c": True, "more": None}, "note.v1")


@pytest.mark.parametrize(
    ("context", "field", "reason"),
    [
        ({}, "context/text", "is missing"),
        ({"text": 1}, "context/text", "must be text"),
        ({"text": "x" * 11}, "context/text", "must have at most 10 characters"),
        ({"text": "a", "count": -1}, "context/count", "must be at least 0"),
        ({"text": "a", "tags": ["ok", 7]}, "context/tags/1", "must be text"),
        ({"text": "a", "kind": "c"}, "context/kind", "must be one of: a, b"),
        ({"text": "a", "a/b~c": 0}, "context/a~1b~0c", "must be true or false"),
    ],
)
def test_a_violation_names_the_place_and_the_reason(context: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(SchemaViolation) as caught:
        compile_schema(NOTE).check(context, "note.v1")

    assert (caught.value.field, caught.value.reason) == (field, reason)
    assert caught.value.schema_name == "note.v1"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"type": "integer"}}},
        {"properties": {"x": {"enum": [1]}}},
        {"properties": {"x": {"pattern": "^no$"}}},
        {"properties": {"x": {"not": {}}}},
        {"properties": {"x": False}},
        {"properties": {"x": {"anyOf": [{"const": 1}, {"const": 2}]}}},
        {"maxProperties": 0},
        {"additionalProperties": False},
        {"propertyNames": {"maxLength": 0}},
    ],
)
def test_a_violation_does_not_repeat_the_value(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaViolation) as caught:
        compile_schema(schema).check({"x": "hunter2" * 1_000}, "s.v1")

    assert "hunter2" not in str(caught.value)
    assert len(caught.value.reason) <= 200


def test_long_keys_and_long_options_are_cut_in_the_message() -> None:
    with pytest.raises(SchemaViolation) as caught:
        compile_schema({"additionalProperties": {"enum": ["o" * 5_000]}}).check({"k" * 5_000: 1}, "s.v1")

    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "strnig"}, "schema/type"),
        ({"properties": []}, "schema/properties"),
        ({"properties": {"a": {"minimum": "1"}}}, "schema/properties/a/minimum"),
        ({"required": "a"}, "schema/required"),
        ({"pattern": "("}, "schema/pattern"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "schema/$schema"),
        ({"$ref": 5}, "schema"),
        ({"$ref": "#/$defs/missing"}, "schema"),
        ({"$ref": "#missing"}, "schema"),
        ({"$defs": {"a": {"$id": "other"}}}, "schema"),
        ({"$defs": {"a": {"$schema": "https://json-schema.org/draft/2019-09/schema"}}}, "schema"),
        ({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, "schema"),
        ({"const": object()}, "schema"),
        ({"const": "\ud800"}, "schema"),
        ([], "schema"),
        (True, "schema"),
    ],
)
def test_an_invalid_schema_is_refused(schema: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_schema(schema)

    assert caught.value.field == field


def test_a_schema_over_the_size_limit_is_refused() -> None:
    compile_schema({"description": "x" * (MAX_SCHEMA - 100)})
    with pytest.raises(TooLarge):
        compile_schema({"description": "x" * MAX_SCHEMA})


def test_a_very_deep_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"not": schema}

    with pytest.raises(InvalidInput, match="nested"):
        compile_schema(schema)
    with pytest.raises(InvalidInput, match="not a schema"):
        compile_schema({"const": nested(400)})


def test_a_very_long_chain_of_references_is_refused() -> None:
    chain = {f"a{n}": {"properties": {"x": {"$ref": f"#/$defs/a{n + 1}"}}} for n in range(2_000)}

    with pytest.raises(InvalidInput, match="nested too deeply"):
        compile_schema({"$ref": "#/$defs/a0", "$defs": {**chain, "a2000": {}}})


def test_references_within_the_schema_work_in_every_form() -> None:
    for reference in ("#/$defs/text", "#/%24defs/text", "#named", "#/allOf/0/$defs/text"):
        part = {"$anchor": "named", "type": "string"}
        if reference.startswith("#/allOf"):
            schema = {"allOf": [{"$defs": {"text": part}}], "properties": {"a": {"$ref": reference}}}
        else:
            schema = {"$defs": {"text": part}, "properties": {"a": {"$ref": reference}}}
        check = compile_schema(schema)
        check.check({"a": "b"}, "s.v1")
        with pytest.raises(SchemaViolation):
            check.check({"a": 1}, "s.v1")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.mark.parametrize("key", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("wrap", [lambda part: part, lambda part: {"properties": {"a": {"items": part}}}])
def test_a_reference_to_the_network_is_refused_and_not_fetched(listener: socket.socket, key: str, wrap: Any) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"

    with pytest.raises(InvalidInput, match="refers to"):
        compile_schema(wrap({key: address}))
    with pytest.raises(InvalidInput, match="refers to"):
        compile_schema({"$id": address, **wrap({key: "other.json#/a"})})
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_reference_to_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object"}')

    for reference in (f"file://{tmp_path}/schema.json", "schema.json", "/etc/passwd", "../x#/a", "urn:x", "//h/x"):
        with pytest.raises(InvalidInput, match="refers to"):
            compile_schema({"$ref": reference})


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)+$", "(x+x+)+y", r"^(\w+\s?)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_catastrophic_pattern_runs_in_linear_time(pattern: str) -> None:
    check = compile_schema({"properties": {"x": {"pattern": pattern}}})

    with pytest.raises(SchemaViolation, match="context/x"):
        check.check({"x": "a" * 2_000_000 + "!"}, "s.v1")


@pytest.mark.parametrize(
    "pattern", ["(?=(a+)+$)a*b", "^(?!a)", "(?<=a)b", r"(a+)\1", "a{1000000}", "((a{100}){100}){100}"]
)
def test_a_pattern_that_cannot_be_linear_or_small_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="regular expression") as caught:
        compile_schema({"properties": {"x": {"pattern": pattern}}})
    assert caught.value.field == "schema/properties/x/pattern"

    with pytest.raises(InvalidInput):
        compile_schema({"patternProperties": {pattern: {}}})


def test_the_number_of_patterns_is_bounded() -> None:
    compile_schema({"patternProperties": {f"a{n}": {} for n in range(MAX_PATTERNS)}})
    with pytest.raises(TooLarge):
        compile_schema({"patternProperties": {f"a{n}": {} for n in range(MAX_PATTERNS + 1)}})


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    """A schema of a few lines that asks 2**levels things of one value."""
    parts: dict[str, Any] = {
        f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**parts, f"a{levels}": {"type": "string"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_at_each_level_are_refused(keyword: str) -> None:
    with pytest.raises(InvalidInput, match="things of one value"):
        compile_schema(doubling(keyword, 60))
    with pytest.raises(SchemaViolation):
        compile_schema(doubling(keyword, 9)).check({"x": 1}, "s.v1")


def test_doubling_from_one_level_of_the_value_to_the_next_is_refused_when_it_matters() -> None:
    parts: dict[str, Any] = {
        f"a{n}": {"anyOf": [{"properties": {"x": {"$ref": f"#/$defs/a{n + 1}"}}}] * 2} for n in range(60)
    }
    check = compile_schema({"$ref": "#/$defs/a0", "$defs": {**parts, "a60": {"type": "string"}}})

    check.check(nested(3), "s.v1")
    with pytest.raises(InvalidInput, match="steps to check"):
        check.check(nested(60), "s.v1")


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_stacked_unevaluated_keywords_are_refused(keyword: str) -> None:
    schema: dict[str, Any] = {}
    for _ in range(30):
        schema = {"anyOf": [schema], keyword: False}

    with pytest.raises(InvalidInput, match="things of one value"):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]},
    ],
)
def test_a_schema_that_refers_to_itself_without_going_deeper_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="circle"):
        compile_schema(schema)


def test_a_recursive_schema_checks_trees() -> None:
    check = compile_schema(
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "x": {"$ref": "#"}, "n": {"type": "integer"}}}
    )

    check.check({"left": {"n": 1, "right": {}}, "x": nested(60)}, "tree.v1")
    with pytest.raises(SchemaViolation, match="context/left/right/n"):
        check.check({"left": {"right": {"n": "one"}}}, "tree.v1")


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_recursion_with_many_ways_to_each_place_is_quick(keyword: str) -> None:
    again = {"properties": {"x": {"$ref": "#"}}}
    check = compile_schema({"type": "object", keyword: [again, {**again, "minProperties": 0}]})

    with pytest.raises(SchemaViolation):
        check.check(nested(60, leaf=5), "s.v1")


@pytest.mark.parametrize(
    ("schema", "context"),
    [
        ({"items": {"enum": [*range(5_000), {}]}}, [1] * 20_000),
        ({"items": {"dependentRequired": {f"k{n}": ["q"] for n in range(5_000)}}}, [{"a": 1}] * 20_000),
        ({"anyOf": [{"items": {"type": "string"}} for _ in range(2_000)]}, list(range(20_000))),
        ({"prefixItems": [{"items": {"allOf": [{"type": "integer"}] * 2_000}}]}, [[1] * 20_000]),
    ],
)
def test_a_large_context_against_a_large_schema_is_refused_soon(schema: dict[str, Any], context: Any) -> None:
    check = compile_schema({"properties": {"x": schema}})

    with pytest.raises(InvalidInput, match="steps to check"):
        check.check({"x": context}, "s.v1")


def test_a_large_context_against_a_plain_schema_is_checked_and_explained() -> None:
    check = compile_schema({"properties": {"x": {"items": {"type": "integer"}}}})
    numbers: list[Any] = list(range(300_000))

    check.check({"x": numbers}, "s.v1")
    with pytest.raises(SchemaViolation, match="context/x/300000"):
        check.check({"x": [*numbers, "late"]}, "s.v1")


def test_a_large_context_that_fails_a_choice_is_refused_without_a_tree_of_errors() -> None:
    check = compile_schema({"properties": {"x": {"anyOf": [{"items": {"type": "string"}}, {"maxItems": 1}]}}})

    with pytest.raises(SchemaViolation, match="too large to say where"):
        check.check({"x": list(range(200_000))}, "s.v1")


def test_a_context_that_is_not_json_is_refused() -> None:
    check = compile_schema({"properties": {"x": {"items": {"type": "integer"}}}})

    for value in (object(), "\ud800", {1: 2}, {1, 2}):
        with pytest.raises(InvalidInput, match="context"):
            check.check({"x": value}, "s.v1")


def test_a_context_of_any_depth_is_decided_without_a_crash() -> None:
    check = compile_schema({"type": "object", "properties": {"x": {"$ref": "#"}}})

    check.check(nested(900), "s.v1")
    with pytest.raises(SchemaViolation, match="too large to say where"):
        check.check(nested(900, leaf=5), "s.v1")


def test_threads_share_a_check() -> None:
    check = compile_schema(NOTE)
    failures: list[BaseException] = []

    def work(good: bool) -> None:
        for _ in range(200):
            try:
                check.check({"text": "ok" if good else 5}, "note.v1")
                assert good
            except SchemaViolation:
                assert not good

    def run(good: bool) -> None:
        try:
            work(good)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number % 2 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


KEYS = [
    *("type", "enum", "const", "required", "pattern", "properties", "additionalProperties", "items", "prefixItems"),
    *("anyOf", "not", "dependentSchemas", "unevaluatedProperties", "$ref", "$defs", "$anchor", "$id"),
]
PARTS = st.recursive(
    st.sampled_from(["string", "object", "#", "#/$defs/a", "#x", "a+", 1, None, True, False, [], {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "a"]), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(KEYS), PARTS, max_size=4), st.dictionaries(st.sampled_from("ab"), PARTS))
def test_any_json_is_a_schema_that_checks_or_is_refused(schema: dict[str, Any], context: dict[str, Any]) -> None:
    try:
        check = compile_schema(schema)
    except InvalidInput:
        return
    with suppress(SchemaViolation):
        check.check(context, "any.v1")
