"""Three tiers of skills: loaded at the start, while a trigger applies, and only by name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from clew.clock import ManualClock
from clew.skills.exposure import Exposed, Exposures
from clew.skills.manifest import AgentSpec, Manifest, Skill, Tier, Triggers
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.skills.triggers import Turn
from tests.skills.research_manifest import ME

ME_AS_LIBRARIAN = replace(ME, agent_id="librarian")


def skill(name: str, tier: Tier, pattern: str = "", priority: int = 0, skills: tuple[str, ...] = ()) -> Skill:
    return Skill(
        name=name,
        description=f"About {name}",
        tier=tier,
        priority=priority,
        triggers=Triggers(pattern=pattern),
        skills=skills,
    )


MANIFEST = Manifest(
    agents={
        "librarian": AgentSpec(name="librarian"),
        "narrow": AgentSpec(name="narrow", initial_skills=("search",), skills=("patterns",)),
    },
    skills={
        each.name: each
        for each in (
            skill("search", 1),
            skill("dependencies", 2, "depend|import"),
            skill("patterns", 2, "pattern|depend", priority=5),
            skill("rewrite", 3, "rewrite"),
            skill("circle", 2, "circle", skills=("circle",)),
        )
    },
)


@pytest.fixture
def librarian(sets: Exposures, clock: ManualClock) -> AgentSession:
    return AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="librarian", clock=clock)


async def loaded(session: AgentSession) -> tuple[str, ...]:
    return (await session.state()).discovered_skills


@pytest.mark.req("SYL-19")
async def test_a_session_starts_with_the_first_tier_only(librarian: AgentSession) -> None:
    assert await loaded(librarian) == ("search",)


@pytest.mark.req("SYL-19")
async def test_a_trigger_loads_a_skill_and_the_next_unrelated_turn_unloads_it(librarian: AgentSession) -> None:
    done = await librarian.follow(Turn(text="What imports this module?"))
    assert done.state.discovered_skills == ("search", "dependencies")
    again = await librarian.follow(Turn(text="And who imports that one?"))
    assert not again.is_changed
    gone = await librarian.follow(Turn(text="Thanks, something else."))
    assert (gone.state.discovered_skills, gone.ended) == (("search",), ("skill:dependencies",))
    events = [(each.skill_name, each.reason) for each in await librarian.audit() if each.unloaded_at]
    assert events == [("dependencies", "the conversation moved on")]


@pytest.mark.req("SYL-19")
async def test_the_third_tier_loads_only_by_name(librarian: AgentSession) -> None:
    await librarian.follow(Turn(text="rewrite it"))
    assert await loaded(librarian) == ("search",)
    await librarian.load_skill("rewrite")
    await librarian.follow(Turn(text="something else"))
    assert await loaded(librarian) == ("search", "rewrite")


async def test_a_skill_loaded_by_name_stays_when_the_topic_changes(librarian: AgentSession) -> None:
    await librarian.follow(Turn(text="depend"))
    await librarian.load_skill("dependencies")
    await librarian.follow(Turn(text="something else"))
    assert await loaded(librarian) == ("search", "dependencies")


async def test_a_skill_that_cannot_load_does_not_prevent_others(librarian: AgentSession) -> None:
    done = await librarian.follow(Turn(text="depend on a circle"))
    assert done.state.discovered_skills == ("search", "patterns", "dependencies")


async def test_with_room_for_one_the_higher_priority_loads(sets: Exposures, clock: ManualClock) -> None:
    session = AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="librarian", clock=clock, max_skills=2)
    done = await session.follow(Turn(text="depend"))
    assert done.state.discovered_skills == ("search", "patterns")


async def test_only_loadable_skills_are_triggered(sets: Exposures, clock: ManualClock) -> None:
    session = AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="narrow", clock=clock)
    done = await session.follow(Turn(text="depend"))
    assert done.state.discovered_skills == ("search", "patterns")


async def test_a_turn_changes_only_skills(librarian: AgentSession, sets: Exposures, clock: ManualClock) -> None:
    await librarian.follow(Turn(text="depend"))
    rule = Exposed(item="rule:src/AGENTS.md", via="path", why="read src/a.py", since=clock.now())
    await sets.reveal(await librarian.exposure(), [rule], by=ME_AS_LIBRARIAN)
    await librarian.follow(Turn(text="something else"))
    assert (await librarian.exposure()).find(rule.item) == rule
    assert await loaded(librarian) == ("search",)


async def test_a_session_without_initial_skills_has_only_loaded_ones(sets: Exposures, clock: ManualClock) -> None:
    session = AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="librarian", clock=clock, brings=False)
    assert await loaded(session) == ()
    await session.load_skill("rewrite")
    assert await loaded(session) == ("rewrite",)


async def test_a_refused_skill_is_not_triggered_and_is_unloaded(librarian: AgentSession) -> None:
    turn = Turn(text="on what does it depend?")
    assert [each.skill for each in librarian.triggered(turn)] == ["patterns", "dependencies"]
    await librarian.follow(turn)
    await librarian.follow(turn, refused=["patterns"])
    assert await loaded(librarian) == ("search", "dependencies")
