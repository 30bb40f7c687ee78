"""Limits, canonical JSON and checksums: every interface and every backend refuses invalid input in the same words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import (
    MAX_CONTEXT,
    MAX_DEPTH,
    MAX_SCOPES,
    MAX_TAG,
    MAX_TAGS,
    MAX_TITLE,
    NEVER,
    Change,
    Draft,
    Ttl,
    check_context,
    check_id,
    check_key,
    check_schema_name,
    check_scopes,
    check_tags,
    check_title,
    check_ttl,
    checksum_of,
    encode_canonical,
    session_of,
)

HALF = "\ud83d"


def short(value: object) -> str:
    """A test's name for a value."""
    return ascii(value)[:40]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "title", ["x", "x" * MAX_TITLE, "🧵" * MAX_TITLE, "tab\tinside", " padded ", "שלום"], ids=short
)
def test_a_title_within_its_limits_is_kept_as_it_is(title: str) -> None:
    assert check_title(title) == title


@pytest.mark.parametrize("title", ["", " ", "\n\t", "a\x00", HALF, "x" * (MAX_TITLE + 1)], ids=short)
def test_a_title_beyond_its_limits_is_refused(title: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_title(title)
    assert caught.value.field == "title"


def test_a_limit_is_named_with_size_and_bound() -> None:
    with pytest.raises(TooLarge) as caught:
        check_title("x" * 3_000)
    assert (caught.value.size, caught.value.limit) == (3_000, MAX_TITLE)
    assert str(caught.value) == "title: 3,000 characters is over the limit of 2,000"


def test_tags_lose_repeats_and_keep_their_order() -> None:
    assert check_tags(["b", "a", "b", "A"]) == ("b", "a", "A")
    assert check_tags([]) == ()
    assert len(check_tags([f"t{number}" for number in range(MAX_TAGS)])) == MAX_TAGS


@pytest.mark.parametrize(
    "tag", ["a", "two words", "namespace:id", "x" * MAX_TAG, "🧵", "a:b:c", "%_*", "日本"], ids=short
)
def test_a_tag_may_be_any_printable_text(tag: str) -> None:
    assert check_tags([tag]) == (tag,)


@pytest.mark.parametrize(
    "tag", ["", " ", " a", "a ", "a  b", "a\tb", "a\nb", "\x00", "\x7f", HALF, "x" * (MAX_TAG + 1), 7], ids=short
)
def test_a_tag_that_cannot_be_kept_is_refused_by_its_place(tag: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_tags(["fine", tag])
    assert caught.value.field == "tags[1]"


def test_too_many_tags_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(TooLarge):
        check_tags(["x"] * 100_000)
    with pytest.raises(InvalidInput):
        check_tags("not a list")


def test_scopes_are_a_sorted_set() -> None:
    assert check_scopes(["b", "a", "b"]) == ("a", "b")
    for scopes in (["a b"], [""], ["x" * 201], [HALF], [7], "text", ["s"] * (MAX_SCOPES + 1)):
        with pytest.raises(InvalidInput):
            check_scopes(scopes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["note.v1", "a", "A_b-c.d:e", "x" * 200, None], ids=short)
def test_a_schema_name_that_is_accepted(name: str | None) -> None:
    assert check_schema_name(name) == name


@pytest.mark.parametrize("name", ["", ".a", "a b", "é", "x" * 201, "a\n", "a\x00", HALF], ids=short)
def test_a_schema_name_that_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_schema_name(name)


@pytest.mark.parametrize(
    "id", ["", "x", "0198C0DE-0000-7000-8000-000000000000", "0198c0de-0000-7000-8000-000000000000\n"]
)
def test_an_id_must_be_a_lower_case_uuid(id: str) -> None:
    with pytest.raises(InvalidInput):
        check_id(id)
    assert check_id("0198c0de-0000-7000-8000-000000000000")


@pytest.mark.parametrize("key", ["", "a\nb", "\x00", HALF, "k" * 301], ids=short)
def test_a_key_must_be_printable(key: str) -> None:
    with pytest.raises(InvalidInput):
        check_key(key)
    assert check_key("k" * 300) == "k" * 300
    assert check_key(None) is None


# -- context ----------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=5))
def test_canonical_json_comes_back_equal_and_does_not_depend_on_the_order_of_keys(context: dict[str, Any]) -> None:
    encoded = check_context(context)
    assert msgspec.json.decode(encoded) == context
    assert check_context(dict(reversed(context.items()))) == encoded
    assert encode_canonical(msgspec.json.decode(encoded), "context") == encoded


@pytest.mark.parametrize(
    "context",
    [{"a": HALF}, {HALF: 1}, {"a": [{"b": HALF}]}, {1: 2}, {None: 1}, {"a": {1: 2}}, {"a": object()}, [], "x", None],
    ids=lambda context: type(context).__name__,
)
def test_values_that_json_cannot_represent_are_refused(context: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_context(context)
    assert caught.value.field == "context"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    with pytest.raises(InvalidInput):
        encode_canonical({"a": [number]}, "context")


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", NOON, Ttl()], ids=["set", "bytes", "datetime", "struct"])
def test_foreign_objects_are_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        encode_canonical({"a": value}, "context")


def nested(levels: int, kind: type) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if kind is dict else [value]
    return value


@pytest.mark.parametrize("kind", [dict, list])
def test_depth_is_bounded_without_recursion(kind: type) -> None:
    assert check_context({"a": nested(MAX_DEPTH - 1, kind)})
    for levels in (MAX_DEPTH, 500, 100_000):
        with pytest.raises(InvalidInput):
            check_context({"a": nested(levels, kind)})


def test_many_brackets_on_one_level_are_not_deep() -> None:
    assert check_context({"a": [[]] * 10_000, "text": "{[" * 1_000})


def test_size_is_that_of_the_encoded_form() -> None:
    assert len(check_context({"a": "x" * (MAX_CONTEXT - 8)})) == MAX_CONTEXT
    for context in (
        {"a": "x" * (MAX_CONTEXT - 7)},
        {"a": "\x00" * (MAX_CONTEXT // 5)},
        {"a": "é" * (MAX_CONTEXT // 2)},
    ):
        with pytest.raises(TooLarge):
            check_context(context)


# -- checksums --------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-05")
def test_the_checksum_changes_with_each_part_and_with_where_parts_end() -> None:
    base: tuple[Any, ...] = ("title", b"{}", ("a", "b"), "s.v1", b"{}")
    contents = [
        base,
        ("titlf", *base[1:]),
        ("title", b"{ }", *base[2:]),
        ("title", b"{}", ("b", "a"), *base[3:]),
        ("title", b"{}", ("ab",), *base[3:]),
        ("title", b"{}", ("a",), *base[3:]),
        (*base[:3], "s.v2", b"{}"),
        (*base[:3], None, b"{}"),
        (*base[:4], None),
        (*base[:4], b'{"a":1}'),
        ("title{", b"}", *base[2:]),
    ]
    variants = [("id", *content, b"{}") for content in contents]
    variants += [
        ("ie", *base, b"{}"),
        ("id", *base, None),
        ("id", *base, b'{"a":1}'),
        ("i", "dtitle", *base[1:], b"{}"),
    ]
    assert len({checksum_of(*variant) for variant in variants}) == len(variants)
    assert checksum_of(*variants[0]) == checksum_of(*variants[0])


# -- TTL --------------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-10")
@pytest.mark.parametrize(
    "ttl",
    [
        NEVER,
        Ttl(kind="datetime", expires_at=NOON),
        Ttl(kind="usage", max_reads=1),
        Ttl(kind="usage", max_reads=1_000_000_000),
        Ttl(kind="hybrid", expires_at=NOON, max_reads=2),
    ],
)
def test_a_ttl_with_what_its_kind_needs_is_accepted(ttl: Ttl) -> None:
    assert check_ttl(ttl) == ttl


@pytest.mark.parametrize(
    "ttl",
    [
        Ttl(expires_at=NOON),
        Ttl(max_reads=1),
        Ttl(kind="datetime"),
        Ttl(kind="datetime", expires_at=NOON, max_reads=1),
        Ttl(kind="usage"),
        Ttl(kind="usage", expires_at=NOON, max_reads=1),
        Ttl(kind="hybrid", expires_at=NOON),
        Ttl(kind="hybrid", max_reads=1),
        Ttl(kind="usage", max_reads=0),
        Ttl(kind="usage", max_reads=-1),
        Ttl(kind="usage", max_reads=1_000_000_001),
        Ttl(kind="datetime", expires_at=datetime(2026, 1, 1)),
    ],
)
def test_a_ttl_that_does_not_fit_its_kind_is_refused(ttl: Ttl) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_ttl(ttl)
    assert caught.value.field.startswith("ttl.")


def test_a_ttl_is_kept_in_utc_and_counts_from_nothing() -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    kept = check_ttl(Ttl(kind="hybrid", expires_at=NOON.astimezone(there), max_reads=2, read_count=2))
    assert kept == Ttl(kind="hybrid", expires_at=NOON, max_reads=2)
    assert kept.expires_at is not None
    assert kept.expires_at.tzinfo is UTC


@pytest.mark.parametrize(("year", "hours"), [(9999, -12), (1, 12)])
def test_a_time_that_utc_cannot_say_is_refused(year: int, hours: int) -> None:
    edge = datetime(year, 12 if year > 1 else 1, 31 if year > 1 else 1, tzinfo=timezone(timedelta(hours=hours)))
    edge += timedelta(hours=23 if year > 1 else 0)
    with pytest.raises(InvalidInput):
        check_ttl(Ttl(kind="datetime", expires_at=edge))


# -- shapes -----------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-01")
@pytest.mark.parametrize(
    "body",
    [
        '{"title":"a"}',
        '{"context":{}}',
        '{"title":1,"context":{}}',
        '{"title":"a","context":[]}',
        '{"title":"a","context":{},"tags":"x"}',
        '{"title":"a","context":{},"nonsense":1}',
        '{"title":"a","context":{},"embed":"always"}',
        "[]",
        "null",
    ],
)
def test_a_draft_from_json_must_have_the_right_shape(body: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=Draft)


def test_a_change_from_json_tells_absent_from_null() -> None:
    change = msgspec.json.decode('{"schema_name":null}', type=Change)
    assert change.schema_name is None
    assert change.title is msgspec.UNSET
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode('{"title":null}', type=Change)


def test_the_session_is_the_first_session_tag() -> None:
    assert session_of(["a", "session:s1", "session:s2"]) == "s1"
    assert session_of(["session:"]) == ""
    assert session_of(["sessions:x", "a"]) is None
