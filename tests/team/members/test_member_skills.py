"""Skills of members in conversations: loaded by word, phase or call, and unloaded again."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.members.member_skills import MemberSkills
from clew.team.members.roster import roster, shipped_manifest, tools_of_skills
from clew.tools.tool import Effects, Tool, tool
from clew.trail.store import Trail
from tests.team.members.working import working

TRIGGERS = [
    ("architect", "Please stop the work", "interrupt_handler"),
    ("architect", "Use Redis instead", "modify_plan"),
    ("architect", "Repair the failing checks", "create_fix_dag"),
    ("engineer", "Where is the parser?", "consult_librarian"),
    ("engineer", "Did we try this before?", "consult_archivalist"),
    ("engineer", "What is the best practice here?", "consult_academic"),
    ("inspector", "Could this deadlock?", "deep_analysis"),
    ("inspector", "Explain the second finding", "explain_issue"),
    ("tester", "Look at the coverage", "coverage_analysis"),
    ("tester", "Generate a case for empty input", "generate_test_code"),
    ("guide", "Switch to billing", "session_switch"),
    ("guide", "Show my sessions", "session_list"),
    ("guide", "Announce the freeze", "broadcast"),
    ("designer", "The grid breaks", "analyze_layout"),
    ("designer", "Animate the drawer", "suggest_animation"),
    ("designer", "Audit the colours", "audit_consistency"),
    ("designer", "Add a disabled variant", "generate_variants"),
    ("designer", "Which hook holds the data?", "consult_engineer"),
    ("librarian", "What depends on it?", "analyze_dependencies"),
    ("librarian", "Which convention holds?", "detect_patterns"),
    ("academic", "Read the RFC", "ingest_source"),
    ("academic", "Write a proposal", "design_proposal"),
    ("archivalist", "What happened in the past?", "cross_session_query"),
    ("archivalist", "Promote it", "promote_pattern"),
    ("archivalist", "Give a summary", "session_summary"),
]


def stand_in(name: str) -> Tool:
    """A tool of that name that does nothing."""

    async def call(text: str = "") -> str:
        """Do nothing."""
        return f"{name} ran"

    return tool(name=name, searchable=False, effects=Effects(reads_only=True))(call)


def stand_ins(*roles: str) -> list[Tool]:
    manifest = shipped_manifest()
    names = {each for role in roles for each in tools_of_skills(manifest.agents[role].loadable, manifest)}
    return [stand_in(name) for name in sorted(names)]


@pytest.mark.req("SYL-19", "SYL-21", "SYL-23", "SYL-24", "SYL-25", "SYL-28")
@pytest.mark.parametrize("role", sorted({role for role, _, _ in TRIGGERS}))
async def test_a_word_brings_a_skill_of_the_second_tier_with_its_tools(
    trail: Trail, clock: ManualClock, me: Principal, role: str
) -> None:
    core = set(tools_of_skills(roster()[role].core, shipped_manifest()))
    async with working(trail, clock, me, tools=stand_ins(role)) as team:
        for text, skill in [(text, skill) for whose, text, skill in TRIGGERS if whose == role]:
            content = shipped_manifest().skills[skill].content
            tools = set(tools_of_skills([skill], shipped_manifest()))
            await team.tell(role, text)
            assert content in team.shown(), skill
            assert tools <= team.tools()
            await team.tell(role, "Thank you.")
            assert content not in team.shown()
            assert not (tools - core) & team.tools()


@pytest.mark.req("SYL-19")
async def test_a_member_sees_exactly_the_tools_of_its_core(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with working(trail, clock, me, tools=stand_ins("engineer", "designer", "architect")) as team:
        await team.tell("engineer", "Begin.")
        core = set(tools_of_skills(roster()["engineer"].core, shipped_manifest()))
        assert team.tools() == {*core, "load_skill"}


@pytest.mark.req("SYL-19")
async def test_a_skill_of_the_third_tier_comes_only_by_name(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [
        {"user": "every page", "say": "No."},
        {"user": "Load it", "call": {"load_skill": {"name": "responsive_audit"}}},
        {"call": {"responsive_audit": {}}},
        {"say": "Done."},
    ]
    async with working(trail, clock, me, script, tools=stand_ins("designer")) as team:
        await team.tell("designer", "A responsive audit of every page, mobile and tablet")
        assert "responsive_audit" not in team.tools()
        await team.tell("designer", "Load it.", session="s2")
        assert "responsive_audit" in team.tools()
        assert await team.results("responsive_audit") == ["responsive_audit ran"]


@pytest.mark.req("SYL-19")
async def test_a_tool_of_a_skill_that_is_not_loaded_is_refused(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [{"call": {"theme_migration": {}}}, {"say": "Done."}]
    async with working(trail, clock, me, script, tools=stand_ins("designer")) as team:
        await team.tell("designer", "Begin.")
        [error] = await team.results("theme_migration")
        assert "theme_migration is not loaded" in error
        assert "load_skill" in error


@pytest.mark.req("SYL-19")
async def test_a_skill_of_another_agent_is_refused(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [{"call": {"load_skill": {"name": "plan"}}}, {"say": "Done."}]
    async with working(trail, clock, me, script) as team:
        await team.tell("engineer", "Begin.")
        [error] = await team.results("load_skill")
        assert "plan" in error


@pytest.mark.req("SYL-19")
async def test_a_phase_brings_a_skill(trail: Trail, clock: ManualClock, me: Principal) -> None:
    import msgspec

    from clew.skills.manifest import Manifest, Triggers

    shipped = shipped_manifest()
    by_phase = msgspec.structs.replace(shipped.skills["coverage_analysis"], triggers=Triggers(phases=("testing",)))

    async def manifest_of() -> Manifest:
        return msgspec.structs.replace(shipped, skills={**shipped.skills, by_phase.name: by_phase})

    async def phase_of(session: str) -> str:
        return "testing" if session == "s1" else "planning"

    skills = MemberSkills(trail, clock, manifest_of, me, phase_of=phase_of)
    for session, expected in (("s1.main.tester", ["coverage_analysis"]), ("s2.main.tester", [])):
        assert [each.skill for each in await skills.called("Go on.", agent="tester", session=session)] == expected
