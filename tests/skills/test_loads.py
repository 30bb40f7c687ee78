"""Loading and unloading as pure functions: what follows, what is refused, and what leaves when a session is full."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import ManifestError, ValidationError
from clew.skills.exposure import Exposed, Items, Via
from clew.skills.loads import (
    MAX_NAMED,
    Stamp,
    Terms,
    begin,
    load_skills,
    load_toolset,
    loadable_skills,
    loadable_toolsets,
    skills_bringing,
    unload_skill,
    unload_toolset,
)
from clew.skills.manifest import Agent, Manifest, Skill
from clew.skills.session import MAX_LOAD_DEPTH, SessionState, cost_of, derive
from tests.skills.researching import MANIFEST, make_manifest, make_skill, make_toolset

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = Stamp(since=NOW, by="ann", why="asked for")


def terms(agent: str = "researcher", manifest: Manifest = MANIFEST, **more: Any) -> Terms:
    return Terms(manifest=manifest, agent=manifest.agents[agent], **more)


def state_of(items: Items, given: Terms) -> SessionState:
    return derive(given.manifest, given.agent.name, items, given.withhold)


def later(minutes: int, via: Via = "load", **more: Any) -> Stamp:
    return Stamp(since=NOW + timedelta(minutes=minutes), via=via, by="ann", **more)


def chain(length: int) -> Manifest:
    """Skills s1 → s2 → … of which each brings the next."""
    skills = [make_skill(f"s{at}", skills=(f"s{at + 1}",) if at < length else ()) for at in range(1, length + 1)]
    return make_manifest([Agent(name="any")], skills)


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
    assert items["skill:webSearch"].via == "initial", "what came by itself is there to stay now"


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
def test_what_came_by_itself_or_for_a_time_stays_when_it_is_loaded_by_name() -> None:
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
    with pytest.raises(ValidationError, match="no skill 'dataAnalysys'") as caught:
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
def test_of_very_many_skills_the_error_counts_instead_of_listing_them() -> None:
    skills = [make_skill(f"skill-{at:03}") for at in range(MAX_NAMED + 1)]
    many = terms("any", make_manifest([Agent(name="any")], skills))
    with pytest.raises(ValidationError) as caught:
        load_skills({}, ["skill-0000"], many, STAMP)
    assert caught.value.hint == f"Did you mean skill-000? It may load {MAX_NAMED + 1} skills"
    assert len(caught.value.context["availableSkills"]) == MAX_NAMED + 1
    few = terms("any", make_manifest([Agent(name="any")], skills[:-1]))
    with pytest.raises(ValidationError, match="Its skills are: skill-000, skill-001"):
        load_skills({}, ["zzz"], few, STAMP)


@pytest.mark.req("CAR-11")
def test_an_agent_loads_what_its_definition_names_and_nothing_else() -> None:
    assert loadable_skills(terms()) == ("webSearch", "dataAnalysis", "reporting", "charts")
    assert loadable_toolsets(terms()) == ("search", "analysis", "tables", "vis")
    with pytest.raises(
        ValidationError, match="agent researcher may not load skill deploying: it is not among"
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
    manifest = make_manifest([Agent(name="a", initial_skills=("gone",), skills=("here",))], [make_skill("here")])
    given = terms("a", manifest)
    assert loadable_skills(given) == ("here",)
    assert state_of(begin({}, given, NOW), given).discovered_skills == ()


@pytest.mark.req("CAR-13")
def test_a_toolset_is_loaded_by_itself() -> None:
    items = load_toolset({}, "tables", terms(), STAMP)
    assert state_of(items, terms()) == SessionState(
        agent_name="researcher", loaded_toolsets=("tables",), exposed_domain_tools=("readTable",)
    )
    with pytest.raises(ValidationError, match=r"no toolset 'tabels'.*Did you mean tables"):
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
    with pytest.raises(ValidationError, match="no skill 'nope'"):
        unload_skill({}, "nope", terms())
    with pytest.raises(ValidationError, match="no toolset 'nope'"):
        unload_toolset({}, "nope", terms())


def test_a_skill_whose_definition_is_gone_can_be_unloaded() -> None:
    left = {name: Exposed(item=name, via="load", why="", since=NOW) for name in ("skill:old", "toolset:old", "skill:b")}
    assert list(unload_skill(left, "old", terms())) == ["toolset:old", "skill:b"]
    assert list(unload_toolset(left, "old", terms())) == ["skill:old", "skill:b"]
    assert state_of(left, terms()) == SessionState(agent_name="researcher"), "and gives nothing"


@pytest.mark.req("CAR-15")
def test_skills_that_a_skill_brings_come_and_go_with_it() -> None:
    items = load_skills({}, ["reporting"], terms(), STAMP)
    assert list(items) == ["skill:reporting"], "only what was asked for is noted: the rest follows"
    state = state_of(items, terms())
    assert (state.discovered_skills, state.loaded_toolsets) == (("reporting", "charts"), ("tables", "vis"))
    assert skills_bringing(items, terms(), skill="charts") == ("reporting",)
    both = load_skills(items, ["charts"], terms(), STAMP)
    assert state_of(unload_skill(both, "reporting", terms()), terms()).discovered_skills == ("charts",)
    assert state_of(unload_skill(both, "charts", terms()), terms()).discovered_skills == ("reporting", "charts")


@pytest.mark.req("CAR-15")
@pytest.mark.parametrize(("skills", "circle"), [({"A": "B", "B": "A"}, "A → B → A"), ({"A": "A"}, "A → A")])
def test_skills_that_bring_each_other_in_a_cycle_are_refused(skills: Mapping[str, str], circle: str) -> None:
    made = [make_skill(name, skills=(other,)) for name, other in skills.items()]
    given = terms("any", make_manifest([Agent(name="any")], made))
    with pytest.raises(ValidationError, match=f"in a cycle: {circle}") as caught:
        load_skills({}, ["A"], given, STAMP)
    assert caught.value.context == {"skillName": "A", "cycle": circle}


@pytest.mark.req("CAR-15")
def test_a_cycle_below_the_skill_is_named_without_the_way_to_it() -> None:
    made = [make_skill("A", skills=("B",)), make_skill("B", skills=("C",)), make_skill("C", skills=("B",))]
    agent = Agent(name="any", initial_skills=("A",))
    given = terms("any", make_manifest([agent], made))
    with pytest.raises(ValidationError, match="in a cycle: B → C → B"):
        load_skills({}, ["A"], given, STAMP)
    with pytest.raises(ValidationError, match="in a cycle: B → C → B"):
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
    with pytest.raises(ValidationError, match="depth over 5 levels: s1 → s2 → s3 → s4 → s5 → s6") as caught:
        load_skills({}, ["s1"], terms("any", chain(6)), STAMP)
    assert caught.value.context == {"skillName": "s1", "depth": 6, "limit": 5}
    assert load_skills({}, ["s2"], terms("any", chain(6)), STAMP), "from the second there are five"
    assert len(state_of({"skill:s1": begin_item("s1")}, terms("any", chain(9))).discovered_skills) == 5


@pytest.mark.req("CAR-15")
def test_a_way_that_is_too_deep_is_found_also_behind_a_short_one() -> None:
    """The short way reaches s3 first: its depth must be counted by the longest."""
    skills = [make_skill("top", skills=("s3", "s1")), *chain(5).skills.values()]
    given = terms("any", make_manifest([Agent(name="any")], skills))
    with pytest.raises(ValidationError, match="top → s1 → s2 → s3 → s4 → s5"):
        load_skills({}, ["top"], given, STAMP)


@pytest.mark.req("CAR-15")
def test_a_wide_web_of_skills_is_checked_in_no_time() -> None:
    """Thirty skills a level, each bringing all of the next: 30⁴ ways, and 5 visits of each skill at most."""
    levels = [[f"l{level}-{at}" for at in range(30)] for level in range(5)]
    skills = [
        make_skill(name, skills=tuple(levels[level + 1]) if level < 4 else ())
        for level, names in enumerate(levels)
        for name in names
    ]
    given = terms("any", make_manifest([Agent(name="any")], skills), max_skills=1_000)
    items = load_skills({}, ["l0-0"], given, STAMP)
    assert len(state_of(items, given).discovered_skills) == 1 + 4 * 30


@pytest.mark.req("CAR-31")
def test_a_skill_that_brings_one_that_there_is_not_is_refused() -> None:
    given = terms("any", make_manifest([Agent(name="any")], [make_skill("A", skills=("gone",))]))
    with pytest.raises(ValidationError, match="no skill 'gone', which A brings"):
        load_skills({}, ["A"], given, STAMP)


def untrusted(skill: Skill) -> str:
    return "nobody has trusted its repository" if skill.name == "charts" else ""


@pytest.mark.req("CAR-12")
def test_a_skill_that_is_withheld_is_not_loaded_nor_one_that_brings_it() -> None:
    given = terms(withhold=untrusted)
    with pytest.raises(ValidationError, match="may not load skill charts: nobody has trusted its repository"):
        load_skills({}, ["charts"], given, STAMP)
    with pytest.raises(ValidationError, match="may not load skill reporting: it brings charts: nobody has trusted"):
        load_skills({}, ["reporting"], given, STAMP)
    loaded = load_skills({}, ["charts", "reporting"], terms(), STAMP)
    assert state_of(loaded, given).discovered_skills == ("reporting",), "trust that was lost takes effect at once"


def test_an_initial_skill_that_is_withheld_is_there_as_soon_as_it_is_not() -> None:
    agent = Agent(name="a", initial_skills=("charts",))
    manifest = make_manifest([agent], [make_skill("charts")])
    items = begin({}, terms("a", manifest, withhold=untrusted), NOW)
    assert state_of(items, terms("a", manifest, withhold=untrusted)).discovered_skills == ()
    assert state_of(items, terms("a", manifest)).discovered_skills == ("charts",)


def many(count: int) -> Manifest:
    agent = Agent(name="any", initial_skills=("s0",), skills=tuple(f"s{at}" for at in range(count)))
    return make_manifest([agent], [make_skill(f"s{at}") for at in range(count)])


@pytest.mark.req("CAR-10")
def test_over_the_cap_a_load_is_refused_with_what_is_loaded() -> None:
    given = terms("any", many(5), max_skills=3)
    items = load_skills(begin({}, given, NOW), ["s1", "s2"], given, STAMP)
    with pytest.raises(ValidationError, match=r"4 skills are over the cap of 3 of a session\. Unload") as caught:
        load_skills(items, ["s3"], given, STAMP)
    assert caught.value.context == {"loadedSkills": ["s0", "s1", "s2"], "limit": 3, "requestedBy": "any"}
    assert load_skills(items, ["s2", "s0"], given, STAMP) is items, "what is there already needs no room"


@pytest.mark.req("CAR-10")
def test_under_eviction_the_oldest_that_came_by_itself_leaves_first_and_never_an_initial_one() -> None:
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
def test_eviction_makes_room_for_several_and_gives_up_where_only_initial_ones_are_left() -> None:
    given = terms("any", many(9), max_skills=3, when_full="evict")
    items = load_skills(begin({}, given, NOW), ["s1", "s2"], given, STAMP)
    assert list(load_skills(items, ["s3", "s4"], given, later(1))) == ["agent:any", "skill:s0", "skill:s3", "skill:s4"]
    with pytest.raises(ValidationError, match="over the cap of 3"):
        load_skills(items, ["s3", "s4", "s5"], given, later(1))


@pytest.mark.req("CAR-10")
def test_skills_that_came_with_another_count_and_evicting_leaves_toolsets_and_routes_alone() -> None:
    given = terms("anybody", max_skills=2, when_full="evict")
    items = load_toolset(load_skills({}, ["webSearch"], given, STAMP), "spare", given, STAMP)
    items = {"skill://tools/x": Exposed(item="skill://tools/x", via="ask", why="", since=NOW), **items}
    assert list(load_skills(items, ["reporting"], given, later(1))) == [
        "skill://tools/x",
        "toolset:spare",
        "skill:reporting",
    ]
    with pytest.raises(ValidationError, match="2 skills are over the cap of 1"):
        load_skills({}, ["reporting"], terms("anybody", max_skills=1, when_full="evict"), STAMP)


def test_no_cap_keeps_an_initial_skill_out() -> None:
    agent = Agent(name="a", initial_skills=("s1", "s2", "s3"))
    manifest = make_manifest([agent], [make_skill(f"s{at}") for at in range(1, 4)])
    given = terms("a", manifest, max_skills=1)
    items = begin({}, given, NOW)
    assert len(state_of(items, given).discovered_skills) == 3
    assert load_skills(items, ["s1"], given, STAMP) is items


def test_the_cost_of_an_item_is_that_of_all_that_it_brings() -> None:
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


NAMES = [f"s{at}" for at in range(6)]
SETS = [f"t{at}" for at in range(4)]


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Any skills over any toolsets; a skill brings only later ones, so that most can be loaded."""
    toolsets = [make_toolset(name, *draw(st.lists(st.sampled_from("abcdef"), max_size=3))) for name in SETS]
    skills = [
        make_skill(
            name,
            toolsets=tuple(draw(st.lists(st.sampled_from([*SETS, "gone"]), max_size=3))),
            skills=tuple(draw(st.lists(st.sampled_from(NAMES[at + 1 :]), max_size=2, unique=True)) if at < 5 else ()),
        )
        for at, name in enumerate(NAMES)
    ]
    named = tuple(draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True)))
    initial = tuple(draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True)))
    return make_manifest([Agent(name="a", initial_skills=initial, skills=named)], skills, toolsets)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["load_skill", "unload_skill", "load_toolset", "unload_toolset", "reset"]),
        st.sampled_from(NAMES),
        st.sampled_from(SETS),
    ),
    max_size=12,
)


def operate(items: Items, operation: tuple[str, str, str], given: Terms) -> Items:
    """One operation; one that is refused leaves everything as it was."""
    kind, skill, toolset = operation
    begun = begin(items, given, NOW) if kind != "reset" else {}
    try:
        match kind:
            case "load_skill":
                return load_skills(begun, [skill], given, STAMP)
            case "unload_skill":
                return unload_skill(begun, skill, given)
            case "load_toolset":
                return load_toolset(begun, toolset, given, STAMP)
            case "unload_toolset":
                return unload_toolset(begun, toolset, given)
            case _:
                return {}
    except ManifestError:
        return begun


def model(manifest: Manifest, items: Items) -> tuple[set[str], set[str], set[str]]:
    """Skills, toolsets and tools worked out in another way: by adding until nothing is new."""
    skills = {item.removeprefix("skill:") for item in items if item.startswith("skill:")}
    while more := {each for name in skills for each in manifest.skills[name].skills} - skills:
        skills |= more
    toolsets = {item.removeprefix("toolset:") for item in items if item.startswith("toolset:")}
    toolsets |= {each for name in skills for each in manifest.skills[name].toolsets} & set(manifest.toolsets)
    return skills, toolsets, {tool for name in toolsets for tool in manifest.toolsets[name].tools}


@pytest.mark.req("CAR-06")
@settings(max_examples=150, deadline=None)
@given(manifest=manifests(), operations=OPERATIONS)
def test_after_any_operations_the_state_is_what_the_items_recompute_to(
    manifest: Manifest, operations: list[tuple[str, str, str]]
) -> None:
    given = terms("a", manifest)
    items: Items = {}
    for operation in operations:
        items = operate(items, operation, given)
        state = state_of(items, given)
        skills, toolsets, tools = model(manifest, items)
        assert set(state.discovered_skills) == skills
        assert set(state.loaded_toolsets) == toolsets <= set(manifest.toolsets), "no synthetic toolset"
        assert set(state.exposed_domain_tools) == tools
        for names in (state.discovered_skills, state.loaded_toolsets, state.exposed_domain_tools):
            assert len(names) == len(set(names)), "each once"
        assert all(name.split(":")[0] in ("agent", "skill", "toolset") for name in items)


@pytest.mark.req("CAR-06")
@settings(max_examples=100, deadline=None)
@given(manifest=manifests(), names=st.lists(st.sampled_from(NAMES), max_size=6), data=st.data())
def test_the_order_of_loads_does_not_matter_for_what_is_there(
    manifest: Manifest, names: list[str], data: st.DataObject
) -> None:
    given = terms("a", manifest)
    shuffled = data.draw(st.permutations(names))
    states = []
    for order in (names, shuffled):
        items: Items = {}
        for name in order:
            items = operate(items, ("load_skill", name, ""), given)
        states.append(state_of(items, given))
    for field in ("discovered_skills", "loaded_toolsets", "exposed_domain_tools"):
        assert set(getattr(states[0], field)) == set(getattr(states[1], field))


@pytest.mark.req("CAR-14")
@settings(max_examples=100, deadline=None)
@given(manifest=manifests(), names=st.lists(st.sampled_from(NAMES), max_size=4), name=st.sampled_from(NAMES))
def test_unloading_undoes_a_load(manifest: Manifest, names: list[str], name: str) -> None:
    given = terms("a", manifest)
    items: Items = begin({}, given, NOW)
    for each in names:
        items = operate(items, ("load_skill", each, ""), given)
    if f"skill:{name}" in items:
        return
    after = unload_skill(operate(items, ("load_skill", name, ""), given), name, given)
    assert after == items
