"""Loads and unloads of a session, with the dependencies of each skill."""

from __future__ import annotations

from datetime import timedelta

import pytest

from clew.errors import ValidationError
from clew.skills.exposure import Exposed
from clew.skills.manifest import AgentSpec
from clew.skills.sessions.loads import (
    MAX_NAMED,
    begin,
    load_skills,
    load_toolset,
    loadable_skills,
    loadable_toolsets,
    skills_bringing,
    unload_skill,
    unload_toolset,
)
from clew.skills.sessions.session import SessionState
from tests.skills.load_terms import NOW, STAMP, later, state_of, terms
from tests.skills.research_manifest import MANIFEST, make_manifest, make_skill


@pytest.mark.req("CAR-05")
def test_a_session_begins_with_the_initial_skills_and_what_follows_from_them() -> None:
    items = begin({}, terms(), NOW)
    assert list(items) == ["agent:researcher", "skill:webSearch"]
    assert state_of(items, terms()) == SessionState(
        agent_name="researcher",
        discovered_skills=("webSearch",),
        loaded_toolsets=("search",),
        exposed_domain_tools=("googleSearch", "bingSearch"),
    )
    loaded = items["skill:webSearch"]
    assert (loaded.via, loaded.since, loaded.by) == ("initial", NOW, "agent:researcher")
    assert items["agent:researcher"].via == "initial"


@pytest.mark.req("CAR-05")
def test_a_session_begins_once() -> None:
    items = begin({}, terms(), NOW)
    assert begin(items, terms(), NOW + timedelta(hours=1)) is items
    without = unload_skill(items, "webSearch", terms())
    assert begin(without, terms(), NOW) is without, "an initial skill that was unloaded stays away"


def test_beginning_keeps_the_routes_that_were_shown_before() -> None:
    route = Exposed(item="docs://tools/x", via="ask", why="", since=NOW)
    skill = Exposed(item="skill:webSearch", via="trigger", why="", since=NOW)
    items = begin({route.item: route, skill.item: skill}, terms(), NOW)
    assert items[route.item] is route
    assert items["skill:webSearch"].via == "initial", "a skill that loaded automatically stays now"


@pytest.mark.req("CAR-12")
def test_a_loaded_skill_brings_its_toolsets_and_their_tools() -> None:
    items = load_skills({}, ["dataAnalysis"], terms(), STAMP)
    state = state_of(items, terms())
    assert state.discovered_skills == ("dataAnalysis",)
    assert state.loaded_toolsets == ("analysis", "tables")
    assert state.exposed_domain_tools == ("analyzeData", "formatData", "readTable")
    loaded = items["skill:dataAnalysis"]
    assert (loaded.via, loaded.why, loaded.by, loaded.since, loaded.until) == ("load", "asked for", "ann", NOW, None)


@pytest.mark.req("CAR-12")
def test_loading_twice_changes_nothing() -> None:
    once = load_skills({}, ["dataAnalysis"], terms(), STAMP)
    assert load_skills(once, ["dataAnalysis", "dataAnalysis"], terms(), later(9)) is once
    toolset = load_toolset(once, "search", terms(), STAMP)
    assert load_toolset(toolset, "search", terms(), later(9)) == toolset


@pytest.mark.req("CAR-12")
def test_an_automatic_or_temporary_skill_stays_once_it_is_loaded_by_name() -> None:
    for stamp in (later(0, "trigger"), later(0, "intent"), later(0, "path"), later(0, until=NOW + timedelta(hours=1))):
        passing = load_skills({}, ["charts"], terms(), stamp)
        assert load_skills(passing, ["charts"], terms(), later(1, "trigger")) == passing
        assert load_skills(passing, ["charts"], terms(), later(1, until=NOW + timedelta(hours=9))) == passing
        kept = load_skills(passing, ["charts"], terms(), later(1))
        assert (kept["skill:charts"].via, kept["skill:charts"].until) == ("load", None)
        assert kept["skill:charts"].since == NOW + timedelta(minutes=1)


@pytest.mark.req("CAR-12")
@pytest.mark.req("CAR-31")
def test_a_skill_that_there_is_not_is_refused_with_the_nearest_and_all_that_there_are() -> None:
    with pytest.raises(ValidationError, match="unknown skill 'dataAnalysys'") as caught:
        load_skills({}, ["charts", "dataAnalysys"], terms(), STAMP)
    available = ("webSearch", "dataAnalysis", "reporting", "charts")
    assert caught.value.context == {
        "skillName": "dataAnalysys",
        "availableSkills": available,
        "requestedBy": "researcher",
    }
    assert caught.value.allowed == available
    assert "Did you mean dataAnalysis? Its skills are: webSearch, dataAnalysis" in caught.value.hint


@pytest.mark.req("CAR-31")
def test_an_error_counts_very_many_skills_instead_of_listing_them() -> None:
    skills = [make_skill(f"skill-{at:03}") for at in range(MAX_NAMED + 1)]
    thousands = terms("any", make_manifest([AgentSpec(name="any")], skills))
    with pytest.raises(ValidationError) as caught:
        load_skills({}, ["skill-0000"], thousands, STAMP)
    assert caught.value.hint == f"Did you mean skill-000? It may load {MAX_NAMED + 1} skills"
    assert len(caught.value.context["availableSkills"]) == MAX_NAMED + 1
    few = terms("any", make_manifest([AgentSpec(name="any")], skills[:-1]))
    with pytest.raises(ValidationError, match="Its skills are: skill-000, skill-001"):
        load_skills({}, ["zzz"], few, STAMP)


@pytest.mark.req("CAR-11")
def test_an_agent_loads_what_its_definition_names_and_nothing_else() -> None:
    assert loadable_skills(terms()) == ("webSearch", "dataAnalysis", "reporting", "charts")
    assert loadable_toolsets(terms()) == ("search", "analysis", "tables", "vis")
    with pytest.raises(
        ValidationError, match="agent researcher may not load skill deploying: it is not one of"
    ) as caught:
        load_skills({}, ["deploying"], terms(), STAMP)
    assert caught.value.context["requestedBy"] == "researcher"
    with pytest.raises(
        ValidationError, match="agent researcher may not load toolset ops: none of its skills"
    ) as caught:
        load_toolset({}, "ops", terms(), STAMP)
    assert caught.value.context == {
        "toolsetName": "ops",
        "availableToolsets": ("search", "analysis", "tables", "vis"),
        "requestedBy": "researcher",
    }


@pytest.mark.req("CAR-11")
def test_an_agent_that_names_no_skills_is_not_restricted() -> None:
    anybody = terms("anybody")
    assert loadable_skills(anybody) == tuple(MANIFEST.skills)
    assert loadable_toolsets(anybody) == tuple(MANIFEST.toolsets)
    items = load_toolset(load_skills({}, ["deploying"], anybody, STAMP), "spare", anybody, STAMP)
    assert state_of(items, anybody).loaded_toolsets == ("ops", "spare")
    assert loadable_skills(terms("analyst")) == ("dataAnalysis",), "initial skills alone are a restriction"


def test_a_loadable_skill_without_a_definition_is_not_offered() -> None:
    manifest = make_manifest([AgentSpec(name="a", initial_skills=("gone",), skills=("here",))], [make_skill("here")])
    given = terms("a", manifest)
    assert loadable_skills(given) == ("here",)
    assert state_of(begin({}, given, NOW), given).discovered_skills == ()


@pytest.mark.req("CAR-13")
def test_a_toolset_is_loaded_by_itself() -> None:
    items = load_toolset({}, "tables", terms(), STAMP)
    assert state_of(items, terms()) == SessionState(
        agent_name="researcher", loaded_toolsets=("tables",), exposed_domain_tools=("readTable",)
    )
    with pytest.raises(ValidationError, match=r"unknown toolset 'tabels'.*Did you mean tables"):
        load_toolset(items, "tabels", terms(), STAMP)


@pytest.mark.req("CAR-14")
def test_unloading_keeps_what_another_loaded_skill_needs() -> None:
    both = load_skills({}, ["dataAnalysis", "reporting"], terms(), STAMP)
    one = unload_skill(both, "dataAnalysis", terms())
    assert state_of(one, terms()).exposed_domain_tools == ("readTable", "plot")
    none = unload_skill(one, "reporting", terms())
    assert state_of(none, terms()) == SessionState(agent_name="researcher")


@pytest.mark.req("CAR-14")
def test_a_toolset_leaves_only_when_nothing_holds_it() -> None:
    items = load_toolset(load_skills({}, ["dataAnalysis"], terms(), STAMP), "tables", terms(), STAMP)
    assert skills_bringing(items, terms(), toolset="tables") == ("dataAnalysis",)
    by_skill = unload_toolset(items, "tables", terms())
    assert "toolset:tables" not in by_skill
    assert "tables" in state_of(by_skill, terms()).loaded_toolsets
    by_itself = unload_skill(items, "dataAnalysis", terms())
    assert state_of(by_itself, terms()).loaded_toolsets == ("tables",)
    assert state_of(unload_toolset(by_itself, "tables", terms()), terms()).loaded_toolsets == ()


@pytest.mark.req("CAR-14")
def test_unloading_what_is_not_loaded_changes_nothing_and_what_there_is_not_is_refused() -> None:
    assert unload_skill({}, "dataAnalysis", terms()) == {}
    assert unload_toolset({}, "tables", terms()) == {}
    with pytest.raises(ValidationError, match="unknown skill 'nope'"):
        unload_skill({}, "nope", terms())
    with pytest.raises(ValidationError, match="unknown toolset 'nope'"):
        unload_toolset({}, "nope", terms())


def test_a_skill_whose_definition_is_gone_can_be_unloaded() -> None:
    left = {name: Exposed(item=name, via="load", why="", since=NOW) for name in ("skill:old", "toolset:old", "skill:b")}
    assert list(unload_skill(left, "old", terms())) == ["toolset:old", "skill:b"]
    assert list(unload_toolset(left, "old", terms())) == ["skill:old", "skill:b"]
    assert state_of(left, terms()) == SessionState(agent_name="researcher"), "and gives nothing"


@pytest.mark.req("CAR-15")
def test_skills_that_a_skill_brings_come_and_go_with_it() -> None:
    items = load_skills({}, ["reporting"], terms(), STAMP)
    assert list(items) == ["skill:reporting"], "only named items are stored; dependencies follow from them"
    state = state_of(items, terms())
    assert (state.discovered_skills, state.loaded_toolsets) == (("reporting", "charts"), ("tables", "vis"))
    assert skills_bringing(items, terms(), skill="charts") == ("reporting",)
    both = load_skills(items, ["charts"], terms(), STAMP)
    assert state_of(unload_skill(both, "reporting", terms()), terms()).discovered_skills == ("charts",)
    assert state_of(unload_skill(both, "charts", terms()), terms()).discovered_skills == ("reporting", "charts")
