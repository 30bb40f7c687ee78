"""Tools in the formats of other programs: each is valid there, and every name can be decoded."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool as McpTool

from clew.clock import ManualClock
from clew.errors import ValidationError
from clew.skills.export import MAX_OPENAI_DESCRIPTION, SHAPES, Shape, export_tools, written_name
from clew.skills.exposure_store import MemoryExposures
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.tools.tool import Effects, Tool, tool
from tests.skills.research_manifest import MANIFEST, ME, TOOLS, make_tool

NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
PARAMETERS = {
    "type": "object",
    "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
    "required": ["type", "properties"],
}
SCHEMAS: dict[Shape, dict[str, Any]] = {
    "neutral": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "string", "minLength": 1},
            "inputSchema": PARAMETERS,
            "outputSchema": {"type": "object"},
            "examples": {"type": "array", "minItems": 1},
        },
        "required": ["name", "description", "inputSchema"],
        "additionalProperties": False,
    },
    "openai": {
        "type": "object",
        "properties": {
            "type": {"const": "function"},
            "function": {
                "type": "object",
                "properties": {
                    "name": NAME,
                    "description": {"type": "string", "maxLength": 1024},
                    "parameters": PARAMETERS,
                    "strict": {"type": "boolean"},
                },
                "required": ["name", "description", "parameters"],
                "additionalProperties": False,
            },
        },
        "required": ["type", "function"],
        "additionalProperties": False,
    },
    "anthropic": {
        "type": "object",
        "properties": {"name": NAME, "description": {"type": "string", "minLength": 1}, "input_schema": PARAMETERS},
        "required": ["name", "description", "input_schema"],
        "additionalProperties": False,
    },
    "mcp": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"},
            "title": {"type": "string"},
            "description": {"type": "string"},
            "inputSchema": PARAMETERS,
            "outputSchema": {"type": "object"},
            "annotations": {
                "type": "object",
                "properties": {
                    f"{hint}Hint": {"type": "boolean"}
                    for hint in ("readOnly", "destructive", "idempotent", "openWorld")
                },
                "additionalProperties": False,
            },
        },
        "required": ["name", "inputSchema"],
        "additionalProperties": False,
    },
}


@tool(name="orders/find.all", examples=[{"query": "x"}], effects=Effects(reads_only=True, destroys=False))
async def find_orders(query: str, limit: int = 10) -> str:
    """Find orders.

    Args:
        limit: how many
    """
    return query * limit


ODD = {
    "orders/find.all": find_orders,
    "search.execute": make_tool("execute"),
    "x" * 100: make_tool("x" * 100),
    "long": make_tool("long", "d" * 4_000),
    "plain": make_tool("plain"),
}


def names_in(exported: list[dict[str, Any]]) -> list[str]:
    return [each.get("function", each)["name"] for each in exported]


@pytest.mark.req("CAR-21")
@pytest.mark.req("O13")
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_tools_of_an_agent_are_valid_in_every_format(shape: Shape, clock: ManualClock) -> None:
    registry = ToolRegistry()
    registry.register("search", [TOOLS["googleSearch"], TOOLS["bingSearch"]])
    session = AgentSession(MANIFEST, registry, MemoryExposures(clock), by=ME, agent="researcher", clock=clock)
    exported = export_tools(await session.get_tools(), shape)
    assert exported.shape == shape
    for each in exported.tools:
        jsonschema.validate(each, SCHEMAS[shape])
    assert names_in(exported.tools) == [*META_TOOLS, "googleSearch", "bingSearch"]


@pytest.mark.req("CAR-21")
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_names_and_long_texts_are_valid_and_can_be_decoded(shape: Shape) -> None:
    exported = export_tools(ODD, shape)
    for each in exported.tools:
        jsonschema.validate(each, SCHEMAS[shape])
    assert [exported.name_of(name) for name in names_in(exported.tools)] == list(ODD)
    assert exported.names == {written_name(name, shape): name for name in ODD}
    assert "plain" in exported.names
    with pytest.raises(ValidationError, match="unknown tool 'nope'") as caught:
        exported.name_of("nope")
    assert caught.value.context == {"toolName": "nope"}


@pytest.mark.req("CAR-21")
def test_the_schema_and_the_description_are_those_of_the_tool() -> None:
    given = {"orders/find.all": find_orders}
    (neutral,), (openai,), (anthropic,), (mcp,) = (export_tools(given, shape).tools for shape in SHAPES)
    schema = neutral["inputSchema"]
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10, "description": "how many"}
    assert schema["required"] == ["query"]
    assert schema == openai["function"]["parameters"] == anthropic["input_schema"] == mcp["inputSchema"]
    assert neutral["name"] == "orders/find.all"
    assert neutral["examples"] == [{"query": "x"}]
    assert openai["type"] == "function"
    assert anthropic["description"] == openai["function"]["description"] == find_orders.description
    assert mcp["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert mcp["title"] == neutral["title"] == "Find orders"


def test_the_shape_of_mcp_is_read_by_its_own_types() -> None:
    for each in export_tools(ODD, "mcp").tools:
        read = McpTool.model_validate(each)
        assert (read.name, read.input_schema) == (each["name"], each["inputSchema"])


def test_a_description_is_cut_only_where_it_must_be() -> None:
    for length in (MAX_OPENAI_DESCRIPTION, MAX_OPENAI_DESCRIPTION + 1):
        made = {"a": make_tool("a", "d" * length)}
        shown = export_tools(made, "openai").tools[0]["function"]["description"]
        assert len(shown) == MAX_OPENAI_DESCRIPTION
        assert shown.endswith("…") == (length > MAX_OPENAI_DESCRIPTION)
        assert export_tools(made, "anthropic").tools[0]["description"] == "d" * length


def test_a_tool_without_parameters_and_one_with_an_answer_of_its_own_shape() -> None:
    bare = Tool(
        name="a", description="A", call=find_orders.call, check=dict, schema={}, output_schema={"type": "object"}
    )
    (mcp,) = export_tools({"a": bare}, "mcp").tools
    assert mcp["inputSchema"] == {"type": "object", "properties": {}}
    assert mcp["outputSchema"] == {"type": "object"}
    assert "title" not in mcp
    assert export_tools({"a": bare}).tools[0]["outputSchema"] == {"type": "object"}


@pytest.mark.req("CAR-31")
def test_a_shape_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="unknown shape 'yaml'") as caught:
        export_tools({}, "yaml")  # type: ignore[arg-type]
    assert caught.value.allowed == SHAPES


def test_names_at_the_limits_of_a_shape_stay_as_they_are() -> None:
    assert written_name("x" * 64, "openai") == "x" * 64
    assert written_name("x" * 128, "mcp") == "x" * 128
    assert written_name("a.b", "mcp") == "a.b"
    assert written_name("a/b", "neutral") == "a/b"
    for name, shape, limit in (("x" * 65, "anthropic", 64), ("x" * 129, "mcp", 128)):
        written = written_name(name, shape)  # type: ignore[arg-type]
        assert len(written) == limit
        assert written.startswith("x" * (limit - 14))
    taken = written_name("a/b", "openai")
    assert taken.startswith("a_b__")
    assert written_name(taken, "openai") != taken, "a tool cannot take the written name of another"


@given(names=st.lists(st.text(max_size=140), max_size=8, unique=True), shape=st.sampled_from(SHAPES[1:]))
def test_encoded_names_are_valid_and_distinct(names: list[str], shape: Shape) -> None:
    written = [written_name(name, shape) for name in names]
    assert len(set(written)) == len(names)
    for each in written:
        jsonschema.validate(each, SCHEMAS["mcp"]["properties"]["name"] if shape == "mcp" else NAME)
