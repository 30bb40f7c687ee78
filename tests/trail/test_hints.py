from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.errors import InvalidInput, TemplateError, TooLarge
from clew.trail.templates.hints import MAX_TRANSFORMS, apply_hints, check_hints, resolve_hints

TOOL = {
    "name": "openrouter",
    "description": "Call models",
    "code": "export default …",
    "permissions": {"net": True},
    "limits": {"memory_mb": 64},
    "ui_schema": {"order": []},
    "input_schema": {"type": "object", "code": "kept"},
    "examples": [{"in": "a", "out": "b", "raw": 1}, {"in": "c", "out": "d", "raw": 2}],
}


@pytest.mark.req("RCR-13")
def test_excluded_fields_of_a_tool_are_gone_and_the_rest_stays() -> None:
    hints = {"exclude": ["code", "permissions", "limits", "ui_schema"]}

    assert apply_hints(TOOL, hints) == {
        "name": "openrouter",
        "description": "Call models",
        "input_schema": {"type": "object", "code": "kept"},
        "examples": TOOL["examples"],
    }


@pytest.mark.req("RCR-13")
def test_included_fields_are_all_that_is_shown() -> None:
    assert apply_hints(TOOL, {"include": ["description", "name", "missing"]}) == {
        "name": "openrouter",
        "description": "Call models",
    }


@pytest.mark.req("RCR-13")
def test_a_format_is_the_whole_content() -> None:
    hints = {"format": "Name: {name}\nMemory: {limits.memory_mb} {{MB}}, nets: {permissions}, {nothing}."}

    assert apply_hints(TOOL, hints) == {"content": 'Name: openrouter\nMemory: 64 {MB}, nets: {"net":true}, .'}


@pytest.mark.req("RCR-13")
def test_a_template_is_the_whole_content() -> None:
    hints = {"template": "{{title}}: {{name}}{{#each examples}}\n- {{in}} → {{out}}{{/each}}"}

    assert apply_hints(TOOL, hints, title="Tool") == {"content": "Tool: openrouter\n- a → b\n- c → d"}


@pytest.mark.req("RCR-13")
def test_an_extract_gives_one_value_or_a_list_or_nothing() -> None:
    hints = {
        "include": [],
        "extract": {"inputs": "$.examples[*].in", "first": "$.examples[0].in", "absent": "$.no", "kind": "$..type"},
    }

    assert apply_hints(TOOL, hints) == {"inputs": ["a", "c"], "first": "a", "kind": "object"}


@pytest.mark.req("RCR-13")
def test_a_literal_is_added_as_it_is() -> None:
    hints = {"include": ["name"], "literal": {"kind": "tool", "notes": ["{name}", {"a": None}], "gone": None}}

    assert apply_hints(TOOL, hints) == {
        "name": "openrouter",
        "kind": "tool",
        "notes": ["{name}", {"a": None}],
        "gone": None,
    }


@pytest.mark.req("RCR-13")
def test_all_transforms_can_be_given_in_full() -> None:
    hints = {
        "mode": "replace",
        "transform": {
            "line": {"type": "format", "format": "{name}: {description}"},
            "text": {"type": "template", "template": "{{upper name}}"},
            "inputs": {"type": "extract", "path": "$.examples[*].in"},
            "kind": {"type": "literal", "value": {"is": "tool"}},
        },
    }

    assert apply_hints(TOOL, hints) == {
        "line": "openrouter: Call models",
        "text": "OPENROUTER",
        "inputs": ["a", "c"],
        "kind": {"is": "tool"},
    }


def test_include_comes_before_exclude_and_transforms_last() -> None:
    hints = {
        "include": ["name", "limits", "code"],
        "exclude": ["code", "limits.memory_mb"],
        "transform": {
            "name": {"type": "format", "format": "<{name}>"},
            "size": {"type": "extract", "path": "$.limits.memory_mb"},
        },
    }

    assert apply_hints(TOOL, hints) == {"name": "<openrouter>", "limits": {}, "size": 64}


def test_a_name_that_meets_a_list_means_each_item() -> None:
    context = {"a": [{"b": 1, "c": 2}, {"c": 3}, 4, [{"b": 5, "c": 6}]], "d": {"b": 7}, "e": 8}

    assert apply_hints(context, {"exclude": ["a.b", "e.x"]}) == {
        "a": [{"c": 2}, {"c": 3}, 4, [{"c": 6}]],
        "d": {"b": 7},
        "e": 8,
    }
    assert apply_hints(context, {"include": ["a.b", "e.x"]}) == {"a": [{"b": 1}, {}, [{"b": 5}]]}


def test_a_whole_field_covers_its_parts_in_any_order() -> None:
    context = {"a": {"b": 1, "c": 2}}

    for names in (["a", "a.b"], ["a.b", "a"]):
        assert apply_hints(context, {"include": names}) == context
        assert apply_hints(context, {"exclude": names}) == {}


def test_a_short_form_can_be_merged_when_asked() -> None:
    hints = {"mode": "merge", "include": ["name"], "format": "{description}"}

    assert apply_hints(TOOL, hints) == {"name": "openrouter", "content": "Call models"}


def test_the_title_of_the_record_yields_to_the_context() -> None:
    hints = {"format": "{title}"}

    assert apply_hints({}, hints, title="record") == {"content": "record"}
    assert apply_hints({"title": "context"}, hints, title="record") == {"content": "context"}
    assert "title" not in apply_hints({"a": 1}, {"literal": {"b": 2}}, title="record")


def test_without_hints_the_context_is_shown_as_it_is() -> None:
    assert apply_hints(TOOL, None) == apply_hints(TOOL, {}) == TOOL


@pytest.mark.req("RCR-14")
def test_hints_of_the_breadcrumb_come_before_those_of_its_schema() -> None:
    own, schema = {"exclude": ["a"]}, {"exclude": ["b"]}

    assert resolve_hints(own, schema) == own
    assert resolve_hints(None, schema) == schema
    assert resolve_hints({}, schema) == {}
    assert resolve_hints(None, None) is None


@pytest.mark.req("RCR-14")
def test_no_module_carries_hints_of_its_own() -> None:
    written_out = re.compile(r"""llm_hints["']?\s*[=:]\s*\{\s*["']""")
    sources = list(Path(clew.__file__).parent.rglob("*.py"))

    assert written_out.search('Draft(title="a", llm_hints={"exclude": ["b"]})')
    assert [path.name for path in sources if written_out.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("hints", "field"),
    [
        ({"inclued": []}, "llm_hints.inclued"),
        ({"include": "name"}, "llm_hints.include"),
        ({"include": [1]}, "llm_hints.include"),
        ({"exclude": {"a": 1}}, "llm_hints.exclude"),
        ({"exclude": [""]}, "llm_hints.exclude"),
        ({"exclude": ["a..b"]}, "llm_hints.exclude"),
        ({"exclude": [".".join("a" * 40)]}, "llm_hints.exclude"),
        ({"exclude": ["a"] * 1_001}, "llm_hints.exclude"),
        ({"mode": "replace"}, "llm_hints.mode"),
        ({"mode": "other", "format": "a"}, "llm_hints.mode"),
        ({"mode": ["merge"]}, "llm_hints.mode"),
        ({"format": 1}, "llm_hints.format"),
        ({"format": "{"}, "llm_hints.format"),
        ({"format": "a } b"}, "llm_hints.format"),
        ({"format": "{}"}, "llm_hints.format"),
        ({"format": "{a{b}}"}, "llm_hints.format"),
        ({"format": "{.a}"}, "llm_hints.format"),
        ({"format": "x" * 65_537}, "llm_hints.format"),
        ({"template": None}, "llm_hints.template"),
        ({"template": "{{#if a}}"}, "llm_hints.template"),
        ({"template": "x" * 65_537}, "llm_hints.template"),
        ({"format": "a", "template": "b"}, "llm_hints"),
        ({"extract": ["$.a"]}, "llm_hints.extract"),
        ({"extract": {"out": "a.b"}}, "llm_hints.extract.out"),
        ({"extract": {"out": 1}}, "llm_hints.extract.out"),
        ({"literal": 1}, "llm_hints.literal"),
        ({"literal": {"": 1}}, "llm_hints.literal."),
        ({"transform": []}, "llm_hints.transform"),
        ({"transform": {"a": "b"}}, "llm_hints.transform.a.type"),
        ({"transform": {"a": {}}}, "llm_hints.transform.a.type"),
        ({"transform": {"a": {"type": "jq", "query": "."}}}, "llm_hints.transform.a.type"),
        ({"transform": {"a": {"type": []}}}, "llm_hints.transform.a.type"),
        ({"transform": {"a": {"type": "format"}}}, "llm_hints.transform.a"),
        ({"transform": {"a": {"type": "format", "format": "x", "more": 1}}}, "llm_hints.transform.a"),
        ({"transform": {"a": {"type": "extract", "path": "$["}}}, "llm_hints.transform.a"),
        ({"transform": {"a": {"type": "template", "template": "{{"}}}, "llm_hints.transform.a"),
        ({"literal": {str(n): n for n in range(MAX_TRANSFORMS + 1)}}, "llm_hints.transform"),
        ({"literal": {"a": "x" * 300_000}}, "llm_hints"),
        ({"literal": {"a": object()}}, "llm_hints"),
        ([], "llm_hints"),
        ("exclude", "llm_hints"),
    ],
)
def test_bad_hints_are_refused_by_the_part_that_is_wrong(hints: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_hints(hints)

    assert caught.value.field == field


def test_a_bad_transform_is_a_template_error_where_text_is_rendered() -> None:
    for hints in ({"format": "{"}, {"template": "{{"}, {"transform": {"a": {"type": "format", "format": "}"}}}):
        with pytest.raises(TemplateError):
            check_hints(hints)


def test_good_hints_are_accepted() -> None:
    check_hints({})
    check_hints({"include": ["a.b"], "exclude": [], "mode": "merge", "transform": {}})
    check_hints({"literal": {str(n): n for n in range(MAX_TRANSFORMS)}})


@pytest.mark.parametrize(
    "text", ["{name.__class__}", "{__class__}", "{name.__init__.__globals__}", "{examples.__len__}", "{name!r}"]
)
def test_a_format_never_reaches_python_attributes(text: str) -> None:
    assert apply_hints(TOOL, {"format": text}) == {"content": ""}


def test_hostile_hints_together_stay_within_one_budget() -> None:
    loop = "{{#each l}}{{#each ../l}}{{/each}}{{/each}}"
    hints = {"transform": {str(n): {"type": "template", "template": loop} for n in range(MAX_TRANSFORMS)}}

    check_hints(hints)
    assert apply_hints({"l": [0] * 200}, {"transform": {"0": hints["transform"]["0"]}})["0"] == ""
    with pytest.raises(TemplateError, match=r"llm_hints\.transform\.\d+: takes too many steps"):
        apply_hints({"l": [0] * 200}, hints)


def test_output_is_bounded_over_all_transforms() -> None:
    hints = {"transform": {str(n): {"type": "format", "format": "{a}"} for n in range(3)}}

    assert len(apply_hints({"a": "x" * 300_000}, hints)) == 4
    with pytest.raises(TemplateError, match="too much text"):
        apply_hints({"a": "x" * 400_000}, hints)


def test_an_extract_over_its_limit_names_the_hint() -> None:
    with pytest.raises(InvalidInput, match=r"llm_hints\.extract\.all"):
        apply_hints({"a": [0] * 20_000}, {"extract": {"all": "$.a[*]"}})


def test_too_many_fields_are_too_large() -> None:
    with pytest.raises(TooLarge):
        check_hints({"include": [f"f{n}" for n in range(1_001)]})


NAMES = st.sampled_from(["a", "b", "a.b", "a.b.c", "c", "b.a"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=15,
)
CONTEXTS = st.dictionaries(st.sampled_from("abc"), VALUES)


@settings(deadline=None)
@given(CONTEXTS, st.lists(NAMES), st.lists(NAMES))
def test_the_context_is_never_changed(context: dict[str, Any], include: list[str], exclude: list[str]) -> None:
    before = copy.deepcopy(context)
    hints = {"include": include, "exclude": exclude, "extract": {"a": "$..b"}, "literal": {"b": 1}}

    view = apply_hints(context, hints)
    view["new"] = 1

    assert context == before


@settings(deadline=None)
@given(CONTEXTS, st.lists(NAMES))
def test_included_and_excluded_fields_do_not_overlap(context: dict[str, Any], names: list[str]) -> None:
    assert apply_hints(apply_hints(context, {"exclude": names}), {"include": [n for n in names if "." not in n]}) == {}


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_shown_by_a_format_with_doubled_braces(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")

    assert apply_hints({"a": 1}, {"format": doubled}) == {"content": text}
