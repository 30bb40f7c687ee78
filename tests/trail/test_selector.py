"""The selector: the meaning of each part, and the agreement of SQL and Python."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, TooLarge
from clew.trail import open_trail
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft
from clew.trail.model.globs import glob_matches
from clew.trail.model.selector import (
    EVERYTHING,
    ContextMatch,
    Selector,
    check_selector,
    matches,
    matches_envelope,
    split_path,
)
from clew.trail.store import Trail

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def crumb(**fields: Any) -> Breadcrumb:
    given = {
        "id": "x",
        "owner_id": "acme",
        "title": "T",
        "context": {},
        "tags": (),
        "schema_name": None,
        "version": 1,
        "scopes": (),
        "llm_hints": None,
        "ttl": NEVER,
        "entities": None,
        "entity_keywords": (),
        "checksum": "",
        "created_at": NOON,
        "updated_at": NOON,
        "created_by": None,
        "updated_by": None,
    }
    return Breadcrumb(**{**given, **fields})


def holds(op: str, value: Any, context: dict[str, Any], path: str = "a") -> bool:
    return matches(Selector(context_match=[ContextMatch(path=path, op=op, value=value)]), crumb(context=context))


# -- the four operators of RCR-23 -------------------------------------------------------------------------


@pytest.mark.req("RCR-23")
@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("any_tag", [True, False])
@pytest.mark.parametrize("all_tags", [True, False])
@pytest.mark.parametrize("context", [True, False])
def test_all_four_operators_must_hold(schema: bool, any_tag: bool, all_tags: bool, context: bool) -> None:
    selector = Selector(
        schema_name="tool.request.v1" if schema else "other.v1",
        any_tags=["p", "x"] if any_tag else ["p", "q"],
        all_tags=["x", "y"] if all_tags else ["x", "z"],
        context_match=[ContextMatch(path="tool", value="grep" if context else "sed")],
    )
    record = crumb(schema_name="tool.request.v1", tags=("x", "y"), context={"tool": "grep"})
    assert matches(selector, record) == (schema and any_tag and all_tags and context)


def test_an_empty_selector_means_everything() -> None:
    assert matches(EVERYTHING, crumb())
    assert matches(Selector(any_tags=[], all_tags=[], schema_names=[]), crumb())


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"schema_name": "a.v1"}, True),
        ({"schema_names": ["b.v1", "a.v1"]}, True),
        ({"except_schemas": ["b.v1"]}, True),
        ({"except_schemas": ["b.v1", "a.v1"]}, False),
        ({"schema_name": "b.v1", "schema_names": ["a.v1"]}, True),
        ({"schema_name": "A.v1"}, False),
        ({"any_tags": ["z", "x"]}, True),
        ({"any_tags": ["X"]}, False),
        ({"all_tags": ["x", "session:s1"]}, True),
        ({"all_tags": ["x", "z"]}, False),
        ({"tag_prefix": "session:"}, True),
        ({"tag_prefix": "session:s1"}, True),
        ({"tag_prefix": "session:s11"}, False),
        ({"session": "s1"}, True),
        ({"session": "s"}, False),
        ({"created_after": NOON - timedelta(seconds=1)}, True),
        ({"created_after": NOON}, False),
        ({"created_before": NOON + timedelta(microseconds=1)}, True),
        ({"created_before": NOON}, False),
    ],
)
def test_each_part_alone(parts: dict[str, Any], expected: bool) -> None:
    record = crumb(schema_name="a.v1", tags=("x", "session:s1"))
    assert matches(Selector(**parts), record) == expected
    if not parts.keys() & {"created_after", "created_before"}:
        assert matches_envelope(Selector(**parts), record.schema_name, record.tags) == expected


@pytest.mark.req("RCR-23")
@pytest.mark.parametrize(
    ("op", "value", "found", "expected"),
    [
        ("eq", "x", "x", True),
        ("eq", "x", "X", False),
        ("eq", 1, 1.0, True),
        ("eq", 1, True, False),
        ("eq", 0, False, False),
        ("eq", True, True, True),
        ("eq", None, None, True),
        ("eq", 1, "1", False),
        ("eq", [1, {"b": 2}], [1, {"b": 2}], True),
        ("ne", "x", "y", True),
        ("ne", "x", "x", False),
        ("ne", 1, True, True),
        ("in", ["x", "y"], "y", True),
        ("in", [], "y", False),
        ("in", [1], True, False),
        ("contains_any", ["a", "z"], ["a", "b"], True),
        ("contains_any", ["z"], ["a", "b"], False),
        ("contains_any", [], ["a"], False),
        ("contains_any", ["ell"], "hello", True),
        ("contains_any", [1], "hello 1", False),
        ("contains_all", ["a", "b"], ["a", "b", "c"], True),
        ("contains_all", ["a", "z"], ["a", "b"], False),
        ("contains_all", [], ["a"], True),
        ("contains_all", [1], [True], False),
        ("contains_any", ["a"], {"a": 1}, False),
        ("gt", 1, 2, True),
        ("gt", 2, 2, False),
        ("gte", 2, 2.0, True),
        ("lt", "b", "a", True),
        ("lt", 5, "4", False),
        ("lte", 1, True, False),
        ("exists", None, 0, True),
        ("exists", True, None, True),
        ("exists", False, 0, False),
    ],
)
def test_each_condition_on_a_value(op: str, value: Any, found: Any, expected: bool) -> None:
    assert holds(op, value, {"a": found}) == expected


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [("eq", None, False), ("ne", 1, True), ("in", [None], False), ("contains_all", [], False), ("lt", 5, False),
     ("exists", True, False), ("exists", None, False), ("exists", False, True)],
)  # fmt: skip
def test_a_missing_value_matches_only_ne_and_not_exists(op: str, value: Any, expected: bool) -> None:
    assert holds(op, value, {"b": 1}) == expected


@pytest.mark.parametrize(("value", "found"), [([1], [True]), ({"b": 0}, {"b": False}), ([[1]], [[True]])])
def test_true_is_not_1_at_any_depth(value: Any, found: Any) -> None:
    assert not holds("eq", value, {"a": found})


@pytest.mark.parametrize(
    ("path", "context"),
    [
        ("a", {"a": 1}),
        ("$.a", {"a": 1}),
        ("a.b.c", {"a": {"b": {"c": 1}}}),
        ("a.0", {"a": [1]}),
        ("a[1].b", {"a": [0, {"b": 1}]}),
        ("a.0", {"a": {"0": 1}}),
        ("ключ.键", {"ключ": {"键": 1}}),
        ("with-dash_and$sign", {"with-dash_and$sign": 1}),
        ("a'b", {"a'b": 1}),
    ],
)
def test_paths_lead_through_objects_and_lists(path: str, context: dict[str, Any]) -> None:
    assert holds("eq", 1, context, path)


@pytest.mark.parametrize(
    ("path", "context"), [("a.b", {"a": 1}), ("a.1", {"a": [1]}), ("a.x", {"a": [1]}), ("a.b", {"a.b": 1}), ("0", {})]
)
def test_paths_that_lead_nowhere_are_missing(path: str, context: dict[str, Any]) -> None:
    assert holds("exists", False, context, path)


def test_a_key_of_digits_is_taken_as_it_is_written() -> None:
    assert holds("eq", "Bond", {"007": "Bond"}, "007")


@pytest.mark.parametrize(
    "path",
    ["", ".", "a.", ".a", "a..b", "a b", 'a"b', "a\n", "x" * 201, "$", "$.", ".".join("a" * 33)],
    ids=lambda path: ascii(path)[:20],
)
def test_a_malformed_path_is_refused(path: str) -> None:
    if path == "$":
        assert split_path(path) == ("$",)
        return
    with pytest.raises(InvalidInput):
        split_path(path)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/a/b/c.py", True),
        ("src/**/*.py", "src/c.py", True),
        ("**", "any/thing", True),
        ("**/test_*.py", "test_a.py", True),
        ("a?.txt", "ab.txt", True),
        ("a?.txt", "a/.txt", False),
        ("a.txt", "aXtxt", False),
        ("[ab].txt", "a.txt", False),
        ("a", "a\n", False),
        ("a*", "a\nb", True),
        ("", "", True),
        ("*.py", "é.py", True),
    ],
)
def test_globs_stay_in_a_folder_unless_doubled(glob: str, path: str, expected: bool) -> None:
    assert glob_matches(glob, path) == expected
    assert matches(Selector(path=glob), crumb(context={"path": path})) == expected


@pytest.mark.parametrize("path", [None, 7, ["src/a.py"], {"a": 1}])
def test_a_glob_means_only_paths_that_are_text(path: Any) -> None:
    assert not matches(Selector(path="**"), crumb(context={"path": path}))
    assert not matches(Selector(path="**"), crumb(context={}))


@pytest.mark.parametrize("glob", ["*a" * 400 + "b", "**/" * 300 + "b", "**a" * 300 + "b", "*?" * 400, "**" * 400 + "b"])
def test_a_hostile_glob_is_answered_at_all(glob: str) -> None:
    """Trying one way after another would take longer than anybody waits."""
    assert not glob_matches(glob[:1_000] + "z", "a/" * 1_000)


def as_pattern(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression."""
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces) + r"\Z", re.S)


@given(
    glob=st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", ".", "é"]), max_size=7).map("".join),
    path=st.text("ab/.é\n", max_size=9),
)
def test_a_glob_means_what_its_regular_expression_does(glob: str, path: str) -> None:
    assert glob_matches(glob, path) == (as_pattern(glob).match(path) is not None)


@pytest.mark.parametrize(
    "selector",
    [
        Selector(any_tags=["x"] * 201),
        Selector(all_tags=["x"] * 201),
        Selector(schema_names=["x"] * 201),
        Selector(except_schemas=["x"] * 201),
        Selector(context_match=[ContextMatch(path="a")] * 201),
        Selector(created_after=datetime(2026, 1, 1)),
        Selector(tag_prefix=""),
        Selector(path="x" * 1_001),
        Selector(context_match=[ContextMatch(path="a", op="in", value="x")]),
        Selector(context_match=[ContextMatch(path="a", op="in", value=["x"] * 1_001)]),
        Selector(context_match=[ContextMatch(path="a", op="contains_all", value=[["x"]] * 5)]),
        Selector(context_match=[ContextMatch(path="a", op="eq", value=[float("nan")])]),
        Selector(context_match=[ContextMatch(path="a", op="eq", value=object())]),
        Selector(context_match=[ContextMatch(path="a", op="gte", value=float("-inf"))]),
        Selector(context_match=[ContextMatch(path="a", op="contains_any", value={"a": 1})]),
        Selector(context_match=[ContextMatch(path="a", op="gt", value=None)]),
        Selector(context_match=[ContextMatch(path="a", op="lt", value=True)]),
        Selector(context_match=[ContextMatch(path="a", op="exists", value=1)]),
        Selector(schema_name="a\x00b"),
        Selector(except_schemas=["a\x00b"]),
        Selector(all_tags=["a\x00b"]),
        Selector(tag_prefix="\x00"),
        Selector(session="\x00"),
    ],
)
def test_a_malformed_selector_is_refused(selector: Selector) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        check_selector(selector)


def test_a_list_at_its_limit_is_accepted() -> None:
    plain, nested = ["x"] * 996, [["x"], {"x": 1}] * 2
    check_selector(Selector(context_match=[ContextMatch(path="a", op="contains_any", value=[*plain, *nested])]))


def test_a_selector_survives_json() -> None:
    selector = Selector(any_tags=("a",), context_match=(ContextMatch(path="a.b", op="in", value=[1, "x"]),))
    again = msgspec.json.decode(msgspec.json.encode(selector), type=Selector)
    assert check_selector(again).context_match[0] == selector.context_match[0]
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"unknown": 1}', type=Selector)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"context_match": [{"path": "a", "op": "like"}]}', type=Selector)


# -- SQL and Python agree ---------------------------------------------------------------------------------

KEYS = ["a", "b", "0", "007", "path", "ключ", "a'b", "$x", "A"]
TAGS = [
    "x",
    "y",
    "X",
    "session:s1",
    "session:s2",
    "s%",
    "é",
    "z z",
    "\U0010fffd",
    "🧵",
    "x\U0010ffffz",
    "\ud7ffz",
    "\ue000",
]
SCHEMAS = ["a.v1", "b.v1", "A.v1"]
texts = st.sampled_from(["", "x", "X", "1", "1.0", "true", "null", "é", "e\u0301", "a\x00b", "a", "%", "🧵", '"', "\\"])
numbers = st.sampled_from([0, 1, -1, 1.0, 1.5, 2**53, 2**53 + 1, 2**63, -(2**63), 1e300, 0.1, -0.0])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
paths_of_files = st.sampled_from(["src/a.py", "src/b/c.py", "a", "", "é/ü.py"])
plain = st.dictionaries(st.sampled_from([key for key in KEYS if key != "path"]), values, max_size=4)
contexts = plain | st.builds(lambda context, path: {**context, "path": path}, plain, values | paths_of_files)
steps = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(".".join)


@st.composite
def conditions(draw: st.DrawFn) -> ContextMatch:
    op = draw(st.sampled_from(["eq", "ne", "contains_any", "contains_all", "in", "gt", "gte", "lt", "lte", "exists"]))
    if op in ("contains_any", "contains_all", "in"):
        value = draw(st.lists(values, max_size=3))
    elif op in ("gt", "gte", "lt", "lte"):
        value = draw(numbers | texts)
    else:
        value = draw(st.none() | st.booleans()) if op == "exists" else draw(values)
    return ContextMatch(path=draw(steps), op=op, value=value)


tag_lists = st.lists(st.sampled_from(TAGS), max_size=2)
selectors = st.builds(
    Selector,
    schema_name=st.none() | st.sampled_from(SCHEMAS),
    schema_names=st.lists(st.sampled_from(SCHEMAS), max_size=1),
    except_schemas=st.lists(st.sampled_from(SCHEMAS), max_size=1),
    any_tags=tag_lists,
    all_tags=tag_lists,
    tag_prefix=st.none()
    | st.sampled_from(["s", "session:", "x", "é", "z ", "\U0010fffd", "🧵", "x\U0010ffff", "\U0010ffff", "\ud7ff"]),
    session=st.none() | st.sampled_from(["s1", "s2", ""]),
    path=st.none() | st.sampled_from(["**", "src/*", "src/**/*.py", "?", "*"]),
    context_match=st.lists(conditions(), max_size=2),
)
moments = st.none() | st.integers(-1, 6).map(lambda seconds: timedelta(seconds=seconds))
asked_for = st.tuples(selectors, moments, moments)
_worlds = count()
records = st.tuples(st.none() | st.sampled_from(SCHEMAS), st.lists(st.sampled_from(TAGS), max_size=4), contexts)


@pytest.fixture
async def noon_trail() -> AsyncIterator[tuple[Trail, ManualClock]]:
    clock = ManualClock(NOON)
    trail = await open_trail("sqlite://:memory:", clock)
    yield trail, clock
    await trail.close()


async def selected(trail: Trail, by: Principal, selector: Selector) -> list[str]:
    page = await trail.records.list(selector, by=by, limit=1_000, oldest_first=True)
    return [item.id for item in page.items]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    given_records=st.lists(records, min_size=1, max_size=6),
    asked=st.lists(asked_for, min_size=1, max_size=6),
)
@example(
    given_records=[(None, [], {"a": 1}), (None, [], {"a": True}), (None, [], {"a": "1"}), (None, [], {"a": 1.0})],
    asked=[(Selector(context_match=[ContextMatch(path="a", value=1)]), None, None)],
)
@example(
    given_records=[(None, [], {"a": "a\x00b"}), (None, [], {"a": "a"})],
    asked=[(Selector(context_match=[ContextMatch(path="a", value=value)]), None, None) for value in ("a\x00b", "a")],
)
async def test_python_and_sql_mean_the_same_breadcrumbs(
    noon_trail: tuple[Trail, ManualClock],
    given_records: list[tuple[str | None, list[str], dict[str, Any]]],
    asked: list[tuple[Selector, timedelta | None, timedelta | None]],
) -> None:
    trail, clock = noon_trail
    start, by, written = clock.now(), Principal(owner_id=f"w{next(_worlds)}"), []
    for name, tags, context in given_records:
        draft = Draft(title="T", schema_name=name, tags=tags, context=context)
        written.append(await trail.records.create(draft, by=by))
        clock.advance(seconds=1)
    for selector, after, before in asked:
        selector = msgspec.structs.replace(
            selector,
            created_after=None if after is None else start + after,
            created_before=None if before is None else start + before,
        )
        expected = [item.id for item in written if matches(selector, item)]
        assert await selected(trail, by, selector) == expected


async def test_a_prefix_means_tags_that_go_on_with_the_last_character(
    noon_trail: tuple[Trail, ManualClock], me: Principal
) -> None:
    trail, _ = noon_trail
    made = await trail.records.create(Draft(title="T", context={}, tags=["a\U0010ffffb"]), by=me)
    assert matches(Selector(tag_prefix="a"), made)
    assert await selected(trail, me, Selector(tag_prefix="a")) == [made.id]


@pytest.mark.parametrize("path", [[], ["src/a.py"], {"a": 1}])
async def test_a_glob_means_only_paths_that_are_text_in_sql_too(
    noon_trail: tuple[Trail, ManualClock], me: Principal, path: Any
) -> None:
    trail, _ = noon_trail
    await trail.records.create(Draft(title="T", context={"path": path}), by=me)
    assert await selected(trail, me, Selector(path="**")) == []


async def test_a_key_with_a_backslash_means_the_same_in_sql(
    noon_trail: tuple[Trail, ManualClock], me: Principal
) -> None:
    trail, _ = noon_trail
    made = await trail.records.create(Draft(title="T", context={"a\\b": "x"}), by=me)
    selector = Selector(context_match=[ContextMatch(path="a\\b", value="x")])
    assert matches(selector, made)
    assert await selected(trail, me, selector) == [made.id]


async def test_a_bound_that_json_cannot_hold_is_refused_or_means_the_same_in_sql(
    noon_trail: tuple[Trail, ManualClock], me: Principal
) -> None:
    trail, _ = noon_trail
    made = await trail.records.create(Draft(title="T", context={"a": 1}), by=me)
    selector = Selector(context_match=[ContextMatch(path="a", op="lt", value=float("inf"))])
    try:
        found = await selected(trail, me, selector)
    except InvalidInput:
        return
    assert found == [made.id]
