"""The texts of the library for a model: prompts, texts of skills and suggestions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from clew.clock import ManualClock
from clew.errors import ValidationError
from clew.skills.exposure import Exposures
from clew.skills.library import Skills, SkillSuggestion
from clew.skills.manifest import AgentSpec, Manifest, Skill, Triggers
from clew.skills.prompt import Sections
from clew.skills.registry import META_TOOLS
from clew.skills.triggers import Turn
from clew.tools.tool import Tool
from tests.skills.research_manifest import MANIFEST, TOOLS, call, make_manifest, make_skill, make_tool, names_in


class Naming:
    """Finds the skills whose names are words of the question."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    async def suggest(self, query: str, *, among: Sequence[str], limit: int) -> list[SkillSuggestion]:
        self.asked.append(among)
        named = [name for name in among if name in query.split()]
        return [SkillSuggestion(skill=name, description=f"About {name}", relevance=1.0) for name in named[:limit]]


@pytest.mark.req("CAR-30")
async def test_a_second_prompt_of_the_same_state_and_variables_is_not_built(skills: Skills) -> None:
    first = await skills.get_prompt("researcher", variables={"USER": "Ada"})
    assert await skills.get_prompt("researcher", variables={"USER": "Ada"}) is first
    assert skills.prompts_built == 1
    await skills.get_prompt("researcher", variables={"USER": "Bo"})
    assert await skills.get_prompt("researcher", variables={"USER": "Ada"}) is first
    assert skills.prompts_built == 2


@pytest.mark.req("CAR-30")
async def test_a_prompt_changes_with_everything_that_it_contains(
    skills: Skills, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [await skills.get_prompt("researcher")]

    async def is_new(**more: Any) -> bool:
        before = skills.prompts_built
        seen.append(await skills.get_prompt("researcher", **more))
        return skills.prompts_built == before + 1

    assert not await is_new()
    await skills.load_skill("researcher", "charts")
    assert await is_new(), "a load"
    monkeypatch.setenv("CLEW_PROMPT_TEAM", "blue")
    assert await is_new(), "a variable of the environment"
    monkeypatch.delenv("CLEW_PROMPT_TEAM")
    assert not await is_new(), "as it was before"
    assert await is_new(variables={"A": "b"}), "a variable"
    assert await is_new(include=Sections(tools="never")), "another selection"
    assert not await is_new(conversation="elsewhere"), "another conversation that is where this one was"
    skills.register_tools("vis", [make_tool("plot", "Draw it in colour")])
    assert await is_new(), "a registered tool"
    assert "Draw it in colour" in seen[-1].content
    skills.registry.register("vis", [make_tool("plot", "Draw it in grey")])
    assert await is_new(), "a tool that was registered behind its back"
    assert "Draw it in grey" in seen[-1].content
    await skills.unload_skill("researcher", "charts")
    skills.use(replace(MANIFEST, agents={"researcher": AgentSpec(name="researcher", prompt="Anew.")}))
    assert await is_new(), "another manifest"
    assert seen[-1].content.startswith("Anew.")


@pytest.mark.req("CAR-30")
async def test_a_provider_that_runs_for_a_prompt_does_not_make_it_be_built_twice(skills: Skills) -> None:
    ran: list[str] = []

    def provide() -> list[Tool]:
        ran.append("vis")
        return [make_tool("plot", "Provided")]

    skills.register_tool_provider("vis", provide)
    await skills.load_skill("researcher", "charts")
    first = await skills.get_prompt("researcher")
    assert "- **plot**: Provided" in first.content
    assert await skills.get_prompt("researcher") is first
    assert ran == ["vis"]


async def test_at_most_so_many_prompts_are_kept(skills: Skills) -> None:
    first = await skills.get_prompt("researcher", variables={"N": 0})
    for number in range(1, 65):
        await skills.get_prompt("researcher", variables={"N": number})
    again = await skills.get_prompt("researcher", variables={"N": 0})
    assert again == first
    assert skills.prompts_built == 66


@pytest.mark.req("CAR-30")
async def test_the_text_of_a_skill_has_its_variables_put_in_once_for_the_same_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest = make_manifest([AgentSpec(name="a")], [make_skill("greet", content="Hello {{ CLEW_PROMPT_WHO }}")])
    skills = Skills(manifest)
    monkeypatch.setenv("CLEW_PROMPT_WHO", "Ada")
    tools = await skills.get_tools("a")
    for _ in range(2):
        assert (await call(tools["loadSkill"], skillName="greet"))["content"] == "Hello Ada"
    assert skills.render("Hello {{ CLEW_PROMPT_WHO }}") is skills.render("Hello {{ CLEW_PROMPT_WHO }}")
    monkeypatch.setenv("CLEW_PROMPT_WHO", "Bo")
    assert (await call(tools["loadSkill"], skillName="greet"))["content"] == "Hello Bo"


async def test_a_prompt_tells_of_every_tool_that_the_agent_has(sets: Exposures, clock: ManualClock) -> None:
    skills = Skills(MANIFEST, exposures=sets, clock=clock)
    skills.register_tools("all of them", TOOLS)
    await skills.load_skill("researcher", "reporting")
    told = names_in((await skills.get_prompt("researcher")).sections["tools"])
    assert told == [name for name in await skills.get_tools("researcher") if name not in META_TOOLS]
    assert told == ["googleSearch", "bingSearch", "readTable", "plot"]


async def test_the_texts_of_skills_that_came_by_themselves_are_in_the_prompt() -> None:
    manifest = make_manifest(
        [AgentSpec(name="a", initial_skills=("first",), skills=("seen", "named", "auto"))],
        [
            make_skill("first", skills=("behind",), content="text of first"),
            make_skill("behind", content="text of behind"),
            replace(make_skill("seen", content="text of seen"), triggers=Triggers(words=("look",))),
            make_skill("named", skills=("behind",), content="text of named"),
            make_skill("auto", content="text of auto"),
        ],
    )
    skills = Skills(manifest)
    await skills.get_tools("a", auto_load_skills=["auto"])
    await skills.follow("a", Turn(text="look here"))
    loaded = (await skills.get_prompt("a")).sections["loaded_skills"]
    assert [name for name in manifest.skills if f"text of {name}" in loaded] == ["behind", "seen", "auto"]
    assert "text of first" in (await skills.get_prompt("a")).sections["initial_skills"]
    await call((await skills.get_tools("a"))["loadSkill"], skillName="named")
    loaded = (await skills.get_prompt("a")).sections["loaded_skills"]
    assert "text of named" not in loaded, "the answer of loadSkill had it"
    assert "text of behind" not in loaded, "that too"
    assert (await skills.reinject("a")).count("text of") == 2
    await skills.follow("a", Turn(text="something else"))
    assert "text of seen" not in (await skills.get_prompt("a")).content


@pytest.mark.req("CAR-25")
async def test_the_text_of_a_skill_that_the_program_loads_is_in_the_prompt(skills: Skills) -> None:
    await skills.load_skill("researcher", "charts")
    assert "How to do charts." in (await skills.get_prompt("researcher")).sections["loaded_skills"]
    assert await skills.reinject("researcher") == "", "the prompt has it"
    await skills.unload_skill("researcher", "charts")
    assert "How to do charts." not in (await skills.get_prompt("researcher")).content


@pytest.mark.req("BEY-03")
async def test_after_a_compaction_all_that_was_loaded_can_be_put_back(skills: Skills) -> None:
    assert await skills.reinject("researcher") == ""
    await call((await skills.get_tools("researcher"))["loadSkill"], skillName="reporting")
    await skills.session("researcher").load_toolset("analysis")
    text = await skills.reinject("researcher")
    for part in (
        "How to do reporting.",
        "How to do charts.",
        "Notes on tables.",
        "Notes on vis.",
        "Notes on analysis.",
    ):
        assert text.count(part) == 1
    assert "webSearch" not in text
    assert "- Toolsets without a skill: analysis" in (await skills.get_prompt("researcher")).content
    await skills.unload_skill("researcher", "reporting")
    await skills.session("researcher").unload_toolset("analysis")
    assert await skills.reinject("researcher") == ""


async def test_a_withheld_skill_is_neither_named_nor_suggested(sets: Exposures, clock: ManualClock) -> None:
    distrusted = {"charts"}
    finder = Naming()
    skills = Skills(
        MANIFEST,
        exposures=sets,
        clock=clock,
        finder=finder,
        withhold=lambda skill: "not trusted" if skill.name in distrusted else "",
    )
    prompt = await skills.get_prompt("researcher", query="charts reporting")
    assert names_in(prompt.sections["catalogue"]) == ["dataAnalysis", "reporting"]
    assert prompt.sections["hints"] == "Skills that may help with this: reporting."
    assert [each.skill for each in await skills.suggest_skills("charts reporting")] == ["reporting"]
    with pytest.raises(ValidationError, match="not trusted"):
        await skills.load_skill("researcher", "charts")
    distrusted.clear()
    assert "charts" in names_in((await skills.get_prompt("researcher")).sections["catalogue"])
    await skills.load_skill("researcher", "charts")
    distrusted.add("charts")
    assert "charts" not in (await skills.get_prompt("researcher")).content


@pytest.mark.req("CAR-17")
async def test_suggestions_are_hints_and_variables_of_the_prompt(sets: Exposures, clock: ManualClock) -> None:
    manifest = replace(
        MANIFEST,
        agents={
            "a": AgentSpec(
                name="a", prompt="[{{ SUGGESTED_SKILLS }}] [{{ SKILL_HINTS }}]", skills=("charts", "reporting")
            )
        },
    )
    finder = Naming()
    skills = Skills(manifest, exposures=sets, clock=clock, finder=finder)
    assert (await skills.get_prompt("a")).content.startswith("[] []")
    assert finder.asked == [], "nothing is looked for without a need"
    told = await skills.get_prompt("a", query="charts and reporting, deploying too")
    hint = "Skills that may help with this: charts."
    assert told.content.startswith(f"[charts] [{hint}]")
    assert told.sections["hints"] == hint
    assert finder.asked == [("charts", "reporting")], "only what the agent may load"
    await skills.load_skill("a", "charts")
    assert "hints" not in (await skills.get_prompt("a", query="charts please")).sections, "it is there already"
    found = await skills.suggest_skills("charts deploying reporting", limit=2)
    assert [each.skill for each in found] == ["reporting", "charts"], "without an agent, of all skills"


@pytest.fixture
async def finding() -> AsyncIterator[Skills]:
    """A library that finds skills by their purpose."""
    manifest = Manifest(
        agents={"a": AgentSpec(name="a"), "narrow": AgentSpec(name="narrow", skills=("search",))},
        skills={
            each.name: each
            for each in (
                Skill(
                    name="analysis", description="Analyse data: statistics, averages and trends of numbers in tables"
                ),
                Skill(name="search", description="Search the web for pages and news"),
                Skill(name="cooking", description="Recipes and meals for a family"),
            )
        },
    )
    async with Skills(manifest) as skills:
        yield skills


@pytest.mark.req("CAR-17")
async def test_a_need_suggests_the_skill_that_is_for_it(finding: Skills) -> None:
    both = await asyncio.gather(*(finding.suggest_skills("compute statistics of this data table") for _ in range(2)))
    assert both[0][0].skill == both[1][0].skill == "analysis"
    assert "analysis" not in [each.skill for each in await finding.suggest_skills("statistics of data", "narrow")]
    hinted = await finding.get_prompt("a", query="statistics of the data in this table")
    assert "analysis" in hinted.sections["hints"]


@pytest.mark.req("CAR-17")
async def test_suggestions_follow_the_manifest(finding: Skills) -> None:
    assert await finding.suggest_skills("statistics of data in a table")
    poems = Skill(name="poems", description="Write poems, verses and rhymes")
    finding.use(replace(finding.manifest, skills={"poems": poems}))
    assert [each.skill for each in await finding.suggest_skills("write a poem that rhymes")] == ["poems"]
    assert await finding.suggest_skills("statistics of data in a table") == []
    await finding.close()
    assert [each.skill for each in await finding.suggest_skills("write a poem that rhymes")] == ["poems"]
