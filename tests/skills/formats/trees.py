"""Trees for tests: files by their paths, and one line for a skill."""

from __future__ import annotations

from pathlib import Path

from clew.skills.checks.problems import Problem
from clew.skills.formats.collection import Collected, collect
from clew.skills.manifest import AgentSpec, Skill


def plant(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write files below `root`, which is given back."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def skill_text(
    name: str, description: str = "What it is for.", *, more: str = "", body: str = "How it is done."
) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n"


def only_skill(found: Collected) -> Skill:
    (skill,) = found.skills
    return skill


def only_agent(found: Collected) -> AgentSpec:
    (agent,) = found.agents
    return agent


def read_skill_text(root: Path, text: str | bytes, folder: str = "brewing") -> tuple[Skill | None, list[Problem]]:
    """The skill of one SKILL.md, and its problems."""
    found = collect(plant(root, {f".claude/skills/{folder}/SKILL.md": text}))
    return (found.skills[0] if found.skills else None), list(found.problems)
