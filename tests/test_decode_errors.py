"""Errors of decoders in plain words: the same sentences in every interface."""

from __future__ import annotations

import enum
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta

from clew.adapters.rest.parsing import body_decoder
from clew.cli.arguments.values import parse_json
from clew.decode_errors import MAX_REASON, in_plain_words, noun_of, suggest
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Draft


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    count: int
    size: Literal["small", "large"] = "small"
    colour: Colour = Colour.RED


class Outer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    inner: Inner
    tags: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    pair: tuple[int, int] = (1, 2)
    one: tuple[int] = (1,)
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    even: Annotated[int, Meta(multiple_of=2)] = 2
    code: Annotated[str, Meta(pattern="^[a-z]+$", max_length=1)] = "a"
    at: datetime | None = None
    zoned: Annotated[datetime, Meta(tz=True)] | None = None
    day: date | None = None
    lasts: timedelta | None = None
    id: UUID | None = None
    price: Decimal | None = None
    raw: bytes = b""
    table: dict[str, int] = {}
    anything: Any = None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"inner": {}}, "inner.count: is missing. It must be a whole number"),
        ({"inner": 5}, "inner: must be an object, not a whole number. Its fields are: count, size, colour"),
        (
            {"inner": {"count": 1, "conut": 2}},
            "inner.conut: is not a field here. Did you mean count? Fields are: count,",
        ),
        ({"inner": {"count": 1, "size": "larg"}}, "inner.size: 'larg' is not one of the choices. Did you mean large?"),
        ({"inner": {"count": 1, "colour": "pink"}}, "'pink' is not one of the choices. Choose one of: red, blue"),
        ({"inner": {"count": 1.5}}, "inner.count: must be a whole number, not a fraction"),
        ({"tags": ["a", 7]}, "tags[1]: must be text, not a whole number"),
        ({"tags": "a"}, "tags: must be a list, not text"),
        ({"tags": ["a"] * 3}, "tags: must have at most 2 entries"),
        ({"pair": [1, 2, 3]}, "pair: must have 2 entries"),
        ({"one": []}, "one: must have 1 entry"),
        ({"limit": 0}, "limit: must be at least 1"),
        ({"limit": 10**9}, "limit: must be at most 1,000,000"),
        ({"even": 3}, "even: must be a multiple of 2"),
        ({"code": "A"}, "code: must match the pattern '^[a-z]+$'"),
        ({"code": "ab"}, "code: must have at most 1 character"),
        ({"at": "noon"}, "at: is not a time. For example 2026-01-01T00:00:00Z"),
        ({"at": 5}, "at: must be a time or null, not a whole number. For example 2026-01-01T00:00:00Z"),
        ({"zoned": "2026-01-01T00:00:00"}, "zoned: must carry a time zone. For example 2026-01-01T00:00:00Z"),
        ({"day": "monday"}, "day: is not a date. For example 2026-01-01"),
        ({"lasts": "long"}, "lasts: is not a duration. For example PT1H30M"),
        ({"id": "x"}, "id: is not a UUID"),
        ({"price": "dear"}, "price: is not a decimal number"),
        ({"raw": "?"}, "raw: is not text in base64"),
        ({"table": {"a": "b"}}, "table[...]: must be a whole number, not text"),
        ({"zzz": 1}, "zzz: is not a field here. Fields are: inner, tags, pair"),
    ],
)
def test_an_error_names_the_value_the_problem_and_the_expectation(change: Any, told: str) -> None:
    error = complaint({"inner": {"count": 1}} | change, Outer)
    assert told in str(error)
    assert "`" not in str(error)


def complaint(value: Any, kind: Any, **options: Any) -> InvalidInput:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, kind)
    return in_plain_words(raised.value, kind, "body", **options)


def test_the_root_value_has_the_name_from_the_caller() -> None:
    assert str(complaint([], Inner)) == "body: must be an object, not a list. Its fields are: count, size, colour"
    assert str(complaint("x", dict[str, Any])) == "body: must be an object, not text"


def test_parts_have_the_names_of_the_input() -> None:
    class Nothing(msgspec.Struct, forbid_unknown_fields=True):
        pass

    told = complaint({"cuont": 1}, Inner, called="parameter")
    assert (told.field, told.reason) == ("cuont", "is not a parameter here")
    assert told.hint == "Did you mean count? Parameters are: count, size, colour"
    assert str(complaint({"a": 1}, Nothing, called="parameter")) == "a: is not a parameter here. There are none"


def test_long_values_are_shown_in_part() -> None:
    long = complaint({"count": 1, "size": "x" * 10_000}, Inner)
    unknown = complaint({"count": 1, "y" * 10_000: 1}, Inner)
    assert len(long.reason) <= MAX_REASON
    assert len(unknown.field) < 100


@pytest.mark.parametrize(
    ("kind", "noun"),
    [
        (int, "a whole number"),
        (float | None, "a number or null"),
        (bool, "true or false"),
        (tuple[str, ...], "a list of texts"),
        (list[int], "a list"),
        (dict[str, int], "an object"),
        (Inner, "an object"),
        (Literal["a", "b"], "a or b"),
        (Colour, "red or blue"),
        (Any, ""),
    ],
)
def test_a_type_has_a_noun(kind: Any, noun: str) -> None:
    assert noun_of(kind) == noun


def test_a_suggestion_names_the_nearest_and_all_choices() -> None:
    assert suggest("'limt'", ["tag", "limit"], "Parameters are") == "Did you mean limit? Parameters are: tag, limit"
    assert suggest("zzz", ["tag"], "Fields are") == "Fields are: tag"
    assert suggest("zzz", [], "Fields are") == ""


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'{"title": 7, "context": {}}',
        b'{"title": "t", "context": [1]}',
        b'{"title": "t", "context": {}, "tags": ["a", 1.5]}',
        b'{"title": "t", "context": {}, "tgas": []}',
        b'{"title": "t", "context": {}, "ttl": {"kind": "sometimes"}}',
        b'{"title": "t", "context": {}, "ttl": {"kind": "datetime", "expires_at": "noon"}}',
    ],
)
def test_the_same_mistake_has_the_same_message_in_cli_and_rest(body: bytes) -> None:
    with pytest.raises(InvalidInput) as by_rest:
        body_decoder(Draft)(body)
    with pytest.raises(InvalidInput) as by_line:
        parse_json(body, Draft, "standard input")
    assert (by_line.value.reason, by_line.value.hint) == (by_rest.value.reason, by_rest.value.hint)
    assert by_line.value.field in ("standard input", f"standard input, {by_rest.value.field}")
