"""The ten agents that come with Clew: modes, tiers and techniques."""

from __future__ import annotations

import pytest

from clew.errors import InvalidInput
from clew.skills.manifest import AgentSpec
from clew.team.members.member_definitions import member_prompt
from clew.team.members.roster import (
    ROOT,
    get_member,
    require_may_address_user,
    roster,
    shipped_manifest,
    team_manifest,
    tools_of_member,
)
from clew.team.messages.message_types import AGENTS

ENGINEER = ("execute_task", "read_file", "write_file", "edit_file", "run_command", "request_help")
TIERS = {
    "guide": (
        ("route", "classify", "help", "status", "task_interact"),
        ("session_switch", "session_list", "broadcast"),
        (),
    ),
    "archivalist": (
        ("store", "query", "briefing"),
        ("cross_session_query", "promote_pattern", "session_summary"),
        ("fact_extraction", "conflict_resolution"),
    ),
    "architect": (
        ("plan", "clarify", "status_update", "approve_plan"),
        ("modify_plan", "create_fix_dag", "interrupt_handler"),
        (),
    ),
    "engineer": (ENGINEER, ("consult_librarian", "consult_archivalist", "consult_academic"), ()),
    "designer": (
        (
            "create_component",
            "style_component",
            "get_design_tokens",
            "find_component",
            "preview_ui",
            "check_accessibility",
        ),
        (
            "analyze_layout",
            "suggest_animation",
            "audit_consistency",
            "generate_variants",
            "consult_engineer",
            "consult_academic",
        ),
        ("design_system_scaffold", "theme_migration", "responsive_audit"),
    ),
    "librarian": (
        ("search_code", "get_context", "list_files", "get_structure"),
        ("analyze_dependencies", "detect_patterns"),
        (),
    ),
    "academic": (("research", "compare", "best_practices"), ("ingest_source", "design_proposal"), ()),
    "inspector": (
        ("validate_task", "validate_full", "check_style", "report_issues"),
        ("deep_analysis", "explain_issue"),
        (),
    ),
    "tester": (
        ("plan_tests", "run_tests", "analyze_failures", "report_results"),
        ("generate_test_code", "coverage_analysis"),
        (),
    ),
}
SCRATCHPAD, STYLE, COMPONENTS, MISTAKES, PREVIEW = (
    "scratchpad",
    "style_inference",
    "component_registry",
    "mistake_memory",
    "diff_preview",
)
PREFERENCES, SNAPSHOTS, PACKAGES, CONTINUITY, TOKENS = (
    "user_preferences",
    "file_snapshots",
    "dependency_awareness",
    "task_continuity",
    "design_tokens",
)
ALL_TECHNIQUES = {
    SCRATCHPAD,
    STYLE,
    COMPONENTS,
    MISTAKES,
    PREVIEW,
    PREFERENCES,
    SNAPSHOTS,
    PACKAGES,
    CONTINUITY,
    TOKENS,
}
TECHNIQUES = {
    "guide": {PREFERENCES},
    "architect": {SCRATCHPAD, PREFERENCES, CONTINUITY},
    "engineer": ALL_TECHNIQUES,
    "inspector": {SCRATCHPAD, STYLE, MISTAKES, SNAPSHOTS, PACKAGES, TOKENS},
    "tester": {SCRATCHPAD, STYLE, MISTAKES, SNAPSHOTS, PACKAGES, CONTINUITY},
    "designer": {SCRATCHPAD, COMPONENTS, PREVIEW, PREFERENCES, TOKENS},
}


@pytest.mark.req("SYL-18")
def test_ten_agents_have_their_modes() -> None:
    modes = {name: member.mode.value for name, member in roster().items()}
    assert sorted(modes) == sorted(AGENTS)
    assert {name for name, mode in modes.items() if mode == "primary"} == {
        "architect",
        "designer",
        "inspector",
        "tester",
    }
    assert {name for name, mode in modes.items() if mode == "direct"} == {"academic", "librarian", "archivalist"}
    assert {name for name, mode in modes.items() if mode == "none"} == {"orchestrator", "engineer", "guide"}


@pytest.mark.req("SYL-18")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_without_a_mode_of_talking_is_refused_the_user(name: str) -> None:
    if get_member(name).may_address_user:
        require_may_address_user(name)
        return
    with pytest.raises(InvalidInput, match="never addresses the user"):
        require_may_address_user(name)


@pytest.mark.req("SYL-19", "SYL-21", "SYL-23", "SYL-24", "SYL-25", "SYL-28")
@pytest.mark.parametrize("name", TIERS)
def test_the_skills_of_an_agent_are_in_their_tiers(name: str) -> None:
    core, contextual, specialised = TIERS[name]
    member = roster()[name]
    assert {each for each in member.core if each not in ALL_TECHNIQUES} == set(core)
    assert set(member.contextual) == set(contextual)
    assert set(member.specialised) == set(specialised)


@pytest.mark.req("SYL-111")
@pytest.mark.parametrize("name", AGENTS)
def test_techniques_follow_the_matrix(name: str) -> None:
    assert {each for each in roster()[name].core if each in ALL_TECHNIQUES} == TECHNIQUES.get(name, set())


@pytest.mark.req("SYL-19")
@pytest.mark.parametrize("name", AGENTS)
def test_a_prompt_has_the_texts_of_the_core_and_only_names_of_the_second_tier(name: str) -> None:
    manifest = shipped_manifest()
    prompt, member = member_prompt(manifest.agents[name], manifest), roster()[name]
    for core in member.core:
        assert manifest.skills[core].content in prompt
    for contextual in member.contextual:
        assert f"**{contextual}**" in prompt
        assert manifest.skills[contextual].content not in prompt
    for specialised in member.specialised:
        assert specialised not in prompt


def test_every_file_of_a_skill_names_an_agent_and_a_tool() -> None:
    for skill in shipped_manifest().skills.values():
        assert set(skill.metadata["agents"].split()) <= set(AGENTS), skill.name
        assert skill.allowed_tools, skill.name
    assert len(list((ROOT / "agents").glob("*.md"))) == len(AGENTS)


def test_a_file_of_a_folder_replaces_the_prompt_and_keeps_the_skills_and_the_mode() -> None:
    own = AgentSpec(
        name="engineer", prompt="Write Rust.", model="ollama:qwen3", metadata={"mode": "primary"}, digest="x"
    )
    manifest = team_manifest([own])
    agent = manifest.agents["engineer"]
    assert agent.prompt == "Write Rust."
    assert agent.model == "ollama:qwen3"
    assert agent.metadata["mode"] == "none"
    assert agent.skills == shipped_manifest().agents["engineer"].skills
    assert "engineer_write_file" in tools_of_member(agent, manifest)


def test_tools_on_the_checkout_become_tools_of_the_work_tree() -> None:
    own = AgentSpec(name="engineer", prompt="Write Rust.", tools=("exec", "write-file", "fetch"), digest="x")
    manifest = team_manifest([own])
    assert manifest.agents["engineer"].tools == ("engineer_run_command", "engineer_write_file", "fetch")
