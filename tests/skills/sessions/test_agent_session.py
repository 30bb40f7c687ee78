"""One agent in one conversation, with both stores: start, loads, unloads, end and explanations."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import HandleRefused, ValidationError
from clew.skills.exposure import Exposed, Exposures
from clew.skills.exposure_store import MemoryExposures, TrailExposures
from clew.skills.manifest import AgentSpec
from clew.skills.registry import META_TOOLS, ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.sessions.session import SessionState
from clew.trail import open_trail
from clew.trail.store import Trail
from tests.skills.research_manifest import MANIFEST, ME, TOOLS, call, make_manifest, make_skill, make_tool

FIRST = SessionState(
    agent_name="researcher",
    discovered_skills=("webSearch",),
    loaded_toolsets=("search",),
    exposed_domain_tools=("googleSearch", "bingSearch"),
)


class Opening:
    """Opens sessions over one registry and one keeper."""

    def __init__(self, sets: Exposures, clock: ManualClock) -> None:
        self.sets, self.clock, self.registry = sets, clock, ToolRegistry()

    def __call__(self, agent: str = "researcher", by: Principal = ME, **more: Any) -> AgentSession:
        manifest = more.pop("manifest", MANIFEST)
        return AgentSession(manifest, self.registry, self.sets, by=by, agent=agent, clock=self.clock, **more)


@pytest.fixture
def opening(sets: Exposures, clock: ManualClock) -> Opening:
    return Opening(sets, clock)


@pytest.mark.req("CAR-05")
@pytest.mark.req("CAR-08")
async def test_a_session_is_nothing_then_initial_then_grows_and_after_a_reset_is_nothing(opening: Opening) -> None:
    session = opening()
    assert await session.find_state() is None
    tools = await session.get_tools()
    assert list(tools) == list(META_TOOLS)
    assert await session.find_state() == FIRST
    await session.load_skill("dataAnalysis")
    assert (await session.state()).discovered_skills == ("webSearch", "dataAnalysis")
    await session.reset()
    assert await session.find_state() is None
    await session.reset()
    assert await session.find_state() is None
    assert await session.state() == FIRST


@pytest.mark.req("CAR-05")
async def test_a_reset_of_what_never_began_writes_nothing(opening: Opening) -> None:
    session = opening()
    await session.reset()
    assert (await session.exposure()).version == 0


@pytest.mark.req("CAR-08")
async def test_a_state_is_a_copy_that_cannot_be_changed(opening: Opening) -> None:
    session = opening()
    state = await session.state()
    with pytest.raises(AttributeError):
        state.discovered_skills = ()  # type: ignore[misc]
    assert json.loads(msgspec.json.encode(state)) == {
        "agentName": "researcher",
        "discoveredSkills": ["webSearch"],
        "loadedToolsets": ["search"],
        "exposedDomainTools": ["googleSearch", "bingSearch"],
    }
    await session.load_skill("charts")
    assert state == FIRST


@pytest.mark.req("CAR-31")
async def test_an_agent_that_there_is_not_is_refused(opening: Opening) -> None:
    with pytest.raises(ValidationError, match=r"unknown agent 'reseacher'\. Did you mean researcher") as caught:
        opening("reseacher")
    assert caught.value.context["availableAgents"] == ("researcher", "analyst", "anybody")
    assert caught.value.context["agentName"] == "reseacher"


@pytest.mark.req("CAR-07")
async def test_agents_and_conversations_do_not_touch_each_other(opening: Opening) -> None:
    analyst, elsewhere = opening("analyst"), opening(by=msgspec.structs.replace(ME, session="talk-2"))
    opening.registry.register("all", TOOLS)
    before = list(await analyst.get_tools())
    await elsewhere.state()
    await opening().load_skills(["dataAnalysis", "charts"])
    assert list(await analyst.get_tools()) == before
    assert await elsewhere.state() == FIRST


@pytest.mark.req("CAR-07")
async def test_two_openings_of_one_conversation_share_its_state(opening: Opening) -> None:
    first, second = opening(), opening()
    await first.load_skill("charts")
    assert (await second.state()).discovered_skills == ("webSearch", "charts")
    await second.unload_skill("charts")
    assert await first.state() == FIRST


async def test_a_session_without_a_conversation_has_a_handle_that_finds_it_again(opening: Opening) -> None:
    nobody = Principal(owner_id="acme", agent_id="someone")
    first, other = opening(by=nobody), opening(by=nobody)
    assert await first.find_state() is None
    await first.load_skill("charts")
    await other.state()
    assert first.handle != other.handle
    assert (await first.state()).discovered_skills == ("webSearch", "charts")
    found = opening(by=msgspec.structs.replace(nobody, agent_id="researcher"), handle=first.handle)
    assert await found.state() == await first.state()
    with pytest.raises(HandleRefused):
        await opening(by=nobody, handle=first.handle).state()
    opening.clock.advance(days=8)
    with pytest.raises(HandleRefused):
        await first.state()


@pytest.mark.req("O4")
async def test_routes_that_the_catalog_showed_are_in_the_same_set(opening: Opening) -> None:
    route = Exposed(item="docs://tools/x", via="ask", why="ask: x", since=opening.clock.now())
    await opening.sets.reveal(await opening.sets.open(None, by=ME), [route], by=ME)
    session = opening()
    assert await session.find_state() is None, "being shown a route is not beginning"
    assert await session.state() == FIRST
    assert (await session.exposure()).find(route.item) == route
    await session.reset()
    assert dict((await session.exposure()).items) == {}


@pytest.mark.req("CAR-12")
async def test_a_load_tells_what_it_changed_and_what_that_costs(opening: Opening) -> None:
    session = opening()
    done = await session.load_skill("dataAnalysis")
    assert done.is_changed
    assert done.state == await session.state()
    assert 0 < done.tokens_before < done.tokens_after
    again = await session.load_skill("dataAnalysis")
    assert not again.is_changed
    assert again.state == done.state
    assert again.tokens_before == again.tokens_after == done.tokens_after
    gone = await session.unload_skill("dataAnalysis")
    assert (gone.tokens_after, gone.ended, gone.kept_by) == (done.tokens_before, ("skill:dataAnalysis",), ())


@pytest.mark.req("CAR-14")
async def test_an_unload_tells_what_is_still_there_and_because_of_what(opening: Opening) -> None:
    session = opening()
    await session.load_skills(["dataAnalysis", "reporting", "charts"])
    assert (await session.unload_skill("charts")).kept_by == ("reporting",)
    await session.load_toolset("tables")
    done = await session.unload_toolset("tables")
    assert done.kept_by == ("dataAnalysis", "reporting")
    assert "readTable" in done.state.exposed_domain_tools
    await session.unload_skill("dataAnalysis")
    assert "readTable" in (await session.state()).exposed_domain_tools, "a shared toolset survives one owner"
    await session.unload_skill("reporting")
    assert await session.state() == FIRST


@pytest.mark.req("CAR-12")
async def test_several_skills_are_loaded_all_or_none(opening: Opening) -> None:
    session = opening()
    await session.state()
    with pytest.raises(ValidationError, match="unknown skill 'nope'"):
        await session.load_skills(["charts", "nope"])
    with pytest.raises(ValidationError):
        await session.get_tools(auto_load_skills=["charts", "deploying"])
    assert await session.state() == FIRST


@pytest.mark.req("CAR-12")
async def test_a_load_that_fails_in_a_session_that_never_began_leaves_it_so(opening: Opening) -> None:
    session = opening()
    with pytest.raises(ValidationError):
        await session.load_skill("nope")
    assert await session.find_state() is None


@pytest.mark.req("CAR-09")
async def test_the_audit_tells_when_and_by_what_skills_came_and_went_in_sequence(opening: Opening) -> None:
    session, clock = opening(), opening.clock
    start = clock.now()
    await session.state()
    clock.advance(minutes=1)
    await session.load_skill("reporting", by="loadSkill", why="a table was asked for")
    clock.advance(minutes=1)
    await session.load_skill("dataAnalysis", via="trigger", until=clock.now() + timedelta(minutes=1))
    clock.advance(minutes=2)
    await session.unload_skill("reporting", by="unloadSkill")
    clock.advance(minutes=1)
    await session.reset(by="ann")
    events = await session.audit()
    minute = [int((event.loaded_at - start).total_seconds() // 60) for event in events]
    left = [int((event.unloaded_at - start).total_seconds() // 60) for event in events if event.unloaded_at]
    assert [event.skill_name for event in events] == ["webSearch", "reporting", "charts", "dataAnalysis"]
    assert (minute, left) == ([0, 1, 1, 2], [5, 4, 4, 3])
    assert [event.loaded_by for event in events] == ["agent:researcher", "loadSkill", "skill:reporting", "trigger"]
    assert [event.unloaded_by for event in events] == ["ann", "unloadSkill", "unloadSkill", "clock"]
    assert [event.reason for event in events] == ["reset", "unloaded", "unloaded", "it expired"]
    assert events[1].why == "a table was asked for"
    assert {"skillName", "loadedAt", "loadedBy"} <= set(msgspec.to_builtins(events[0]))
    await session.load_skill("charts", by="ann")
    last = (await session.audit())[-1]
    assert (last.skill_name, last.loaded_by, last.unloaded_at) == ("charts", "ann", None)


@pytest.mark.req("CAR-16")
async def test_a_hundred_loads_at_once_end_as_one_after_the_other_would(opening: Opening) -> None:
    names = ["dataAnalysis", "reporting", "charts", "webSearch"] * 25
    session = opening()
    done = await asyncio.gather(*(session.load_skill(name) for name in names))
    other = opening(by=msgspec.structs.replace(ME, session="talk-2"))
    for name in names:
        await other.load_skill(name)
    states = [await session.state(), await other.state()]
    for field in ("discovered_skills", "loaded_toolsets", "exposed_domain_tools"):
        assert len({frozenset(getattr(state, field)) for state in states}) == 1
    assert sum(each.is_changed for each in done) == 3
    assert (await session.exposure()).version == (await other.exposure()).version


@pytest.mark.req("CAR-16")
async def test_loads_and_unloads_at_once_leave_nothing_half_done(opening: Opening) -> None:
    session = opening()
    await asyncio.gather(
        *(session.load_skill("dataAnalysis") if at % 2 else session.unload_skill("dataAnalysis") for at in range(60))
    )
    state = await session.state()
    has = "dataAnalysis" in state.discovered_skills
    assert has == ("analysis" in state.loaded_toolsets) == ("analyzeData" in state.exposed_domain_tools)
    events = [each for each in await session.audit() if each.skill_name == "dataAnalysis"]
    assert sum(each.unloaded_at is None for each in events) == has


@pytest.mark.req("CAR-10")
async def test_over_the_cap_a_load_is_refused_or_makes_room(opening: Opening) -> None:
    strict = opening(max_skills=2)
    await strict.load_skill("charts")
    with pytest.raises(ValidationError, match="3 skills are over the limit of 2"):
        await strict.load_skill("dataAnalysis")
    assert (await strict.state()).discovered_skills == ("webSearch", "charts")
    done = await opening(max_skills=2, when_full="evict").load_skill("dataAnalysis", by="ann")
    assert done.state.discovered_skills == ("webSearch", "dataAnalysis")
    assert done.ended == ("skill:charts",)
    (gone,) = (each for each in await strict.audit() if each.skill_name == "charts")
    assert (gone.reason, gone.unloaded_by) == ("over the limit of 2 skills", "ann")


@pytest.mark.req("CAR-10")
async def test_many_agents_leave_no_more_sets_in_memory_than_the_limit(clock: ManualClock) -> None:
    sets = MemoryExposures(clock, remembered=50)
    opening = Opening(sets, clock)
    busy = opening(by=msgspec.structs.replace(ME, session="busy"))
    await busy.load_skill("charts")
    for at in range(150):
        await opening(by=msgspec.structs.replace(ME, session=f"talk-{at}")).state()
        await busy.state()
    assert sets.live == 50
    assert (await busy.state()).discovered_skills == ("webSearch", "charts"), "one that is used stays"
    assert await opening(by=msgspec.structs.replace(ME, session="talk-5")).find_state() is None


@pytest.mark.req("CAR-10")
async def test_sets_on_the_trail_leave_memory_and_are_still_there(trail: Trail, clock: ManualClock) -> None:
    sets = TrailExposures(trail, clock, remembered=3)
    opening = Opening(sets, clock)
    for at in range(10):
        await opening(by=msgspec.structs.replace(ME, session=f"talk-{at}")).load_skill("charts")
    assert len(sets._known) == 3
    first = opening(by=msgspec.structs.replace(ME, session="talk-0"))
    assert (await first.state()).discovered_skills == ("webSearch", "charts")


@pytest.mark.req("CAR-16")
async def test_two_openings_of_a_trail_see_each_others_loads_and_unloads(tmp_path: Path, clock: ManualClock) -> None:
    trails = [await open_trail(f"sqlite://{tmp_path}/trail.db", clock) for _ in range(2)]
    try:
        one, two = (Opening(TrailExposures(each, clock), clock)() for each in trails)
        await one.load_skill("charts")
        assert await two.state() == await one.state()
        await two.unload_skill("charts")
        assert await one.state() == FIRST
        assert (await one.load_skill("charts")).is_changed, "what another process unloaded is loaded again"
        await asyncio.gather(*(each.load_skill(name) for each in (one, two) for name in ("dataAnalysis", "reporting")))
        assert await one.state() == await two.state()
        assert set((await one.state()).discovered_skills) == {"webSearch", "charts", "dataAnalysis", "reporting"}
    finally:
        for each in trails:
            await each.close()


@pytest.mark.req("CAR-21")
async def test_an_agent_gets_the_meta_tools_and_the_exposed_tools_only(opening: Opening) -> None:
    session = opening()
    five = {name: TOOLS[name] for name in ("googleSearch", "bingSearch", "analyzeData", "formatData", "plot")}
    tools = await session.get_tools(five)
    assert list(tools) == [*META_TOOLS, "googleSearch", "bingSearch"]
    assert tools["googleSearch"] is TOOLS["googleSearch"]
    assert await call(tools["bingSearch"], query="x") == "bingSearch(x)"
    assert list(await session.get_tools(five.values())) == list(tools)
    await session.load_skill("charts")
    assert "plot" not in tools, "a mapping is of one moment"
    assert "plot" in await session.get_tools(five)


@pytest.mark.req("CAR-22")
async def test_filtered_tools_have_a_reason(opening: Opening) -> None:
    tools = await opening().get_tools({"googleSearch": TOOLS["googleSearch"], "analyzeData": TOOLS["analyzeData"]})
    told = tools.diagnostics
    assert [(each.name, each.reason, each.toolsets) for each in told.filtered] == [
        ("analyzeData", "toolset not loaded", ("analysis",))
    ]
    assert (told.included, told.missing, told.unexpected) == (("googleSearch",), ("bingSearch",), ())


@pytest.mark.req("CAR-17")
async def test_skills_that_are_named_are_loaded_before_the_first_call(opening: Opening) -> None:
    session = opening()
    tools = await session.get_tools(TOOLS, auto_load_skills=["charts"])
    assert "plot" in tools
    loaded = (await session.audit())[-1]
    assert (loaded.skill_name, loaded.loaded_by) == ("charts", "autoLoadSkills")


@pytest.mark.req("CAR-19")
async def test_providers_run_once_and_only_for_exposed_toolsets(opening: Opening) -> None:
    ran: list[str] = []
    for toolset in ("search", "analysis"):
        names = MANIFEST.toolsets[toolset].tools
        opening.registry.register_tool_provider(
            toolset, lambda toolset=toolset, names=names: ran.append(toolset) or [TOOLS[name] for name in names]
        )
    session = opening()
    for _ in range(100):
        assert "googleSearch" in await session.get_tools()
    assert ran == ["search"]
    await session.load_skill("dataAnalysis")
    assert "analyzeData" in await session.get_tools()
    assert ran == ["search", "analysis"]


@pytest.mark.req("CAR-20")
@pytest.mark.parametrize("broken", [{"loadSkill": make_tool("x")}, {"a": None}, [None], 5])
async def test_tools_of_a_call_are_checked_as_registered_ones_are(opening: Opening, broken: Any) -> None:
    with pytest.raises(ValidationError, match=r"^tools: "):
        await opening().get_tools(broken)


async def test_a_skill_that_lost_its_trust_is_gone_at_once(opening: Opening) -> None:
    await opening().load_skill("charts")
    careful = opening(withhold=lambda skill: "not trusted" if skill.name == "charts" else "")
    assert await careful.state() == FIRST
    assert "plot" not in await careful.get_tools(TOOLS)


@pytest.mark.req("CAR-13")
async def test_the_text_of_a_skill_has_that_of_what_it_brings_and_of_its_toolsets_where_wanted(
    opening: Opening,
) -> None:
    assert (
        opening().skill_content("reporting") == "# reporting\n\nHow to do reporting.\n\n# charts\n\nHow to do charts."
    )
    noted = opening(toolset_notes=True, render=str.upper)
    text = noted.skill_content("reporting")
    assert text.endswith("HOW TO DO CHARTS.\n\nNOTES ON TABLES.\n\nNOTES ON VIS.")
    assert noted.toolset_content("vis") == "NOTES ON VIS."
    manifest = make_manifest([AgentSpec(name="researcher")], [make_skill("a", toolsets=("gone",), content=" ")])
    assert opening(manifest=manifest, toolset_notes=True).skill_content("a") == ""
