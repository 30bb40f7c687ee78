"""Agents of Claude Code, OpenCode and Codex."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.formats.collection import collect

from .trees import only_agent, plant


def test_an_agent_of_claude_code_keeps_its_prompt_tools_model_and_skills(tmp_path: Path) -> None:
    text = (
        "---\nname: taster\ndescription: Tastes tea. Use after brewing.\ntools: Read, Grep, Bash(git log:*)\n"
        "model: opus\nskills: [brewing, Cold Brew]\ncolor: green\n---\n\nYou taste tea.\n"
    )
    found = collect(plant(tmp_path, {".claude/agents/kitchen/taster.md": text}))
    agent = only_agent(found)
    assert (agent.name, agent.description) == ("taster", "Tastes tea. Use after brewing.")
    assert agent.prompt == "\nYou taste tea.\n"
    assert agent.tools == ("Read", "Grep", "Bash(git log:*)")
    assert (agent.model, agent.initial_skills) == ("strong", ("brewing", "cold-brew"))
    assert agent.metadata == {"color": "green", "model": "opus"}
    assert (agent.path, agent.origin) == (".claude/agents/kitchen/taster.md", "claude")
    assert len(agent.digest) == 64
    assert found.problems == ()


def test_an_agent_that_inherits_its_model_has_none(tmp_path: Path) -> None:
    text = "---\nname: a\ndescription: b\nmodel: inherit\n---\nYou are a."
    assert only_agent(collect(plant(tmp_path, {".claude/agents/a.md": text}))).model == ""


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("sonnet", ""),
        ("claude-sonnet-4-5-20250929", ""),
        ("us.anthropic.claude-opus-4-v1:0", "strong"),
        ("Haiku", "fast"),
        ("coding", "coding"),
        ("ollama:qwen3", "ollama:qwen3"),
    ],
)
def test_a_model_of_another_program_is_the_role_that_it_has_here(tmp_path: Path, written: str, model: str) -> None:
    found = collect(
        plant(tmp_path, {".claude/agents/a.md": f"---\nname: a\ndescription: b\nmodel: {written}\n---\nA."})
    )
    assert (only_agent(found).model, found.problems) == (model, ())


def test_a_model_that_is_not_known_here_is_the_default_and_reported(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {".opencode/agent/a.md": "---\ndescription: b\nmodel: openai/gpt-x\n---\nA."}))
    assert only_agent(found).model == ""
    (problem,) = found.problems
    assert (problem.severity, problem.line) == ("warning", 3)
    assert problem.message == "unknown model `openai/gpt-x`: the agent uses the default model"


@pytest.mark.parametrize("folder", ["agent", "agents", "mode", "modes", "agents/deep/er"])
def test_an_agent_of_opencode_is_named_after_its_file_and_has_the_tools_that_are_on(
    tmp_path: Path, folder: str
) -> None:
    text = (
        "---\ndescription: Tastes.\nmode: subagent\nmodel: anthropic/claude-haiku-4-5\ntemperature: 0.10\n"
        "tools:\n  write: false\n  bash: true\n  read: true\npermission:\n  edit: deny\n---\nYou taste.\n"
    )
    found = collect(plant(tmp_path, {f".opencode/{folder}/taster.md": text}))
    agent = only_agent(found)
    assert (agent.name, agent.model, agent.tools) == ("taster", "fast", ("bash", "read"))
    assert agent.metadata.pop("model") == "anthropic/claude-haiku-4-5"
    assert agent.metadata == {"mode": "subagent", "temperature": "0.10", "permission": '{"edit": "deny"}'}
    assert agent.origin == "opencode"
    assert found.problems == ()


def test_an_agent_of_codex_is_toml(tmp_path: Path) -> None:
    text = (
        'name = "pr_taster"\ndescription = "Tastes."\nmodel = "lab:m"\nsandbox_mode = "read-only"\n'
        'developer_instructions = """\nYou taste.\n"""\n[mcp_servers.docs]\nurl = "x"\n'
    )
    found = collect(plant(tmp_path, {".codex/agents/taster.toml": text, ".codex/config.toml": "model = 'x'"}))
    agent = only_agent(found)
    assert (agent.name, agent.description, agent.model) == ("pr_taster", "Tastes.", "lab:m")
    assert agent.prompt == "You taste."
    assert agent.metadata == {"sandbox_mode": "read-only", "mcp_servers": '{"docs": {"url": "x"}}'}
    assert (agent.origin, found.problems) == ("codex", ())


def test_broken_toml_is_an_error_with_its_line(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {".codex/agents/a.toml": 'name = "a"\ndescription = "b\n'}))
    assert found.agents == ()
    assert [(each.severity, each.path, each.line) for each in found.problems] == [("error", ".codex/agents/a.toml", 2)]


def test_agents_of_a_plugin_are_found_and_those_of_other_folders_are_not(tmp_path: Path) -> None:
    text = "---\nname: {}\ndescription: b\n---\nYou are it."
    root = plant(
        tmp_path,
        {
            "plugins/tea/.claude-plugin/plugin.json": "{}",
            "plugins/tea/agents/taster.md": text.format("taster"),
            "docs/agents/notes.md": text.format("notes"),
        },
    )
    assert only_agent(collect(root)).path == "plugins/tea/agents/taster.md"


def test_readme_files_and_rules_beside_agents_are_no_agents(tmp_path: Path) -> None:
    files = {".claude/agents/README.md": "About.", ".claude/agents/AGENTS.md": "Rules.", ".claude/agents/x.txt": "x"}
    found = collect(plant(tmp_path, files))
    assert found.agents == ()
    assert found.problems == ()


def test_a_name_in_words_becomes_one_that_can_be_used(tmp_path: Path) -> None:
    text = "---\nname: Tea Taster\ndescription: b\n---\nYou taste."
    found = collect(plant(tmp_path, {".claude/agents/t.md": text}))
    assert only_agent(found).name == "tea-taster"
    assert [(each.severity, each.line) for each in found.problems] == [("warning", 2)]


def test_an_agent_without_front_matter_is_named_after_its_file_and_reported(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {".claude/agents/taster.md": "You taste tea."}))
    assert (only_agent(found).name, only_agent(found).description) == ("taster", "You taste tea.")
    assert [each.severity for each in found.problems] == ["warning"]


@pytest.mark.parametrize(
    ("text", "severity", "reason"),
    [
        ("---\nname: a\ndescription: b\n---\n", "error", "needs a prompt"),
        ("", "error", "needs a prompt"),
        ("---\ndescription: b\ndisable: true\n---\nYou are it.", "warning", "disabled"),
    ],
)
def test_an_agent_without_a_prompt_or_switched_off_is_left_out_and_reported(
    tmp_path: Path, text: str, severity: str, reason: str
) -> None:
    found = collect(plant(tmp_path, {".opencode/agents/a.md": text}))
    assert found.agents == ()
    (problem,) = found.problems
    assert problem.severity == severity
    assert reason in problem.message
