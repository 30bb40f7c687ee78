"""Explanations why an agent has or does not have a tool, a skill or a toolset: every cause, in sentences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clew.clock import ManualClock
from clew.skills.exposure_store import MemoryExposures
from clew.skills.manifest import AgentSpec, Skill
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from tests.skills.research_manifest import MANIFEST, ME, TOOLS, make_manifest, make_skill, make_tool, make_toolset


class Asking:
    """A session in memory, asked about names."""

    def __init__(self, clock: ManualClock, agent: str = "researcher", **more: Any) -> None:
        self.registry = ToolRegistry()
        manifest = more.pop("manifest", MANIFEST)
        sets = more.pop("sets", None) or MemoryExposures(clock)
        self.session = AgentSession(manifest, self.registry, sets, by=ME, agent=agent, clock=clock, **more)
        self.clock = clock

    async def why(self, name: str, **more: Any) -> tuple[str, bool, list[str]]:
        found = await self.session.why(name, **more)
        return found.kind, found.is_here, list(found.reasons)


@pytest.fixture
def asking(clock: ManualClock) -> Asking:
    return Asking(clock)


CAME = (
    "Skill webSearch came at 2026-01-01 00:00:00 UTC via initial by agent:researcher: agent researcher starts with it."
)


@pytest.mark.req("BEY-12")
async def test_an_available_tool_is_explained_with_all_its_causes(asking: Asking) -> None:
    asking.registry.register("search", [TOOLS["googleSearch"]])
    assert await asking.why("googleSearch") == (
        "tool",
        True,
        ["Toolset search lists it.", "Toolset search comes with skill webSearch.", CAME],
    )
    found = await asking.session.why("search.googleSearch")
    assert found.is_here
    assert [cause.item for cause in found.causes] == ["skill:webSearch"]
    assert found.tokens > 0
    assert found.name == "search.googleSearch"


@pytest.mark.req("BEY-12")
async def test_a_missing_implementation_is_the_first_reason(asking: Asking) -> None:
    lacking = "It has no implementation: no bingSearch is registered in toolset search."
    kind, is_here, reasons = await asking.why("bingSearch")
    assert (kind, is_here, reasons[0]) == ("tool", False, lacking)
    for given in ({"bingSearch"}, {"search.bingSearch"}):
        assert (await asking.why("bingSearch", provided=given))[1]
    asking.registry.register("analysis", [make_tool("bingSearch")])
    assert not (await asking.why("bingSearch"))[1], "another toolset's tool is not this one's"
    asking.registry.register("runtime", [make_tool("bingSearch")])
    assert (await asking.why("bingSearch"))[1], "one of no toolset serves all"


@pytest.mark.req("BEY-12")
async def test_an_explanation_runs_no_provider(asking: Asking) -> None:
    asking.registry.register_tool_provider("search", lambda: pytest.fail("was run"))
    assert (await asking.why("googleSearch"))[1]


@pytest.mark.req("BEY-12")
async def test_a_missing_tool_is_explained_with_how_to_load_it(asking: Asking) -> None:
    assert await asking.why("readTable") == (
        "tool",
        False,
        [
            "Toolset tables lists it.",
            "Toolset tables is not loaded.",
            "loadSkill brings it with dataAnalysis or reporting.",
        ],
    )
    assert (await asking.why("deploy"))[2][-1] == "No skill of agent researcher brings it."
    anybody = Asking(asking.clock, "anybody")
    assert (await anybody.why("spareTool"))[2][-1] == "No skill brings it; loadToolset loads spare."


@pytest.mark.req("BEY-12")
async def test_an_unloaded_tool_is_explained_with_time_and_reason(asking: Asking) -> None:
    await asking.session.load_skill("charts", by="loadSkill", why="a plot was asked for")
    asking.clock.advance(minutes=5)
    await asking.session.unload_skill("charts", by="ann", reason="no longer needed")
    assert await asking.why("skill:charts") == (
        "skill",
        False,
        [
            "Skill charts is not loaded.",
            "Skill charts left at 2026-01-01 00:05:00 UTC by ann: no longer needed.",
            "loadSkill loads charts.",
        ],
    )
    await asking.session.load_toolset("vis")
    await asking.session.unload_toolset("vis")
    assert (await asking.why("plot"))[2][2].startswith("Toolset vis left at 2026-01-01 00:05:00 UTC by researcher:")


@pytest.mark.req("BEY-12")
async def test_a_skill_is_explained_with_every_cause(asking: Asking) -> None:
    until = asking.clock.now() + timedelta(hours=1)
    await asking.session.load_skill("charts", via="trigger", until=until)
    await asking.session.load_skill("reporting", by="ann")
    found = await asking.session.why("charts")
    assert (found.kind, found.is_here) == ("skill", True)
    assert found.reasons == (
        "Skill charts came at 2026-01-01 00:00:00 UTC via trigger. It ends at 2026-01-01 01:00:00 UTC.",
        "Skill charts comes with skill reporting.",
        "Skill reporting came at 2026-01-01 00:00:00 UTC via load by ann.",
    )
    assert [cause.item for cause in found.causes] == ["skill:charts", "skill:reporting"]
    assert found.tokens == found.causes[0].tokens > 0
    assert (await asking.why("deploying"))[2] == [
        "Skill deploying is not loaded.",
        "Agent researcher may not load deploying: it is not one of its skills.",
    ]


@pytest.mark.req("BEY-12")
async def test_a_toolset_is_explained_with_its_skills(asking: Asking) -> None:
    await asking.session.load_toolset("search", by="loadToolset")
    kind, is_here, reasons = await asking.why("toolset:search")
    assert (kind, is_here) == ("toolset", True)
    assert reasons[0] == "Toolset search came at 2026-01-01 00:00:00 UTC via load by loadToolset."
    assert reasons[1:] == ["Toolset search comes with skill webSearch.", CAME]
    assert (await asking.why("search"))[0] == "toolset"
    assert (await asking.session.why("search")).tokens > 0


@pytest.mark.req("BEY-12")
async def test_a_withheld_skill_is_explained_with_the_reason(clock: ManualClock) -> None:
    sets = MemoryExposures(clock)
    await Asking(clock, sets=sets).session.load_skill("charts")
    careful = Asking(clock, sets=sets, withhold=lambda skill: "not trusted" if skill.name == "charts" else "")
    kind, is_here, reasons = await careful.why("charts")
    assert (kind, is_here, reasons[0]) == ("skill", False, "Skill charts is withheld: not trusted.")
    assert reasons[1].startswith("Skill charts came at")
    assert not (await careful.why("plot"))[1]


@pytest.mark.req("BEY-12")
async def test_an_unknown_name_is_explained_with_similar_names(asking: Asking) -> None:
    assert await asking.why("gogleSearch") == (
        "tool",
        False,
        ["No toolset lists a tool gogleSearch. googleSearch is spelled alike."],
    )
    assert (await asking.why("skill:chart"))[2] == ["No definition names a skill chart. charts is spelled alike."]
    assert (await asking.why("toolset:viz"))[2] == ["No definition names a toolset viz. vis is spelled alike."]
    assert (await asking.why("x" * 5_000))[2][0].endswith("x.")
    asking.registry.register("search", [make_tool("charts")])
    assert (await asking.why("charts"))[0] == "tool", "a tool comes before a skill of that name"


@pytest.mark.req("BEY-12")
async def test_a_loaded_skill_without_a_definition_is_explained(clock: ManualClock) -> None:
    sets = MemoryExposures(clock)
    await Asking(clock, sets=sets).session.load_skill("charts")
    agents = list(MANIFEST.agents.values())
    without = make_manifest(agents, [make_skill("webSearch")])
    _, is_here, reasons = await Asking(clock, sets=sets, manifest=without).why("skill:charts")
    assert not is_here
    assert reasons[0] == "No definition names a skill charts."
    assert reasons[1].startswith("Skill charts came at")


@pytest.mark.req("CAR-23")
async def test_a_name_in_two_toolsets_is_explained_with_both_qualified_names(clock: ManualClock) -> None:
    skills = [make_skill("a", toolsets=("one",)), make_skill("b", toolsets=("two",))]
    toolsets = [make_toolset("one", "execute"), make_toolset("two", "execute")]
    asking = Asking(clock, manifest=make_manifest(list(MANIFEST.agents.values()), skills, toolsets), agent="anybody")
    asking.registry.register("one", [make_tool("execute")])
    await asking.session.load_skill("a")
    _, is_here, reasons = await asking.why("execute")
    assert is_here
    assert reasons[-1].startswith("The qualified names are one.execute, two.execute;")
    assert "Toolset two is not loaded." in reasons
    assert not (await asking.why("two.execute"))[1]
    await asking.session.load_skill("b")
    assert (await asking.why("execute"))[1], "one of them has code"
    assert not (await asking.why("two.execute"))[1]


@pytest.mark.req("BEY-12")
@pytest.mark.parametrize("name", META_TOOLS)
async def test_a_meta_tool_is_always_available(asking: Asking, name: str) -> None:
    assert await asking.why(name) == ("tool", True, ["It is a meta-tool: every agent has it at all times."])


@pytest.mark.req("SYL-19")
async def test_an_unloaded_skill_of_the_first_tier_is_explained_as_automatic(
    clock: ManualClock,
) -> None:
    house = Skill(name="house", description="How we do things here", tier=1)
    asking = Asking(clock, "anybody", manifest=make_manifest([AgentSpec(name="anybody")], [house]))
    assert (await asking.why("house"))[1]
    await asking.session.unload_skill("house")
    _, is_here, reasons = await asking.why("house")
    assert not is_here
    assert reasons[-1].startswith("It is of tier 1: it loads automatically when a session begins")
