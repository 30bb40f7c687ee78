"""All formats together: the choice of a format by type, and properties for any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats import ALL, Markdown, PlainText, find_format, types
from clew.catalog.formats.tree import MAX_BODY
from clew.errors import FormatError
from tests.catalog.formats.documents import check_tree, document

TYPES = [value for name, value in vars(types).items() if name.isupper()]
JSON_TYPES = [value for value in TYPES if value.endswith("+json")]

TEXTS = st.text() | st.lists(
    st.sampled_from(["# a", "## a", "a", "===", "---", "```", "~~~", "    x", "- b", "> c", "", "Ä", "...", "..", "\0"])
).map("\n".join)
KEYS = (
    r"number|title|body|user|commit|sha|message|table|columns|name|id|pages|cases|steps|tasks|cells|cell_type|source"
    r"|openapi|swagger|paths|get|parameters|\$ref|info|components"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex(KEYS, fullmatch=True) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)


@pytest.mark.req("ERN-18")
@pytest.mark.parametrize(
    ("content_type", "name"),
    [
        ("text/markdown", "markdown"),
        ("text/markdown; charset=utf-8", "markdown"),
        ("Text/Markdown", "markdown"),
        ("text/x-rst", "restructured-text"),
        ("text/x-source", "plain-text"),
        ("text/csv", "plain-text"),
        (types.NOTEBOOK, "notebook"),
        (types.OPENAPI, "openapi"),
        ("application/vnd.oai.openapi+json;version=3.1", "openapi"),
        (types.GITHUB_PR, "pull-request"),
        (types.GITHUB_COMMIT, "commit"),
        (types.GITHUB_ISSUE, "issue"),
        (types.TABLE_SCHEMA, "table-schema"),
        (types.QASE_SUITE, "qase-suite"),
        (types.QASE_CASE, "qase-suite"),
        (types.CLICKUP_DOC, "clickup-doc"),
        (types.CLICKUP_TASK, "clickup-doc"),
        (types.CLICKUP_LIST, "clickup-doc"),
    ],
)
def test_the_first_format_that_can_handle_a_type_is_taken(content_type: str, name: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    assert found.name == name


@pytest.mark.req("ERN-18")
def test_the_order_of_the_formats_decides() -> None:
    plain, markdown = PlainText(), Markdown()
    assert find_format("text/markdown", (plain, markdown)) is plain
    assert find_format("text/markdown", (markdown, plain)) is markdown


@pytest.mark.req("ERN-18")
@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", "", "text", "application/json"])
def test_no_format_is_found_for_what_none_can_handle(content_type: str) -> None:
    assert find_format(content_type, ALL) is None


def test_names_of_formats_are_distinct() -> None:
    assert len({each.name for each in ALL}) == len(ALL)


@pytest.mark.parametrize("content_type", TYPES)
def test_a_document_over_the_limit_is_refused_with_its_size(content_type: str) -> None:
    body = b" " * (MAX_BODY + 1)
    found = find_format(content_type, ALL)
    assert found is not None
    with pytest.raises(FormatError, match="16,000,001 bytes is over the limit of 16,000,000"):
        found.parse(document(body, content_type), "")


@pytest.mark.parametrize("content_type", JSON_TYPES)
@pytest.mark.parametrize("body", ["", "{", "nonsense", '{"a":' * 100_000, '{"a": "\\ud800"}', "\x00"])
def test_broken_json_is_refused_with_a_sentence_of_what_was_expected(content_type: str, body: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    with pytest.raises(FormatError, match=r"guide.md: is not JSON, which an? .+ has to be") as caught:
        found.parse(document(body, content_type), "")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content_type", JSON_TYPES)
@pytest.mark.parametrize("body", ["[]", "null", '"text"', "7", "{}"])
def test_json_of_another_shape_is_refused_with_a_sentence_of_what_was_expected(content_type: str, body: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    with pytest.raises(FormatError, match=r"guide.md: is not an? .+: ") as caught:
        found.parse(document(body, content_type), "")
    assert "\n" not in str(caught.value)


@given(st.sampled_from(TYPES), JSON)
def test_any_json_gives_a_sound_tree_or_a_format_error(content_type: str, body: object) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    try:
        roots = found.parse(document([body] if not isinstance(body, dict | list) else body, content_type), "base")
    except FormatError:
        return
    check_tree(roots)


@given(TEXTS, st.sampled_from(TYPES), st.text(min_size=1), st.sampled_from(["", "docs", "a/b"]))
def test_any_text_gives_a_sound_tree_or_a_format_error(text: str, content_type: str, id: str, base: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    body = text.encode("utf-8", "replace")
    try:
        roots = found.parse(document(body, content_type, id.encode("utf-8", "replace").decode()), base)
    except FormatError:
        assert not content_type.startswith("text/")
        return
    check_tree(roots)
    assert all(root.path.startswith(base) for root in roots)


@given(st.binary(), st.sampled_from(["text/markdown", "text/x-rst", "text/plain", "text/x-source"]))
def test_bytes_that_are_no_text_are_read_all_the_same(body: bytes, content_type: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    check_tree(found.parse(document(body, content_type), ""))


@pytest.mark.parametrize("content_type", TYPES)
def test_reading_twice_gives_the_same_nodes(content_type: str) -> None:
    found = find_format(content_type, ALL)
    assert found is not None
    body = {
        "number": 1, "title": "t", "sha": "ab", "commit": {"message": "m"}, "id": "1", "name": "n", "table": "t",
        "cells": [], "openapi": "3.0.0",
    }  # fmt: skip
    content = document(body, content_type)
    assert found.parse(content, "x") == found.parse(content, "x")
