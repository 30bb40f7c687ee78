from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import InvalidInput, TooLarge
from clew.trail.model.jsonpath import MAX_RESULTS, MAX_SEGMENTS, MAX_STEPS, counter, find_all, parse_path

SHOP = {
    "books": [{"name": "A", "price": 1, "by": {"name": "X"}}, {"name": "B", "price": 2}],
    "odd keys": {"it's": 1, 'a"b': 2, "": 3, "a.b": 4, "*": 5, "back\\slash": 6},
    "n": [0, 1, 2, 3, 4],
    "none": None,
}


@pytest.mark.req("RCR-13")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", [SHOP]),
        ("$.n", [[0, 1, 2, 3, 4]]),
        ("$.none", [None]),
        ("$.missing", []),
        ("$.n.name", []),
        ("$.books[0].name", ["A"]),
        ("$.books[-1].name", ["B"]),
        ("$.books[2]", []),
        ("$.books[-3]", []),
        ("$.books[*].name", ["A", "B"]),
        ("$['books'][*]['price']", [1, 2]),
        ('$["books"][ 0 ].price', [1]),
        ("$.books[0].by.*", ["X"]),
        ("$.n[1:3]", [1, 2]),
        ("$.n[:2]", [0, 1]),
        ("$.n[3:]", [3, 4]),
        ("$.n[-2:]", [3, 4]),
        ("$.n[:-3]", [0, 1]),
        ("$.n[:]", [0, 1, 2, 3, 4]),
        ("$.n[4:1]", []),
        ("$.n[100:200]", []),
        ("$..name", ["A", "X", "B"]),
        ("$..price", [1, 2]),
        ("$..[0]", [SHOP["books"][0], 0]),
        ("$.books..name", ["A", "X", "B"]),
        ("$..by..name", ["X"]),
        ("$['odd keys']['it\\'s']", [1]),
        ("$['odd keys'][\"it's\"]", [1]),
        ("$['odd keys']['a\"b']", [2]),
        ("$['odd keys']['']", [3]),
        ("$['odd keys']['a.b']", [4]),
        ("$['odd keys']['*']", [5]),
        ("$['odd keys']['back\\\\slash']", [6]),
    ],
)
def test_a_path_finds_its_values_in_document_order(path: str, expected: list[Any]) -> None:
    assert find_all(path, SHOP) == expected


@pytest.mark.parametrize("data", [None, 1, "text", [], {}, True])
def test_a_path_into_nothing_finds_nothing(data: Any) -> None:
    assert find_all("$.a", data) == find_all("$[0]", data) == find_all("$..a", data) == find_all("$.*", data) == []


def test_every_value_is_reached_by_a_deep_star() -> None:
    assert find_all("$..*", {"a": [1, {"b": 2}]}) == [[1, {"b": 2}], 1, {"b": 2}, 2]


@pytest.mark.parametrize(
    "path",
    ["", "a", "a.b", "$a", "$.", "$..", "$...a", "$[", "$[]", "$]", "$['a]", "$['a'", "$[a]", "$[1:2:3]", "$[--1]",
     "$[1 2]", "$[-]", "$[1.5]", "$[?(@.a)]", "$[(@.length-1)]", "$.a b", "$. a", "$.a.", "$.a..", "$[0", "$.['a']",
     "$[99999999999]", "$[٣]", "$['a','b']", "$$", " $", "$ "],
)  # fmt: skip
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        parse_path(path)


def test_attributes_are_not_keys() -> None:
    assert find_all("$.__class__", {}) == find_all("$.n.append", SHOP) == find_all("$..__len__", SHOP) == []


def test_a_path_that_is_too_long_is_refused() -> None:
    assert parse_path("$" + ".a" * MAX_SEGMENTS)
    for path in ("$" + ".a" * (MAX_SEGMENTS + 1), "$." + "a" * 2_000):
        with pytest.raises(TooLarge):
            parse_path(path)


def test_results_are_bounded() -> None:
    assert len(find_all("$.a[*]", {"a": [0] * MAX_RESULTS})) == MAX_RESULTS
    with pytest.raises(TooLarge, match="results"):
        find_all("$.a[*]", {"a": [0] * (MAX_RESULTS + 1)})


@pytest.mark.parametrize("path", ["$..*..*..*..*", "$..a", "$" + "..*" * MAX_SEGMENTS, "$" + "[*]" * 3 + "..z"])
def test_a_search_that_would_take_long_is_ended(path: str) -> None:
    wide: Any = [[[0] * 60] * 60] * 60
    with pytest.raises(TooLarge):
        find_all(path, wide)


def test_searches_that_share_a_counter_share_its_steps() -> None:
    count, wide = counter(), [0] * 9_000
    for _ in range(MAX_STEPS // 9_000):
        assert len(find_all("$[*]", wide, count)) == 9_000
    with pytest.raises(TooLarge, match="values visited"):
        find_all("$[*]", wide, count)


def test_a_value_that_contains_itself_is_ended() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(TooLarge):
        find_all("$..a", loop)


PIECES = st.sampled_from(["$", ".a", "..", "[0]", "[*]", "['a']", "[", "]", ":", "-1", "'", '"', "\\", "*", " ", "a"])


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=12).map(lambda text: "$" + text))
def test_any_path_gives_a_list_or_is_refused(path: str) -> None:
    try:
        found = find_all(path, {"a": [{"a": 1}, [2]], "": 0})
    except InvalidInput:
        return
    assert isinstance(found, list)
    assert path.startswith("$")


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.integers()), st.text())
def test_any_key_can_be_quoted(data: dict[str, int], key: str) -> None:
    data[key] = 7
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")

    if len(quoted) < 900:
        assert find_all(f"$['{quoted}']", data) == [7]
