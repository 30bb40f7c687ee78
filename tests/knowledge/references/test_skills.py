"""The five skills that agents are offered (SYL-27)."""

from __future__ import annotations

from typing import Any

import pytest

from clew.access import Principal
from clew.knowledge.references.research import Library
from clew.knowledge.references.skills import library_skills
from clew.skills.triggers import Turn, match
from clew.tools.content import Valued
from clew.tools.tool import Tool, ToolContext
from tests.knowledge.references.writing import RFC


def names(library: Library, tier: int) -> list[str]:
    return [each.skill.name for each in library_skills(library) if each.skill.tier == tier]


@pytest.mark.req("SYL-27")
def test_three_skills_are_there_from_the_start_and_two_come_when_called_for(library: Library) -> None:
    assert names(library, 1) == ["research", "compare", "best_practices"]
    assert names(library, 2) == ["ingest_source", "design_proposal"]
    skills = [each.skill for each in library_skills(library)]
    assert [each.skill for each in match(skills, Turn(text="Read this RFC for me"))] == ["ingest_source"]
    assert [each.skill for each in match(skills, Turn(text="Write a proposal"))] == ["design_proposal"]
    assert match(skills, Turn(text="Fix the bug")) == []


@pytest.mark.req("SYL-27")
async def test_each_skill_runs_and_answers_with_sources(library: Library) -> None:
    tools = {each.skill.name: each.tool for each in library_skills(library)}
    taken = await run(tools["ingest_source"], kind="rfc", text=RFC)
    assert taken["node_type"] == "rfc"
    for name, arguments in {
        "research": {"topic": "Retry-After", "depth": "quick"},
        "compare": {"approaches": ["Retry-After", "delay"], "criteria": ["seconds"]},
        "best_practices": {"topic": "Retry-After"},
        "design_proposal": {"request": "Honour Retry-After"},
    }.items():
        found = await run(tools[name], **arguments)
        assert found["status"] == ("no_matches" if name == "best_practices" else "ok")


async def run(tool: Tool, **arguments: Any) -> dict[str, Any]:
    content = await tool.call(tool.check(arguments), ToolContext(by=Principal(owner_id="acme")))
    assert isinstance(content, Valued)
    told: dict[str, Any] = content.value
    return told
