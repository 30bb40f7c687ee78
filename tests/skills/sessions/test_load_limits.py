"""Reasons why a skill may not load: cycles, depth, consent and the limit of loaded skills."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from clew.errors import ValidationError
from clew.skills.exposure import Exposed
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.skills.sessions.loads import (
    begin,
    load_skills,
    load_toolset,
)
from clew.skills.sessions.session import MAX_LOAD_DEPTH, SessionState, cost_of
from tests.skills.load_terms import NOW, STAMP, later, state_of, terms
from tests.skills.research_manifest import MANIFEST, make_manifest, make_skill, make_toolset


def chain(length: int) -> Manifest:
    """Skills s1 → s2 → … of which each brings the next."""
    skills = [make_skill(f"s{at}", skills=(f"s{at + 1}",) if at < length else ()) for at in range(1, length + 1)]
    return make_manifest([AgentSpec(name="any")], skills)


@pytest.mark.req("CAR-15")
@pytest.mark.parametrize(("skills", "circle"), [({"A": "B", "B": "A"}, "A → B → A"), ({"A": "A"}, "A → A")])
def test_circular_dependencies_are_refused(skills: Mapping[str, str], circle: str) -> None:
    made = [make_skill(name, skills=(other,)) for name, other in skills.items()]
    given = terms("any", make_manifest([AgentSpec(name="any")], made))
    with pytest.raises(ValidationError, match=f"circular dependency of skills: {circle}") as caught:
        load_skills({}, ["A"], given, STAMP)
    assert caught.value.context == {"skillName": "A", "cycle": circle}


@pytest.mark.req("CAR-15")
def test_the_error_names_only_the_cycle() -> None:
    made = [make_skill("A", skills=("B",)), make_skill("B", skills=("C",)), make_skill("C", skills=("B",))]
    agent = AgentSpec(name="any", initial_skills=("A",))
    given = terms("any", make_manifest([agent], made))
    with pytest.raises(ValidationError, match="circular dependency of skills: B → C → B"):
        load_skills({}, ["A"], given, STAMP)
    with pytest.raises(ValidationError, match="circular dependency of skills: B → C → B"):
        begin({}, given, NOW)
    assert state_of({"skill:A": begin_item("A")}, given).discovered_skills == ("A", "B", "C"), "deriving never fails"


def begin_item(name: str) -> Exposed:
    return Exposed(item=f"skill:{name}", via="load", why="", since=NOW)


@pytest.mark.req("CAR-15")
def test_five_levels_pass_and_six_fail() -> None:
    assert MAX_LOAD_DEPTH == 5
    five = terms("any", chain(5))
    items = load_skills({}, ["s1"], five, STAMP)
    assert state_of(items, five).discovered_skills == ("s1", "s2", "s3", "s4", "s5")
    with pytest.raises(ValidationError, match="deeper than 5 levels: s1 → s2 → s3 → s4 → s5 → s6") as caught:
        load_skills({}, ["s1"], terms("any", chain(6)), STAMP)
    assert caught.value.context == {"skillName": "s1", "depth": 6, "limit": 5}
    assert load_skills({}, ["s2"], terms("any", chain(6)), STAMP), "from the second there are five"
    assert len(state_of({"skill:s1": begin_item("s1")}, terms("any", chain(9))).discovered_skills) == 5


@pytest.mark.req("CAR-15")
def test_a_chain_that_is_too_deep_is_found_behind_a_short_one() -> None:
    """The short way reaches s3 first: its depth must be counted by the longest."""
    skills = [make_skill("top", skills=("s3", "s1")), *chain(5).skills.values()]
    given = terms("any", make_manifest([AgentSpec(name="any")], skills))
    with pytest.raises(ValidationError, match="top → s1 → s2 → s3 → s4 → s5"):
        load_skills({}, ["top"], given, STAMP)


@pytest.mark.req("CAR-15")
def test_a_wide_graph_of_skills_is_loaded_without_following_every_path() -> None:
    """Thirty skills a level, each bringing all of the next: 30⁴ ways, and 5 visits of each skill at most."""
    levels = [[f"l{level}-{at}" for at in range(30)] for level in range(5)]
    skills = [
        make_skill(name, skills=tuple(levels[level + 1]) if level < 4 else ())
        for level, names in enumerate(levels)
        for name in names
    ]
    given = terms("any", make_manifest([AgentSpec(name="any")], skills), max_skills=1_000)
    items = load_skills({}, ["l0-0"], given, STAMP)
    assert len(state_of(items, given).discovered_skills) == 1 + 4 * 30


@pytest.mark.req("CAR-31")
def test_a_skill_with_an_unknown_dependency_is_refused() -> None:
    given = terms("any", make_manifest([AgentSpec(name="any")], [make_skill("A", skills=("gone",))]))
    with pytest.raises(ValidationError, match="unknown skill 'gone', which A includes"):
        load_skills({}, ["A"], given, STAMP)


def untrusted(skill: Skill) -> str:
    return "nobody has trusted its repository" if skill.name == "charts" else ""


@pytest.mark.req("CAR-12")
def test_withheld_skills_and_skills_that_include_them_do_not_load() -> None:
    given = terms(withhold=untrusted)
    with pytest.raises(ValidationError, match="may not load skill charts: nobody has trusted its repository"):
        load_skills({}, ["charts"], given, STAMP)
    with pytest.raises(ValidationError, match="may not load skill reporting: it includes charts: nobody has trusted"):
        load_skills({}, ["reporting"], given, STAMP)
    loaded = load_skills({}, ["charts", "reporting"], terms(), STAMP)
    assert state_of(loaded, given).discovered_skills == ("reporting",), "trust that was lost takes effect at once"


def test_a_withheld_initial_skill_appears_as_soon_as_it_is_allowed() -> None:
    agent = AgentSpec(name="a", initial_skills=("charts",))
    manifest = make_manifest([agent], [make_skill("charts")])
    items = begin({}, terms("a", manifest, withhold=untrusted), NOW)
    assert state_of(items, terms("a", manifest, withhold=untrusted)).discovered_skills == ()
    assert state_of(items, terms("a", manifest)).discovered_skills == ("charts",)


def many(count: int) -> Manifest:
    agent = AgentSpec(name="any", initial_skills=("s0",), skills=tuple(f"s{at}" for at in range(count)))
    return make_manifest([agent], [make_skill(f"s{at}") for at in range(count)])


@pytest.mark.req("CAR-10")
def test_over_the_limit_a_load_is_refused_with_the_loaded_skills() -> None:
    given = terms("any", many(5), max_skills=3)
    items = load_skills(begin({}, given, NOW), ["s1", "s2"], given, STAMP)
    with pytest.raises(ValidationError, match=r"4 skills are over the limit of 3 for a session\. Unload") as caught:
        load_skills(items, ["s3"], given, STAMP)
    assert caught.value.context == {"loadedSkills": ["s0", "s1", "s2"], "limit": 3, "requestedBy": "any"}
    assert load_skills(items, ["s2", "s0"], given, STAMP) is items, "what is there already needs no room"


@pytest.mark.req("CAR-10")
def test_eviction_takes_the_oldest_automatic_load_first_and_no_initial_skill() -> None:
    given = terms("any", many(9), max_skills=4, when_full="evict")
    items = begin({}, given, NOW)
    items = load_skills(items, ["s1"], given, later(1))
    items = load_skills(items, ["s2"], given, later(3, "trigger"))
    items = load_skills(items, ["s3"], given, later(2, "path"))
    order = []
    for at, name in enumerate(("s4", "s5", "s6", "s7"), 4):
        after = load_skills(items, [name], given, later(at))
        order += [item for item in items if item not in after]
        items = after
    assert order == ["skill:s3", "skill:s2", "skill:s1", "skill:s4"]
    assert list(items) == ["agent:any", "skill:s0", "skill:s5", "skill:s6", "skill:s7"]


@pytest.mark.req("CAR-10")
def test_eviction_makes_room_for_several_and_fails_with_only_initial_skills() -> None:
    given = terms("any", many(9), max_skills=3, when_full="evict")
    items = load_skills(begin({}, given, NOW), ["s1", "s2"], given, STAMP)
    assert list(load_skills(items, ["s3", "s4"], given, later(1))) == ["agent:any", "skill:s0", "skill:s3", "skill:s4"]
    with pytest.raises(ValidationError, match="over the limit of 3"):
        load_skills(items, ["s3", "s4", "s5"], given, later(1))


@pytest.mark.req("CAR-10")
def test_dependencies_count_and_eviction_keeps_toolsets_and_routes() -> None:
    given = terms("anybody", max_skills=2, when_full="evict")
    items = load_toolset(load_skills({}, ["webSearch"], given, STAMP), "spare", given, STAMP)
    items = {"skill://tools/x": Exposed(item="skill://tools/x", via="ask", why="", since=NOW), **items}
    assert list(load_skills(items, ["reporting"], given, later(1))) == [
        "skill://tools/x",
        "toolset:spare",
        "skill:reporting",
    ]
    with pytest.raises(ValidationError, match="2 skills are over the limit of 1"):
        load_skills({}, ["reporting"], terms("anybody", max_skills=1, when_full="evict"), STAMP)


def test_the_limit_does_not_apply_to_initial_skills() -> None:
    agent = AgentSpec(name="a", initial_skills=("s1", "s2", "s3"))
    manifest = make_manifest([agent], [make_skill(f"s{at}") for at in range(1, 4)])
    given = terms("a", manifest, max_skills=1)
    items = begin({}, given, NOW)
    assert len(state_of(items, given).discovered_skills) == 3
    assert load_skills(items, ["s1"], given, STAMP) is items


def test_the_cost_of_an_item_includes_its_dependencies() -> None:
    items = load_skills({}, ["reporting", "charts"], terms(), STAMP)
    reporting, charts = items["skill:reporting"].tokens, items["skill:charts"].tokens
    assert 0 < charts < reporting
    assert reporting == cost_of(MANIFEST, state_of({"skill:reporting": items["skill:reporting"]}, terms()))
    assert cost_of(MANIFEST, state_of(items, terms())) == reporting, "what is shared is paid once"
    assert cost_of(MANIFEST, SessionState(agent_name="")) == 0
    bare = make_manifest([], [], [make_toolset("t", "a")])
    with_schema = cost_of(bare, SessionState(agent_name="", exposed_domain_tools=("a", "unknown")))
    entry = msgspec.structs.replace(bare.tools["a"], schema={})
    plain = msgspec.structs.replace(bare, tools={"a": entry})
    assert 0 < cost_of(plain, SessionState(agent_name="", exposed_domain_tools=("a",))) < with_schema
