"""Routes: one address, one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.route import CatalogRoute, check_domain_name, join_path, parse_route
from clew.errors import InvalidInput
from clew.trail.model.tags import path_part

parts = st.from_regex(r"[A-Za-z0-9._~%@+-]{1,20}", fullmatch=True).filter(lambda part: part not in (".", ".."))
routes = st.builds(
    CatalogRoute,
    st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True),
    st.sampled_from(["tools", "resources"]),
    st.lists(parts, min_size=1, max_size=5).map("/".join),
)


@pytest.mark.req("ERN-01")
def test_a_hidden_route_is_parsed_into_its_three_parts_and_back() -> None:
    route = parse_route("warehouse://tools/hidden/query")
    assert (route.domain, route.kind, route.path) == ("warehouse", "tools", "hidden/query")
    assert route.is_hidden
    assert str(route) == "warehouse://tools/hidden/query"


@pytest.mark.req("ERN-01")
@given(routes)
def test_every_route_reads_back_as_it_was_written(route: CatalogRoute) -> None:
    assert parse_route(str(route)) == route


@pytest.mark.req("ERN-01")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "warehouse",
        "warehouse://",
        "warehouse://tools",
        "warehouse://tools/",
        "warehouse://tools//query",
        "warehouse://tools/query/",
        "warehouse:/tools/query",
        "warehouse://prompts/query",
        "Warehouse://tools/query",
        "1warehouse://tools/query",
        "warehouse://tools/a b",
        "warehouse://tools/query\n",
        " warehouse://tools/query",
        "warehouse://tools/../secrets",
        "warehouse://tools/./query",
        "warehouse://tools/a?b=c",
        "warehouse://tools/a#b",
        "warehouse://tools/`a`",
        "://tools/query",
        f"{'d' * 64}://tools/query",
        f"warehouse://tools/{'a' * 1_000}",
        "warehouse://tools/query\x00",
    ],
)
def test_an_invalid_route_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_route(text)
    assert refused.value.field == "route"
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.req("ERN-01")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("w\u0430rehouse://tools/query", "U+0430"),
        ("warehouse\uff1a//tools/query", "U+FF1A"),
        ("warehouse:\u2215/tools/query", "U+2215"),
        ("warehouse://tools/que\u200bry", "U+200B"),
        ("warehouse://tools/\u202eyreuq", "U+202E"),
        ("warehouse://tools/hidden\u2044query", "U+2044"),
    ],
)
def test_a_look_alike_is_refused_by_naming_the_odd_character(text: str, named: str) -> None:
    with pytest.raises(InvalidInput, match="plain ASCII") as refused:
        parse_route(text)
    assert named in str(refused.value)
    assert str(refused.value).isascii() or text[text.index(next(c for c in text if not c.isascii()))].isprintable()


@given(st.text(max_size=60))
def test_any_name_becomes_one_valid_part_of_a_path(name: str) -> None:
    part = path_part(name)
    assert "/" not in part
    assert parse_route(f"docs://resources/{part}").path == part


@pytest.mark.parametrize("name", [".", "..", "...", "", "   ", "/", "../../etc/passwd", "\ud800", "ключ", "a/b"])
def test_odd_names_become_parts_that_cannot_climb(name: str) -> None:
    route = parse_route(f"docs://resources/top/{path_part(name)}/end")
    assert len(route.path.split("/")) == 3


@given(st.text(max_size=20), st.text(max_size=20))
def test_two_names_share_a_part_only_when_they_differ_in_outer_space(one: str, other: str) -> None:
    if one.strip() and other.strip() and one.strip() != other.strip():
        assert path_part(one) != path_part(other)


def test_paths_are_joined_without_empty_parts() -> None:
    assert join_path("/docs/", "", "/", "guide/one") == "docs/guide/one"
    assert join_path() == ""


@pytest.mark.req("ERN-01")
@pytest.mark.parametrize("name", ["", "Data", "1st", "a_b", "a.b", "a" * 64, "дом", "a\n", "-a"])
def test_a_domain_name_is_lower_case_letters_digits_and_dashes(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_domain_name(name)
    assert check_domain_name("a1-b") == "a1-b"
