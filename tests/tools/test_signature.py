"""One signature gives the schema and the check, and the two agree."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InvalidInput
from clew.tools import ToolContext
from clew.tools.signature import Params, read_signature

if TYPE_CHECKING:
    from decimal import Decimal


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Place(msgspec.Struct):
    city: str
    floor: int = 0


@dataclass
class Order:
    id: int
    places: list[Place]
    note: str | None = None


async def everything(
    query: str,
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="how many rows")] = 10,
    mode: Literal["fast", "slow"] = "fast",
    side: Side = Side.BUY,
    since: date | None = None,
    order: Order | None = None,
    tags: list[str] = [],  # noqa: B006  # a default as people write it
    share: float = 0.5,
) -> str:
    """Takes one of each.

    Args:
        query: what to look for
        mode: whether it may take long
    """
    return query


def read(function: Callable[..., Any]) -> Params:
    return read_signature(function, ToolContext)


@pytest.mark.req("PLA-08")
def test_the_schema_says_types_defaults_limits_choices_and_descriptions() -> None:
    schema = read(everything).schema
    properties = schema["properties"]
    assert (schema["type"], schema["required"]) == ("object", ["query"])
    assert schema["additionalProperties"] is False
    assert "title" not in schema
    assert properties["query"] == {"type": "string", "description": "what to look for"}
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "description": "how many rows",
        "default": 10,
    }
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert properties["mode"]["description"] == "whether it may take long"
    assert properties["since"]["default"] is None
    assert properties["side"]["default"] == "buy"
    assert properties["tags"]["default"] == []
    assert set(schema["$defs"]) == {"Order", "Place", "Side"}
    assert jsonschema_rs.meta.is_valid(schema)


@pytest.mark.req("PLA-08")
def test_the_check_gives_what_the_function_takes() -> None:
    found = read(everything).check(
        {
            "query": "q",
            "side": "sell",
            "since": "2026-02-03",
            "order": {"id": 1, "places": [{"city": "Riga"}]},
            "share": 1,
        }
    )
    assert found["side"] is Side.SELL
    assert found["since"] == date(2026, 2, 3)
    assert found["order"] == Order(id=1, places=[Place(city="Riga")])
    assert (found["limit"], found["tags"], found["share"]) == (10, [], 1)


def test_a_default_that_is_a_list_is_a_new_one_in_every_call() -> None:
    async def gather(words: list[str] = ["a"], more: dict[str, int] = {}) -> str:  # noqa: B006  # as people write it
        """Gathers."""
        return ""

    check = read(gather).check
    check({})["words"].append("b")
    check({})["more"]["b"] = 1
    assert check({}) == {"words": ["a"], "more": {}}


@pytest.mark.req("PLA-08")
@pytest.mark.parametrize(
    ("arguments", "field", "said"),
    [
        ({}, "query", "is missing"),
        ({"query": 5}, "query", "must be text, not a whole number"),
        ({"query": "q", "limit": "10"}, "limit", "must be a whole number, not text"),
        ({"query": "q", "limit": 0}, "limit", "at least 1"),
        ({"query": "q", "mode": "medium"}, "mode", "medium"),
        ({"query": "q", "side": "hold"}, "side", "hold"),
        ({"query": "q", "since": "yesterday"}, "since", "is not a date"),
        ({"query": "q", "order": {"id": 1, "places": [{"floor": 1}]}}, "order.places[0].city", "is missing"),
        ({"query": "q", "nothing": 1}, "nothing", "Parameters are: query, limit"),
        ({"query": "q", "self": 1}, "self", "is not a parameter"),
        ([], "params", "must be an object, not a list"),
    ],
)
def test_wrong_arguments_are_refused_by_place_and_reason(arguments: Any, field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(everything).check(arguments)
    assert refused.value.field == field
    assert said in str(refused.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
near = st.fixed_dictionaries(
    {"query": st.text(max_size=5) | values},
    optional={
        "limit": st.integers(-5, 105) | values,
        "mode": st.sampled_from(["fast", "slow", "medium"]) | values,
        "side": st.sampled_from(["buy", "sell", "hold"]) | values,
        "order": st.fixed_dictionaries({"id": st.integers()}, optional={"places": values, "note": values}) | values,
        "tags": st.lists(st.text(max_size=3) | values, max_size=3) | values,
        "share": st.floats(allow_nan=False, allow_infinity=False) | values,
        "other": values,
    },
)


EVERYTHING = read(everything)
EVERYTHING_SCHEMA = jsonschema_rs.Draft202012Validator(EVERYTHING.schema)


@pytest.mark.req("PLA-08")
@given(near)
def test_the_schema_and_the_check_accept_the_same_arguments(arguments: dict[str, Any]) -> None:
    allowed = EVERYTHING_SCHEMA.is_valid(arguments)
    try:
        EVERYTHING.check(arguments)
    except InvalidInput:
        # JSON Schema takes 1.0 for an integer, and dates as any text
        assert not allowed or holds_whole_float(arguments)
    else:
        assert allowed


def holds_whole_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(holds_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(holds_whole_float, value))
    return isinstance(value, float) and value.is_integer()


def test_a_signature_without_a_schema_is_refused_when_the_tool_is_made() -> None:
    async def many(*words: str) -> None: ...
    async def more(**words: str) -> None: ...
    async def placed(word: str, /) -> None: ...
    async def untyped(word) -> None: ...  # type: ignore[no-untyped-def]  # a parameter without a type on purpose
    async def odd(word: Callable[[], None]) -> None: ...
    async def unknown(price: Decimal) -> None: ...

    refused_at: list[tuple[Callable[..., Any], str]] = [
        (many, "many.words"),
        (more, "more.words"),
        (placed, "placed.word"),
        (untyped, "untyped.word"),
        (odd, "odd"),
        (unknown, "unknown"),
    ]
    for function, field in refused_at:
        with pytest.raises(InvalidInput) as refused:
            read(function)
        assert refused.value.field == field


def test_a_function_without_parameters_takes_none() -> None:
    async def nothing(ctx: ToolContext) -> None: ...

    params = read(nothing)
    assert params.schema["properties"] == {}
    assert params.context == "ctx"
    assert params.check({}) == {}
    with pytest.raises(InvalidInput, match="There are none"):
        params.check({"a": 1})
