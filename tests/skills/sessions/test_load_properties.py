"""Properties that hold after any operations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import ManifestError
from clew.skills.exposure import Items
from clew.skills.manifest import AgentSpec, Manifest
from clew.skills.sessions.loads import (
    LoadTerms,
    begin,
    load_skills,
    load_toolset,
    unload_skill,
    unload_toolset,
)
from tests.skills.load_terms import NOW, STAMP, state_of, terms
from tests.skills.research_manifest import make_manifest, make_skill, make_toolset

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
    return make_manifest([AgentSpec(name="a", initial_skills=initial, skills=named)], skills, toolsets)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["load_skill", "unload_skill", "load_toolset", "unload_toolset", "reset"]),
        st.sampled_from(NAMES),
        st.sampled_from(SETS),
    ),
    max_size=12,
)


def operate(items: Items, operation: tuple[str, str, str], given: LoadTerms) -> Items:
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
    """Skills, toolsets and tools computed in another way: adding until nothing is new."""
    skills = {item.removeprefix("skill:") for item in items if item.startswith("skill:")}
    while more := {each for name in skills for each in manifest.skills[name].skills} - skills:
        skills |= more
    toolsets = {item.removeprefix("toolset:") for item in items if item.startswith("toolset:")}
    toolsets |= {each for name in skills for each in manifest.skills[name].toolsets} & set(manifest.toolsets)
    return skills, toolsets, {tool for name in toolsets for tool in manifest.toolsets[name].tools}


@pytest.mark.req("CAR-06")
@settings(max_examples=75, deadline=None)
@given(manifest=manifests(), operations=OPERATIONS)
def test_after_any_operations_the_state_follows_from_the_items(
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
@settings(max_examples=50, deadline=None)
@given(manifest=manifests(), names=st.lists(st.sampled_from(NAMES), max_size=6), data=st.data())
def test_the_order_of_loads_does_not_matter(manifest: Manifest, names: list[str], data: st.DataObject) -> None:
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
@settings(max_examples=50, deadline=None)
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
