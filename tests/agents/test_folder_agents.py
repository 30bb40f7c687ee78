"""Agents of a folder's markdown, as agents that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.agents.conversations.conversation import open_conversations
from clew.agents.conversations.steps import Answered
from clew.agents.folder.folder_agents import prompt_of
from clew.agents.folder.registry import read_agent
from clew.app import open_app
from clew.config import Config
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.tools.permissions.policy import Policy, decide, narrow, read_policy
from clew.trail.model.selector import Selector
from tests.consent import trust_all


def write_agent(folder: Path, text: str) -> None:
    place = folder / ".clew" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    (place / "pirate.md").write_text(f"---\nname: pirate\ndescription: Talks like one\n---\n{text}\n")


async def prompts(config: Config) -> list[str]:
    """The instructions of the agents that follow files."""
    async with open_app(config) as app:
        await app.runtime()
        page = await app.trail.records.list(Selector(all_tags=["from:folder"]), by=app.me)
        return [each.context["system_prompt"] for each in page.items]


@pytest.mark.req("RCR-39")
async def test_an_agent_in_markdown_runs_once_the_user_has_agreed_and_follows_its_file(tmp_path: Path) -> None:
    write_agent(tmp_path, "You are a pirate.")
    config = Config(folder=tmp_path / ".clew", embedder="none")
    assert await prompts(config) == []
    trust_all(config.folder)
    assert await prompts(config) == ["You are a pirate."]
    write_agent(tmp_path, "You are a captain.")
    assert await prompts(config) == []
    trust_all(config.folder)
    assert await prompts(config) == ["You are a captain."]
    (tmp_path / ".clew" / "agents" / "pirate.md").unlink()
    assert await prompts(config) == []


async def test_an_agent_in_markdown_answers(tmp_path: Path) -> None:
    write_agent(tmp_path, "You are a pirate.")
    config = Config(folder=tmp_path / ".clew", embedder="none")
    trust_all(config.folder)
    model = ScriptedModel([ScriptedTurn(user="hello", tools=("ask", "get", "read-file"), say="Arr.")])
    async with open_app(config) as app:
        runtime = await app.runtime(open_models(config, {}).with_model("*", model))
        async with runtime.running():
            talk = await open_conversations(app.trail, app.clock, by=app.me)
            sent = await talk.send("hello", agent="pirate", by=app.me)
            steps = [step async for step in talk.follow(sent, by=app.me)]
    assert [step.text for step in steps if isinstance(step, Answered)] == ["Arr."]


@pytest.mark.req("CAR-28")
def test_a_prompt_has_the_initial_skills_with_variables_and_names_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_PROMPT_SHIP", "Alba")
    skills = [
        Skill(name="knots", description="Tie knots", content="Over and under on the {{ CLEW_PROMPT_SHIP }}.", tier=1),
        Skill(name="maps", description="Read\nmaps"),
        Skill(name="plank", description="Only for those who name it", tier=3),
        Skill(name="traps", description="Not agreed to"),
    ]
    manifest = Manifest(skills={each.name: each for each in skills})
    others = ("maps", "plank", "traps", "gone")
    agent = AgentSpec(name="pirate", prompt="Arr.", initial_skills=("knots",), skills=others)
    prompt = prompt_of(agent, manifest, lambda skill: "not trusted" if skill.name == "traps" else "")
    assert prompt == (
        "Arr.\n\n## Initial Skills\n\n- **knots**: Tie knots\n\nOver and under on the Alba.\n\n"
        "## Available Skills\n\n- **maps**: Read maps\n\n"
        "## Loading Skills\n\nLoad a skill when you need it: `get` on `skills://tools/find` leads to it."
    )


@pytest.mark.req("RCR-39")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".opencode/agent/a.md", "---\ndescription: b\ntools: {bash: false}\n---\nYou are it."),
        (".opencode/agent/a.md", "---\ndescription: b\npermission: {bash: deny}\n---\nYou are it."),
        (".claude/agents/a.md", "---\nname: a\ndescription: b\ndisallowedTools: Bash, Write\n---\nYou are it."),
        (".clew/agents/a.md", "---\ndescription: b\npermissions: {deny: [exec]}\n---\nYou are it."),
        (".codex/agents/a.toml", 'name="a"\ndescription="b"\nsandbox_mode="read-only"\ndeveloper_instructions="You"'),
    ],
)
async def test_a_denied_tool_is_not_offered_and_is_refused_at_run_time(tmp_path: Path, path: str, text: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (tmp_path / ".git").mkdir()
    config = Config(folder=tmp_path / ".clew", embedder="none")
    trust_all(config.folder)
    async with open_app(config) as app:
        await app.runtime()
        page = await app.trail.records.list(Selector(all_tags=["from:folder"]), by=app.me)
        agent = read_agent(page.items[0])
    assert "exec" not in (agent.capabilities.tools or ())
    assert "read-file" in (agent.capabilities.tools or ())
    judged = narrow(Policy(otherwise="allow"), read_policy(agent.permissions or {}))
    assert decide(judged, "exec", {"command": "ls"}).verdict == "deny"
    assert decide(judged, "read-file", {"file_path": "a"}).verdict == "allow"


@pytest.mark.req("RCR-39")
async def test_an_agent_with_an_empty_list_of_tools_is_told_of_none(tmp_path: Path) -> None:
    place = tmp_path / ".clew" / "agents"
    place.mkdir(parents=True)
    (place / "pirate.md").write_text("---\ndescription: b\ntools: []\n---\nYou are a pirate.")
    config = Config(folder=tmp_path / ".clew", embedder="none")
    trust_all(config.folder)
    async with open_app(config) as app:
        await app.runtime()
        page = await app.trail.records.list(Selector(all_tags=["from:folder"]), by=app.me)
        assert read_agent(page.items[0]).capabilities.tools == ()
