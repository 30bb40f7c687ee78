"""The library object for programs: the tools and prompts of an agent, and its state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from clew.errors import BuildError, ParseError, ValidationError
from clew.skills import library
from clew.skills.library import Skills
from clew.skills.manifest import AgentSpec, Manifest, Triggers
from clew.skills.prompt import INITIAL, Sections
from clew.skills.registry import META_TOOLS
from clew.skills.triggers import Turn
from clew.skills.variables import Variables
from tests.skills.definition_trees import google, markdown, researcher, write
from tests.skills.research_manifest import (
    MANIFEST,
    TOOLS,
    call,
    make_manifest,
    make_skill,
    make_tool,
    make_toolset,
    names_in,
)


@pytest.mark.req("CAR-02")
async def test_a_folder_and_the_manifest_built_from_it_give_the_same_agent(tmp_path: Path) -> None:
    root = write(tmp_path / "team", researcher())
    folder = Skills.from_folder(root, [google()])
    file = tmp_path / "manifest.json"
    file.write_bytes(folder.manifest.encode())
    loaded = Skills.from_manifest(file, [google()])
    assert list(await folder.get_tools("researcher")) == [*META_TOOLS, "googleSearch"]
    assert list(await loaded.get_tools("researcher")) == [*META_TOOLS, "googleSearch"]
    assert await folder.get_prompt("researcher") == await loaded.get_prompt("researcher")
    assert await call((await loaded.get_tools("researcher"))["googleSearch"], query="ab", limit=2) == "abab"


@pytest.mark.req("CAR-31")
def test_a_folder_with_an_error_is_refused_with_its_place(tmp_path: Path) -> None:
    root = write(tmp_path, {**researcher(), "skills/webSearch.md": "---\nname: [\n---\n"})
    with pytest.raises(ParseError, match=r"skills/webSearch\.md"):
        Skills.from_folder(root)


@pytest.mark.req("CAR-01")
def test_a_project_is_read_with_the_files_of_other_programs_and_a_team_alone(tmp_path: Path) -> None:
    foreign = {".claude/skills/pdf/SKILL.md": markdown("# PDF", name="pdf", description="Fill in forms")}
    project = write(tmp_path / "project", {**foreign, ".clew/skills/own.md": markdown("# Own", description="Own")})
    assert set(Skills.from_folder(project).manifest.skills) == {"own", "pdf"}
    assert set(Skills.from_folder(write(tmp_path / "bare", foreign)).manifest.skills) == {"pdf"}
    team = write(tmp_path / "team", {**foreign, **researcher()})
    assert set(Skills.from_folder(team).manifest.skills) == {"webSearch", "dataAnalysis"}


async def test_options_of_a_program_apply_to_every_way_to_open_it(tmp_path: Path) -> None:
    root = write(tmp_path, {**researcher(), "agents/researcher.md": markdown("For {{ USER }}.")})
    named = Skills.from_folder(root, variables=Variables({"USER": "Ada"}), max_skills=1)
    assert (await named.get_prompt("researcher")).content.startswith("For Ada.")
    await named.load_skill("researcher", "webSearch")
    with pytest.raises(ValidationError, match="over the limit of 1"):
        await named.load_skill("researcher", "dataAnalysis")


@pytest.mark.req("CAR-22")
async def test_a_tool_that_no_toolset_lists_is_told_of(tmp_path: Path) -> None:
    skills = Skills.from_folder(write(tmp_path, researcher()), [google(), make_tool("stray")])
    told = (await skills.get_tools("researcher")).diagnostics
    assert "stray" not in await skills.get_tools("researcher")
    assert [(each.name, each.reason) for each in told.filtered] == [("stray", "no toolset lists it")]
    assert told.unexpected == ("stray",)


@pytest.mark.req("CAR-08")
async def test_the_state_of_an_unknown_agent_or_an_unstarted_session_is_none(skills: Skills) -> None:
    assert await skills.get_session_state("researcher") is None
    assert await skills.get_session_state("stranger") is None
    await skills.get_tools("researcher")
    state = await skills.get_session_state("researcher")
    assert state is not None
    assert state.discovered_skills == ("webSearch",)
    assert await skills.get_session_state("researcher", "elsewhere") is None


@pytest.mark.req("CAR-31")
async def test_an_agent_that_there_is_not_is_refused_everywhere(skills: Skills) -> None:
    for refused in (
        skills.get_tools("stranger"),
        skills.get_prompt("stranger"),
        skills.load_skill("stranger", "charts"),
        skills.unload_skill("stranger", "charts"),
        skills.follow("stranger", Turn(text="x")),
        skills.reinject("stranger"),
        skills.suggest_skills("x", "stranger"),
    ):
        with pytest.raises(ValidationError, match="unknown agent 'stranger'"):
            await refused


@pytest.mark.req("CAR-07")
async def test_conversations_and_agents_have_sessions_of_their_own(skills: Skills) -> None:
    await skills.load_skill("researcher", "charts", conversation="one")
    assert "plot" in await skills.get_tools("researcher", conversation="one")
    assert "plot" not in await skills.get_tools("researcher", conversation="two")
    assert "plot" not in await skills.get_tools("analyst", conversation="one")
    await skills.unload_skill("researcher", "charts", conversation="one")
    assert "plot" not in await skills.get_tools("researcher", conversation="one")


@pytest.fixture
def few_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_REMEMBERED", 20)


@pytest.mark.req("CAR-10")
@pytest.mark.usefixtures("few_sessions")
async def test_a_session_that_left_memory_is_found_again(skills: Skills) -> None:
    first = skills.session("researcher", "talk-0")
    await skills.load_skill("researcher", "charts", conversation="talk-0")
    for at in range(1, 21):
        skills.session("researcher", f"talk-{at}")
    assert skills.session("researcher", "talk-0") is not first
    assert "plot" in await skills.get_tools("researcher", conversation="talk-0")


@pytest.mark.req("CAR-21")
@pytest.mark.req("CAR-17")
async def test_skills_are_loaded_before_the_first_call_where_a_program_names_them(skills: Skills) -> None:
    tools = await skills.get_tools("researcher", auto_load_skills=["charts"])
    assert list(tools) == [*META_TOOLS, "googleSearch", "bingSearch", "plot"]


@pytest.mark.req("CAR-21")
async def test_tools_of_one_call_are_there_for_that_call(skills: Skills) -> None:
    mine = make_tool("googleSearch", "mine")
    given = await skills.get_tools("researcher", [mine])
    assert given["googleSearch"] is mine
    assert (await skills.get_tools("researcher"))["googleSearch"] is TOOLS["googleSearch"]


@pytest.mark.req("CAR-30")
async def test_the_tools_of_a_state_are_put_together_once(skills: Skills) -> None:
    first = await skills.get_tools("researcher")
    assert await skills.get_tools("researcher") is first
    await skills.load_skill("researcher", "charts")
    second = await skills.get_tools("researcher")
    assert second is not first
    assert "plot" in second
    skills.register_tools("vis", [make_tool("plot", "another")])
    third = await skills.get_tools("researcher")
    assert third["plot"].description == "another"
    await skills.unload_skill("researcher", "charts")
    assert list(await skills.get_tools("researcher")) == list(first)


async def test_a_provider_that_fails_is_a_known_fault_and_is_asked_again(skills: Skills) -> None:
    answers: list[Any] = [RuntimeError("offline"), [make_tool("plot", "At last")]]

    def provide() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    skills.register_tool_provider("vis", provide)
    await skills.load_skill("researcher", "charts")
    with pytest.raises(BuildError, match="'vis' failed"):
        await skills.get_prompt("researcher")
    assert "At last" in (await skills.get_prompt("researcher")).content


async def test_another_manifest_keeps_what_was_loaded_as_far_as_it_has_it(skills: Skills) -> None:
    await skills.load_skill("researcher", "charts")
    await skills.load_skill("researcher", "dataAnalysis")
    left = {name: skill for name, skill in MANIFEST.skills.items() if name != "charts"}
    skills.use(replace(MANIFEST, skills=left))
    prompt = await skills.get_prompt("researcher")
    assert names_in(prompt.sections["loaded_skills"]) == ["dataAnalysis"]
    assert prompt.sections["initial_skills"].startswith(f"{INITIAL}\n\n- **webSearch**")
    assert "plot" not in await skills.get_tools("researcher")
    skills.use(MANIFEST)
    assert "plot" in await skills.get_tools("researcher"), "it was never unloaded"


@pytest.mark.req("SYL-19")
async def test_a_turn_brings_skills_and_the_next_takes_them_away() -> None:
    triggered = replace(make_skill("deploying", toolsets=("ops",)), triggers=Triggers(pattern="deploy|roll ?out"))
    skills = Skills(make_manifest([AgentSpec(name="a")], [triggered], [make_toolset("ops", "deploy")]))
    skills.register_tools("ops", [TOOLS["deploy"]])
    assert "deploy" not in await skills.get_tools("a")
    await skills.follow("a", Turn(text="Please rollout the new version"))
    assert "deploy" in await skills.get_tools("a")
    await skills.follow("a", Turn(text="Thanks"))
    assert "deploy" not in await skills.get_tools("a")


@pytest.mark.req("CAR-31")
def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValidationError, match="tools must be always or never or auto, not 'nevr'"):
        Sections(tools="nevr")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValidationError, match="when_full must be refuse or evict, not 'boom'"):
        Skills(Manifest(), when_full="boom")  # type: ignore[arg-type]  # as above
    with pytest.raises(ValidationError, match="max_skills must be an integer of at least 0, not -1"):
        Skills(Manifest(), max_skills=-1)


NO_TEXTS = (None, 5, ["a"], {"a": 1}, b"x")
CALLS: dict[str, Callable[[Skills, Any], Any]] = {
    "session": lambda skills, bad: skills.session(bad),
    "session, conversation": lambda skills, bad: skills.session("researcher", bad),
    "get_session_state": lambda skills, bad: skills.get_session_state(bad),
    "get_tools": lambda skills, bad: skills.get_tools(bad),
    "load_skill": lambda skills, bad: skills.load_skill("researcher", bad),
    "unload_skill": lambda skills, bad: skills.unload_skill("researcher", bad),
    "follow": lambda skills, bad: skills.follow("researcher", bad),
    "suggest_skills": lambda skills, bad: skills.suggest_skills(bad),
    "get_prompt": lambda skills, bad: skills.get_prompt(bad),
    "get_prompt, include": lambda skills, bad: skills.get_prompt("researcher", include=bad),
    "get_prompt, query": lambda skills, bad: skills.get_prompt("researcher", query=bad),
    "reinject": lambda skills, bad: skills.reinject(bad),
    "render": lambda skills, bad: skills.render(bad),
    "use": lambda skills, bad: skills.use(bad),
    "owner": lambda skills, bad: Skills(skills.manifest, owner=bad),
    "withhold": lambda skills, bad: Skills(skills.manifest, withhold=bad),
    "manifest": lambda skills, bad: Skills(bad),
    "from_folder": lambda skills, bad: Skills.from_folder(bad),
    "from_manifest": lambda skills, bad: Skills.from_manifest(bad),
    "load_toolset": lambda skills, bad: skills.session("researcher").load_toolset(bad),
    "unload_toolset": lambda skills, bad: skills.session("researcher").unload_toolset(bad),
    "why": lambda skills, bad: skills.session("researcher").why(bad),
}


async def _settle(call: Callable[[], Any]) -> None:
    result = call()
    if inspect.isawaitable(result):
        await result


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize("call", CALLS)
async def test_an_argument_of_another_type_is_refused_by_its_name(skills: Skills, call: str) -> None:
    for bad in NO_TEXTS:
        with pytest.raises(ValidationError, match=f"must be .*, not {type(bad).__name__}"):
            await _settle(partial(CALLS[call], skills, bad))


async def test_names_in_one_text_are_refused(skills: Skills) -> None:
    with pytest.raises(ValidationError, match="auto_load_skills must be a list of strings, not str"):
        await skills.get_tools(
            "researcher", auto_load_skills="webSearch"
        )  # a type checker takes it: a text is a sequence
    with pytest.raises(ValidationError, match="max_skills must be an integer of at least 0, not '5'"):
        Skills(skills.manifest, max_skills="5")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="variables must be a mapping"):
        await skills.get_prompt("researcher", variables=["USER"])  # type: ignore[arg-type]
