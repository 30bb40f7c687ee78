"""The tools of an agent: only meta-tools and exposed tools, each looked up on access."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import ValidationError
from clew.skills.manifest import Toolset
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.diagnosis import Diagnostics, FilteredTool
from clew.skills.sessions.session import SessionState
from clew.skills.sessions.tool_mapping import ExposedTools, merge_tool_sets
from clew.tools.tool import Tool
from tests.skills.research_manifest import MANIFEST, TOOLS, make_tool, make_toolset

META = {"loadSkill": make_tool("load-skill", "ours")}
GOOGLE, BING, EXECUTE = make_tool("google"), make_tool("bing"), make_tool("execute")


def session(toolsets: tuple[str, ...] = (), tools: tuple[str, ...] = ()) -> SessionState:
    return SessionState(agent_name="researcher", loaded_toolsets=toolsets, exposed_domain_tools=tools)


def registered(**toolsets: list[Tool]) -> ToolRegistry:
    registry = ToolRegistry()
    for name, tools in toolsets.items():
        registry.register(name, tools)
    return registry


@pytest.mark.req("CAR-20")
@pytest.mark.parametrize("registry", [None, ToolRegistry(), registered(search=[GOOGLE])])
def test_without_loaded_toolsets_there_are_the_meta_tools_only(registry: ToolRegistry | None) -> None:
    merged = merge_tool_sets(META, session(), registry)
    assert dict(merged) == META
    assert merged["loadSkill"] is META["loadSkill"]
    assert dict(merge_tool_sets({}, session(("search",), ("google",)), None)) == {}


@pytest.mark.req("CAR-20")
def test_registered_tools_of_loaded_toolsets_are_added_and_missing_toolsets_ignored() -> None:
    registry = registered(search=[GOOGLE], analysis=[make_tool("analyze")], utils=[make_tool("format")])
    merged = merge_tool_sets(META, session(("search", "missing", "utils"), ("google", "format", "lost")), registry)
    assert list(merged) == ["loadSkill", "google", "format"]
    assert len(merged) == 3
    assert merged["google"] is GOOGLE
    assert merged["loadSkill"] is META["loadSkill"]
    assert "analyze" not in merged
    assert "lost" not in merged


@pytest.mark.req("CAR-20")
def test_a_tool_that_the_session_does_not_expose_is_not_added() -> None:
    merged = merge_tool_sets(META, session(("search",), ("google",)), registered(search=[GOOGLE, BING]))
    assert list(merged) == ["loadSkill", "google"]
    assert merged.get("bing") is None
    assert merged.get("search.bing") is None


@pytest.mark.req("CAR-20")
def test_a_domain_tool_wins_a_name_that_is_not_reserved_and_cannot_have_one_that_is() -> None:
    registry = registered(tools=[EXECUTE])
    merged = merge_tool_sets({"execute": make_tool("execute"), **META}, session(("tools",), ("execute",)), registry)
    assert list(merged) == ["execute", "loadSkill"]
    assert merged["execute"] is EXECUTE
    with pytest.raises(ValidationError, match="the name of a meta-tool"):
        registry.register("tools", {"loadSkill": EXECUTE})


@pytest.mark.req("CAR-20")
def test_a_thousand_toolsets_are_merged() -> None:
    registry = ToolRegistry()
    for at in range(1_000):
        registry.register(f"set{at}", [make_tool(f"tool{at}")])
    names = tuple(f"set{at}" for at in range(1_000))
    merged = merge_tool_sets(META, session(names, tuple(f"tool{at}" for at in range(1_000))), registry)
    assert len(merged) == 1_001


class Watched(dict[str, Toolset]):
    """Toolsets that record lookups."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: list[str] = []

    def __getitem__(self, name: str) -> Toolset:
        self.seen.append(name)
        return super().__getitem__(name)


@pytest.mark.req("CAR-24")
async def test_a_view_over_ten_thousand_tools_looks_only_at_what_is_exposed() -> None:
    ran: list[str] = []

    def provider(name: str, tools: tuple[str, ...]) -> Any:
        return lambda: ran.append(name) or [make_tool(each) for each in tools]

    toolsets = Watched()
    registry = ToolRegistry()
    for at in range(2_000):
        made = make_toolset(f"set{at}", *(f"tool{at}-{number}" for number in range(5)))
        dict.__setitem__(toolsets, made.name, made)
        registry.register_tool_provider(made.name, provider(made.name, made.tools))
    tools = ExposedTools({}, ("set7", "set1999"), toolsets, registry)
    assert (ran, toolsets.seen) == ([], []), "building it looks at nothing"
    assert tools["tool1999-4"].name == "tool1999-4", "a tool of the second toolset"
    assert ran == ["set1999"], "and no other toolset was made"
    assert toolsets.seen == ["set7", "set1999"]
    assert len(tools) == 10
    assert [name async for name, _ in tools.stream()] == list(tools)
    assert sorted(ran) == ["set1999", "set7"]
    assert "tool8-0" not in tools


@pytest.mark.req("CAR-24")
async def test_a_stream_looks_up_tools_one_by_one() -> None:
    ran: list[str] = []
    registry = ToolRegistry()
    for name in ("first", "second"):
        registry.register_tool_provider(name, lambda name=name: ran.append(name) or [make_tool(f"{name}-tool")])
    toolsets = {name: make_toolset(name, f"{name}-tool") for name in ("first", "second")}
    stream = ExposedTools({}, ("first", "second"), toolsets, registry).stream()
    name, found = await anext(stream)
    assert (name, found.name) == ("first-tool", "first-tool")
    assert ran == ["first"]
    assert [name async for name, _ in stream] == ["second-tool"]


@pytest.mark.req("CAR-23")
def test_one_name_in_two_loaded_toolsets_belongs_to_the_last_and_both_have_qualified_names() -> None:
    first, second = make_tool("execute", "first"), make_tool("execute", "second")
    registry = registered(search=[first], analysis=[second])
    toolsets = {"search": make_toolset("search", "execute"), "analysis": make_toolset("analysis", "execute")}
    both = ExposedTools({}, ("search", "analysis"), toolsets, registry)
    assert list(both) == ["execute"]
    assert both["execute"] is second
    assert both["search.execute"] is first
    assert both["analysis.execute"] is second
    one = ExposedTools({}, ("search",), toolsets, registry)
    assert one["execute"] is first
    with pytest.raises(KeyError, match=r"analysis\.execute"):
        one["analysis.execute"]


def test_without_code_in_the_last_toolset_the_previous_one_has_the_name() -> None:
    first = make_tool("execute", "first")
    toolsets = {"search": make_toolset("search", "execute"), "analysis": make_toolset("analysis", "execute")}
    tools = ExposedTools({}, ("search", "analysis"), toolsets, registered(search=[first]))
    assert tools["execute"] is first
    assert "analysis.execute" not in tools, "one toolset's tool is not another's"


def test_tools_of_the_call_take_precedence() -> None:
    mine, named = make_tool("execute", "mine"), make_tool("execute", "named")
    toolsets = {"search": make_toolset("search", "execute"), "analysis": make_toolset("analysis", "execute")}
    registry = registered(search=[make_tool("execute")])
    tools = ExposedTools({}, ("search", "analysis"), toolsets, registry, {"execute": mine, "analysis.execute": named})
    assert tools["search.execute"] is mine
    assert tools["analysis.execute"] is named
    assert tools["execute"] is named


def test_tools_of_no_toolset_of_the_manifest_serve_every_toolset_that_lists_them() -> None:
    registry = registered(runtime=[TOOLS["googleSearch"], TOOLS["plot"]], later=[make_tool("plot", "later")])
    tools = ExposedTools({}, ("search",), MANIFEST.toolsets, registry)
    assert list(tools) == ["googleSearch"]
    assert ExposedTools({}, ("vis",), MANIFEST.toolsets, registry)["plot"].description == "later"


@pytest.mark.req("CAR-22")
def test_the_diagnostics_cover_every_tool() -> None:
    registry = registered(search=[TOOLS["googleSearch"], make_tool("oddOne")], analysis=[TOOLS["analyzeData"]])
    provided = {"formatData": TOOLS["formatData"], "ops.deploy": make_tool("x"), "tables.readTable": make_tool("y")}
    tools = ExposedTools(META, ("search", "tables", "vis"), MANIFEST.toolsets, registry, provided)
    assert tools.diagnostics == Diagnostics(
        provided=("formatData", "ops.deploy", "tables.readTable", "googleSearch", "oddOne", "analyzeData"),
        exposed=("googleSearch", "bingSearch", "readTable", "plot"),
        included=("googleSearch", "readTable"),
        filtered=(
            FilteredTool(name="formatData", reason="toolset not loaded", toolsets=("analysis",)),
            FilteredTool(name="ops.deploy", reason="toolset not loaded", toolsets=("ops",)),
            FilteredTool(name="oddOne", reason="no toolset lists it"),
            FilteredTool(name="analyzeData", reason="toolset not loaded", toolsets=("analysis",)),
        ),
        missing=("bingSearch", "plot"),
        unexpected=("oddOne",),
    )


@pytest.mark.req("CAR-22")
def test_a_tool_registered_in_another_toolset_is_reported() -> None:
    tools = ExposedTools({}, ("search",), MANIFEST.toolsets, registered(analysis=[TOOLS["googleSearch"]]))
    assert list(tools) == []
    (filtered,) = tools.diagnostics.filtered
    assert (filtered.name, filtered.toolsets) == ("googleSearch", ("search",))
    assert filtered.reason.startswith("registered in another toolset")
    assert tools.diagnostics.missing == ("googleSearch", "bingSearch")
