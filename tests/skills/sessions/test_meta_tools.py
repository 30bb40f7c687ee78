"""The meta-tools, called as a model calls them."""

from __future__ import annotations

from typing import Any

import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.skills.exposure import Exposures
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.sessions.tool_mapping import ExposedTools
from tests.skills.research_manifest import MANIFEST, ME, call


@pytest.fixture
def session(sets: Exposures, clock: ManualClock) -> AgentSession:
    return AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="researcher", clock=clock)


@pytest.fixture
async def tools(session: AgentSession) -> ExposedTools:
    return await session.get_tools()


@pytest.mark.req("CAR-11")
async def test_the_list_has_the_skills_that_the_agent_may_load_and_never_their_content(tools: ExposedTools) -> None:
    found = await call(tools["listAvailableSkills"])
    assert found == [
        {"name": "webSearch", "description": "About webSearch", "toolsets": ["search"]},
        {"name": "dataAnalysis", "description": "About dataAnalysis", "toolsets": ["analysis", "tables"]},
        {"name": "reporting", "description": "About reporting", "toolsets": ["tables"]},
        {"name": "charts", "description": "About charts", "toolsets": ["vis"]},
    ]


@pytest.mark.req("CAR-11", "SYL-19")
async def test_a_skill_of_the_third_tier_is_listed_as_one_that_is_only_for_who_names_it(
    sets: Exposures, clock: ManualClock
) -> None:
    manifest = Manifest(
        agents={"a": AgentSpec(name="a")}, skills={"ship": Skill(name="ship", description="Ship", tier=3)}
    )
    session = AgentSession(manifest, ToolRegistry(), sets, by=ME, agent="a", clock=clock)
    (only,) = await call((await session.get_tools())["listAvailableSkills"])
    assert only == {"name": "ship", "description": "Ship", "toolsets": [], "onlyByName": True}


@pytest.mark.req("CAR-11")
async def test_a_skill_that_is_withheld_is_listed_with_the_reason(sets: Exposures, clock: ManualClock) -> None:
    careful = AgentSession(
        MANIFEST, ToolRegistry(), sets, by=ME, agent="analyst", clock=clock, withhold=lambda skill: "not trusted"
    )
    (only,) = await call((await careful.get_tools())["listAvailableSkills"])
    assert only == {"name": "dataAnalysis", "description": "", "toolsets": [], "withheld": "not trusted"}
    refused = await call((await careful.get_tools())["loadSkill"], skillName="dataAnalysis")
    assert "may not load skill dataAnalysis: not trusted" in refused["error"]


@pytest.mark.req("CAR-12")
async def test_loading_a_skill_gives_its_content_and_toolsets_and_is_idempotent(
    session: AgentSession, tools: ExposedTools
) -> None:
    expected = {
        "success": True,
        "name": "reporting",
        "content": "# reporting\n\nHow to do reporting.\n\n# charts\n\nHow to do charts.",
        "toolsets": ["tables", "vis"],
    }
    assert await call(tools["loadSkill"], skillName="reporting") == expected
    state = await session.state()
    assert state.exposed_domain_tools == ("googleSearch", "bingSearch", "readTable", "plot")
    assert await call(tools["loadSkill"], skillName="reporting") == expected
    assert await session.state() == state
    assert (await session.audit())[1].loaded_by == "loadSkill"


@pytest.mark.req("CAR-12")
@pytest.mark.parametrize("name", ["dataAnalysys", "deploying", "", "x" * 10_000, "skill:charts"])
async def test_a_skill_that_cannot_be_loaded_is_an_answer_with_those_that_can(
    session: AgentSession, tools: ExposedTools, name: str
) -> None:
    before = await session.state()
    for meta in ("loadSkill", "unloadSkill"):
        if meta == "unloadSkill" and name == "deploying":
            continue
        refused = await call(tools[meta], skillName=name)
        assert set(refused) == {"error", "availableSkills"}
        assert refused["availableSkills"] == ["webSearch", "dataAnalysis", "reporting", "charts"]
    assert await session.state() == before


@pytest.mark.req("CAR-13")
async def test_loading_a_toolset_gives_its_notes_and_tools(session: AgentSession, tools: ExposedTools) -> None:
    assert await call(tools["loadToolset"], toolsetName="tables") == {
        "success": True,
        "name": "tables",
        "description": "Tools for tables",
        "content": "Notes on tables.",
        "tools": ["readTable"],
    }
    assert (await session.state()).loaded_toolsets == ("search", "tables")
    for name in ("nope", "ops"):
        refused = await call(tools["loadToolset"], toolsetName=name)
        assert refused["availableToolsets"] == ["search", "analysis", "tables", "vis"]
    assert set(await call(tools["unloadToolset"], toolsetName="nope")) == {"error", "availableToolsets"}


@pytest.mark.req("CAR-14")
async def test_unloading_tells_what_is_left_and_what_keeps_it(session: AgentSession, tools: ExposedTools) -> None:
    await call(tools["loadSkill"], skillName="dataAnalysis")
    await call(tools["loadSkill"], skillName="reporting")
    await call(tools["loadToolset"], toolsetName="tables")
    kept = await call(tools["unloadToolset"], toolsetName="tables")
    left = ["search", "analysis", "tables", "vis"]
    assert kept == {"success": True, "name": "tables", "toolsets": left, "keptBy": ["dataAnalysis", "reporting"]}
    gone = await call(tools["unloadSkill"], skillName="dataAnalysis")
    assert gone == {"success": True, "name": "dataAnalysis", "toolsets": ["search", "tables", "vis"]}
    assert await call(tools["unloadSkill"], skillName="charts") == {
        "success": True,
        "name": "charts",
        "toolsets": ["search", "tables", "vis"],
        "keptBy": ["reporting"],
    }


@pytest.mark.parametrize("name", META_TOOLS[1:])
@pytest.mark.parametrize("arguments", [{}, {"skillName": 5}, {"other": "x"}])
async def test_wrong_arguments_are_refused_before_anything_happens(
    tools: ExposedTools, name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await call(tools[name], **arguments)


def test_the_meta_tools_describe_themselves(tools: ExposedTools) -> None:
    for name in META_TOOLS:
        assert tools[name].name == name
        assert len(tools[name].description) > 40
    assert tools["loadSkill"].schema["required"] == ["skillName"]
    assert "listAvailableSkills" in tools["loadSkill"].schema["properties"]["skillName"]["description"]
    assert tools["listAvailableSkills"].effects.reads_only
    assert not tools["loadSkill"].effects.reads_only
