"""The tool registry: merging, pending providers, conflicting names and reserved names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from clew.errors import BuildError, ClewError, ValidationError
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.tools.tool import Tool
from tests.skills.research_manifest import call, make_tool

FIRST, SECOND = make_tool("execute", "first"), make_tool("execute", "second")
GOOGLE, BING = make_tool("google"), make_tool("bing")


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


@pytest.mark.req("CAR-18")
def test_a_registry_without_tools_has_no_toolsets(registry: ToolRegistry) -> None:
    assert registry.list_toolsets() == []
    assert registry.get_tools("missing") is None
    assert registry.get_tools_for_toolsets(["missing"]) == {}
    assert registry.get_tools_for_toolsets([]) == {}
    assert registry.known == ()
    assert registry.clashes == ()


@pytest.mark.req("CAR-18")
def test_registered_tools_are_found(registry: ToolRegistry) -> None:
    registry.register("search-tools", {"google": GOOGLE})
    assert registry.get_tools("search-tools") == {"google": GOOGLE}
    registry.register("more", [BING])
    assert registry.get_tools("more") == {"bing": BING}
    assert registry.known == ("google", "bing")


@pytest.mark.req("CAR-18")
def test_a_second_registration_is_merged_and_its_tools_win(registry: ToolRegistry) -> None:
    registry.register("tools", {"execute": FIRST, "google": GOOGLE})
    registry.register("tools", {"execute": SECOND, "bing": BING})
    found = registry.get_tools("tools")
    assert found is not None
    assert list(found) == ["execute", "google", "bing"]
    assert found["execute"] is SECOND


@pytest.mark.req("CAR-18")
def test_returned_mappings_cannot_be_changed(registry: ToolRegistry) -> None:
    given = {"google": GOOGLE}
    registry.register("search", given)
    given["bing"] = BING
    found = registry.get_tools("search")
    assert found == {"google": GOOGLE}
    with pytest.raises(TypeError):
        found["bing"] = BING  # type: ignore[index]


@pytest.mark.req("CAR-18")
def test_an_empty_toolset_is_a_toolset(registry: ToolRegistry) -> None:
    registry.register("empty", {})
    assert registry.get_tools("empty") == {}
    assert registry.list_toolsets() == ["empty"]


@pytest.mark.req("CAR-18")
def test_tools_of_several_toolsets_are_merged_in_order(registry: ToolRegistry) -> None:
    registry.register("search", {"google": GOOGLE})
    registry.register("analysis", {"bing": BING})
    assert list(registry.get_tools_for_toolsets(["search", "analysis"])) == ["google", "bing"]
    assert list(registry.get_tools_for_toolsets(iter(["analysis", "search"]))) == ["bing", "google"]


@pytest.mark.req("CAR-18")
def test_unknown_and_repeated_toolsets_count_for_nothing(registry: ToolRegistry) -> None:
    registry.register("search", {"google": GOOGLE})
    assert registry.get_tools_for_toolsets(["search", "missing", "search"]) == {"google": GOOGLE}


@pytest.mark.req("CAR-18")
def test_the_later_of_two_toolsets_wins_with_a_tool_of_one_name(registry: ToolRegistry) -> None:
    registry.register("set1", {"execute": FIRST})
    registry.register("set2", {"execute": SECOND})
    assert registry.get_tools_for_toolsets(["set1", "set2"])["execute"] is SECOND
    assert registry.get_tools_for_toolsets(["set2", "set1"])["execute"] is FIRST
    assert registry.get_tools_for_toolsets(["set2", "set1", "set2"])["execute"] is FIRST, "the first mention counts"


@pytest.mark.req("CAR-18")
def test_toolsets_are_listed_in_the_order_of_registration(registry: ToolRegistry) -> None:
    for name in ("zebra", "apple", "mango", "apple"):
        registry.register(name, {})
    assert registry.list_toolsets() == ["zebra", "apple", "mango"]
    registry.list_toolsets().clear()
    assert len(registry.list_toolsets()) == 3


@pytest.mark.req("CAR-18")
@pytest.mark.parametrize("broken", [None, "text", 5, {}, object()])
def test_an_object_that_is_not_a_tool_is_refused_and_nothing_is_added(registry: ToolRegistry, broken: Any) -> None:
    with pytest.raises(ValidationError, match="toolset 'tools': 'nullTool' is not a tool") as caught:
        registry.register("tools", {"google": GOOGLE, "nullTool": broken})
    assert caught.value.context == {"toolName": "nullTool"}
    assert "@tool" in caught.value.hint
    assert registry.known == ()
    with pytest.raises(ValidationError, match="is not a tool"):
        registry.register("tools", [GOOGLE, broken])


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize("broken", [None, 5, "google", GOOGLE])
def test_tools_that_are_no_collection_are_refused(registry: ToolRegistry, broken: Any) -> None:
    with pytest.raises(ValidationError, match="must be tools, not"):
        registry.register("tools", broken)


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_a_toolset_needs_a_name(registry: ToolRegistry, name: Any) -> None:
    with pytest.raises(ValidationError, match="a toolset needs a name"):
        registry.register(name, [])
    with pytest.raises(ValidationError, match="a toolset needs a name"):
        registry.register_tool_provider(name, list)
    assert registry.list_toolsets() == []


@pytest.mark.req("CAR-20")
@pytest.mark.parametrize("name", META_TOOLS)
def test_the_names_of_meta_tools_are_reserved(registry: ToolRegistry, name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name} is the name of a meta-tool") as caught:
        registry.register("tools", {name: GOOGLE})
    assert caught.value.context == {"toolName": name}
    registry.register_tool_provider("later", lambda: {name: GOOGLE})
    with pytest.raises(ValidationError, match=f"'later': {name} is the name of a meta-tool"):
        registry.get_tools("later")


def test_a_mapping_names_its_tools_anew(registry: ToolRegistry) -> None:
    registry.register("search", {"webSearch": GOOGLE})
    found = registry.get_tools("search")
    assert found is not None
    assert (found["webSearch"].name, found["webSearch"].description) == ("webSearch", GOOGLE.description)
    assert GOOGLE.name == "google"


@pytest.mark.parametrize("name", ["", "with space", "hidden/x", "é", 5])
def test_a_name_that_no_tool_may_have_is_refused(registry: ToolRegistry, name: Any) -> None:
    with pytest.raises(ValidationError, match="toolset 'search'") as caught:
        registry.register("search", {name: GOOGLE})
    assert caught.value.context == {"toolName": name}


class Provider:
    """Gives tools, and counts how often it was asked."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = tools
        self.runs = 0

    def __call__(self) -> Iterator[Tool]:
        self.runs += 1
        return iter(self.tools)


@pytest.mark.req("CAR-19")
def test_a_provider_runs_once_and_only_for_its_own_toolset(registry: ToolRegistry) -> None:
    search, analysis = Provider(GOOGLE), Provider(BING)
    registry.register_tool_provider("search", search)
    registry.register_tool_provider("analysis", analysis)
    assert registry.list_toolsets() == ["search", "analysis"]
    assert registry.known == ()
    assert registry.is_waiting("search")
    for _ in range(100):
        assert registry.get_tools("search") == {"google": GOOGLE}
        assert list(registry.get_tools_for_toolsets(["search", "missing"])) == ["google"]
    assert (search.runs, analysis.runs) == (1, 0)
    assert not registry.is_waiting("search")
    assert registry.is_waiting("analysis")
    assert not registry.is_waiting("missing")


@pytest.mark.req("CAR-19")
def test_tools_and_providers_win_in_the_order_of_registration(registry: ToolRegistry) -> None:
    registry.register("tools", [FIRST, GOOGLE])
    registry.register_tool_provider("tools", lambda: [SECOND, BING])
    assert registry.find("tools.execute") is SECOND
    later = make_tool("execute", "later")
    registry.register_tool_provider("tools", lambda: [FIRST])
    registry.register("tools", [later])
    found = registry.get_tools("tools")
    assert found is not None
    assert found["execute"] is later
    assert list(found) == ["execute", "google", "bing"]


@pytest.mark.req("CAR-31")
def test_a_provider_that_fails_is_reported_and_run_again(registry: ToolRegistry) -> None:
    answers: list[Any] = [ValueError("password=hunter2"), None, [GOOGLE]]

    def provide() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry.register_tool_provider("search", provide)
    with pytest.raises(BuildError, match="the provider of toolset 'search' failed: ValueError") as caught:
        registry.get_tools("search")
    assert caught.value.context == {"toolset": "search"}
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ValidationError, match="must be tools, not NoneType"):
        registry.get_tools("search")
    assert registry.get_tools("search") == {"google": GOOGLE}


@pytest.mark.req("CAR-31")
def test_a_provider_must_be_callable(registry: ToolRegistry) -> None:
    with pytest.raises(ValidationError, match="provider of toolset 'search' cannot be called") as caught:
        registry.register_tool_provider("search", [GOOGLE])  # type: ignore[arg-type]
    assert caught.value.context == {"toolset": "search"}
    assert isinstance(caught.value, ClewError)


@pytest.mark.req("CAR-23")
async def test_one_name_in_two_toolsets_is_warned_of_and_both_are_reached_by_qualified_names(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        registry.register("search", [FIRST])
        registry.register("search", [FIRST])
        assert not caplog.records
        registry.register("analysis", [SECOND])
        registry.register("analysis", [SECOND])
    (clash,) = registry.clashes
    assert (clash.tool, clash.toolsets) == ("execute", ("search", "analysis"))
    assert [record.getMessage() for record in caplog.records] == [clash.message]
    assert "search.execute, analysis.execute" in clash.message
    for name, expected in (("search.execute", "first"), ("analysis.execute", "second")):
        found = registry.find(name)
        assert found is not None
        assert await call(found, query="x") == f"{expected}(x)"
    assert registry.find("execute") is SECOND
    assert registry.toolsets_of("execute") == ("search", "analysis")


@pytest.mark.req("CAR-23")
def test_a_third_toolset_with_the_name_is_reported_with_all_of_them(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        registry.register(name, [FIRST])
    assert [len(record.getMessage().split("execute,")) for record in caplog.records] == [2, 3]
    assert registry.clashes[0].toolsets == ("a", "b", "c")


@pytest.mark.req("CAR-23")
def test_a_clash_that_a_provider_brings_is_warned_of_when_it_runs(registry: ToolRegistry) -> None:
    registry.register("search", [FIRST])
    registry.register_tool_provider("analysis", lambda: [SECOND])
    assert registry.clashes == ()
    assert registry.find("analysis.execute") is SECOND, "a qualified name exposes the toolset"
    assert [clash.tool for clash in registry.clashes] == ["execute"]


@pytest.mark.req("CAR-23")
def test_names_with_dots_resolve_by_every_split(registry: ToolRegistry) -> None:
    dotted, plain = make_tool("b.c", "dotted"), make_tool("d", "plain")
    registry.register("a", [dotted])
    registry.register("a.b", [plain])
    assert registry.find("a.b.c") is dotted
    assert registry.find("a.b.d") is plain
    assert registry.find("b.c") is dotted
    for missing in ("a.b", "a.", ".d", "a.b.x", "x.d", "", "."):
        assert registry.find(missing) is None, missing


def test_a_short_name_runs_no_provider(registry: ToolRegistry) -> None:
    provider = Provider(GOOGLE)
    registry.register_tool_provider("search", provider)
    assert registry.find("google") is None
    assert registry.toolsets_of("google") == ()
    assert provider.runs == 0
    assert registry.find("search.google") is GOOGLE
    assert registry.find("google") is GOOGLE


@pytest.mark.req("CAR-18")
def test_a_registration_that_is_refused_leaves_no_toolset_behind() -> None:
    registry = ToolRegistry()
    with pytest.raises(ValidationError):
        registry.register("search", [None])  # type: ignore[list-item]
    assert registry.list_toolsets() == []
    assert registry.get_tools("search") is None


@pytest.mark.req("CAR-30")
def test_the_version_is_another_one_after_each_change_and_only_then() -> None:
    registry = ToolRegistry()
    seen = [registry.version]
    registry.register("search", [make_tool("google")])
    seen.append(registry.version)
    registry.register_tool_provider("search", lambda: [make_tool("bing")])
    seen.append(registry.version)
    registry.register("search", [make_tool("google", "later")])
    seen.append(registry.version)
    assert registry.get_tools("search")
    seen.append(registry.version)
    assert len(set(seen)) == len(seen)
    assert registry.get_tools("search")
    assert registry.find("search.google")
    assert registry.version == seen[-1]


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "toolset 'x': must be tools, not int"),
        ("abc", "toolset 'x': must be tools, not str"),
        ([7], "toolset 'x': '?' is not a tool, but int. Make it with `@tool`"),
        ({"a": None}, "toolset 'x': 'a' is not a tool, but NoneType. Make it with `@tool`"),
        ({"loadSkill": make_tool("a")}, "toolset 'x': loadSkill is the name of a meta-tool. Give it another name"),
    ],
)
def test_errors_of_a_registration_say_what_to_do(registry: ToolRegistry, given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        registry.register("x", given)
    assert str(caught.value) == said
