"""A tool is made from a typed function, and is wrong at once or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import InvalidInput
from clew.tools import Effects, GuidedContent, Tool, ToolContext, ToolLimits, tool
from tests.tools.fraud import ME, some_tool

CONTEXT = ToolContext(by=ME)


@pytest.mark.req("ERN-02")
@pytest.mark.req("PLA-08")
async def test_a_function_gives_name_description_schema_and_call() -> None:
    @tool
    async def count_orders(city: str, ctx: ToolContext, limit: int = 5) -> str:
        """How many orders a city has."""
        return f"{city} {limit} {ctx.by.owner_id}"

    assert count_orders.name == "count-orders"
    assert count_orders.title == "Count orders"
    assert count_orders.description == "How many orders a city has."
    assert count_orders.searchable
    assert list(count_orders.schema["properties"]) == ["city", "limit"], "the context is no argument"
    arguments = count_orders.check({"city": "Riga"})
    assert await count_orders.call(arguments, CONTEXT) == GuidedContent(content="Riga 5 acme")


@pytest.mark.req("ERN-02")
def test_arguments_of_the_decorator_become_attributes_of_the_tool() -> None:
    made = some_tool(
        "deep/er",
        "Looks deeper.",
        title="Deeper",
        searchable=False,
        scopes=["b", "a"],
        limits=ToolLimits(seconds=1),
        effects=Effects(reads_only=True),
        examples=[{"a": 1}],
    )
    assert (made.name, made.title, made.description) == ("deep/er", "Deeper", "Looks deeper.")
    assert (made.searchable, sorted(made.scopes), made.limits.seconds) == (False, ["a", "b"], 1)
    assert made.effects.reads_only
    assert made.examples == ({"a": 1},)


async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
    return GuidedContent(content="done")


WHOLE: dict[str, Any] = {"name": "a", "description": "Does a.", "call": call, "check": dict, "schema": {}}


@pytest.mark.req("ERN-02")
@pytest.mark.parametrize("missing", list(WHOLE))
def test_a_definition_without_a_mandatory_field_is_refused(missing: str) -> None:
    with pytest.raises(TypeError, match=missing):
        Tool(**{key: value for key, value in WHOLE.items() if key != missing})


@pytest.mark.req("ERN-02")
def test_a_definition_without_the_optional_fields_loads() -> None:
    made = Tool(**WHOLE)
    assert (made.scopes, made.source, made.output_schema) == (frozenset(), "local", None)


@pytest.mark.req("PLA-07")
def test_a_tool_comes_from_local_mcp_or_skill_and_never_from_a2a() -> None:
    assert [Tool(**WHOLE, source=source).source for source in ("local", "mcp", "skill")] == ["local", "mcp", "skill"]
    with pytest.raises(InvalidInput, match="Sources are local, mcp, skill"):
        Tool(**WHOLE, source="a2a")  # type: ignore[arg-type]  # refused on purpose


@pytest.mark.req("ERN-01")
@pytest.mark.req("ERN-02")
@pytest.mark.parametrize(
    "name",
    ["", "hidden/a", "a b", "-a", "a//b", "/a", "a/", "a" * 101, "\u0430nalyst", "a\n", "../a", "a/../b", "a/.", "."],
)
def test_a_name_that_no_route_can_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Tool(**{**WHOLE, "name": name})
    assert refused.value.field == "name"


@pytest.mark.req("ERN-02")
@pytest.mark.parametrize("description", ["", " \n\t", "x" * 4_001])
def test_a_description_is_there_and_has_an_end(description: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Tool(**{**WHOLE, "description": description})
    assert refused.value.field == "description"


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"characters": 0}, {"at_once": 0}])
def test_limits_that_let_nothing_through_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        ToolLimits(**limits)  # type: ignore[arg-type]  # numbers of either kind


def test_a_function_that_is_not_async_or_says_nothing_is_refused() -> None:
    def plain() -> str:
        """Does a."""
        return ""

    async def silent() -> str:
        return ""

    with pytest.raises(
        InvalidInput, match=r"must be an async function\. Write `async def`, and run blocking code with .*to_thread"
    ):
        tool(plain)
    with pytest.raises(InvalidInput, match="description: of silent is empty"):
        tool(silent)


async def test_a_method_makes_a_tool_of_its_object() -> None:
    class Shop:
        async def open_hours(self, day: str) -> str:
            """When the shop is open."""
            return f"{day}: always"

    made = tool(Shop().open_hours)
    assert await made.call(made.check({"day": "Monday"}), CONTEXT) == GuidedContent(content="Monday: always")
