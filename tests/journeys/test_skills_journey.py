"""A program with skills in a folder: an agent finds one, loads it, works, loses its context, and unloads the skill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew.clock import SystemClock
from clew.skills.export import export_tools
from clew.skills.exposure_store import TrailExposures
from clew.skills.library import Skills
from clew.skills.registry import META_TOOLS
from clew.skills.variables import Variables
from clew.tools.tool import Tool, tool
from clew.trail import open_trail
from tests.skills.definition_trees import markdown, write
from tests.skills.research_manifest import call

FILES = {
    "agents/helper.md": markdown("You help {{ USER }}.", skills="[refunds, deploys]"),
    "skills/refunds/SKILL.md": markdown(
        "Look the order of {{ USER }} up first.", description="Pay money back for an order", toolsets="[orders]"
    ),
    "skills/deploys.md": markdown("Ask before a release.", description="Release a new version of the software"),
    "toolsets/orders.md": markdown(description="Orders of customers", tools="[find-order]"),
}


def order_tool() -> Tool:
    @tool
    async def find_order(number: int) -> str:
        """Find an order by its number."""
        return f"order {number}: paid"

    return find_order


@asynccontextmanager
async def start(folder: Path) -> AsyncIterator[Skills]:
    """The program as it starts, and starts again, until it ends."""
    trail = await open_trail(f"sqlite://{folder}/trail.db")
    sets, user = TrailExposures(trail, SystemClock()), Variables({"USER": "Ada"})
    try:
        async with Skills.from_folder(folder / "team", [order_tool()], exposures=sets, variables=user) as skills:
            yield skills
    finally:
        await trail.close()


@pytest.mark.req("BEY-03")
@pytest.mark.req("CAR-17")
@pytest.mark.req("CAR-21")
async def test_an_agent_finds_loads_uses_and_unloads_a_skill_over_a_restart(tmp_path: Path) -> None:
    write(tmp_path / "team", FILES)
    async with start(tmp_path) as skills:
        first = await skills.get_prompt("helper", query="I want my money back for an order")
        assert first.content.startswith("You help Ada.")
        assert first.sections["hints"].startswith("Skills that may help with this: refunds")
        tools = await skills.get_tools("helper")
        assert list(tools) == list(META_TOOLS)
        assert (await skills.session("helper").why("find-order")).is_here is False

        loaded = await call(tools["loadSkill"], skillName="refunds")
        assert loaded["content"] == "Look the order of Ada up first."
        tools = await skills.get_tools("helper")
        assert await call(tools["find-order"], number=7) == "order 7: paid"
        sent = export_tools(tools, "anthropic")
        assert [each["name"] for each in sent.tools] == [*META_TOOLS, "find-order"]

    async with start(tmp_path) as skills:
        assert "find-order" in await skills.get_tools("helper"), "the conversation goes on"
        assert "Look the order of Ada up first." in await skills.reinject("helper"), "its messages were lost"
        gone = await call((await skills.get_tools("helper"))["unloadSkill"], skillName="refunds")
        assert gone["success"]
        assert "find-order" not in await skills.get_tools("helper")
        assert await skills.reinject("helper") == ""
        assert (await skills.get_prompt("helper")).content == first.content.replace(
            f"\n\n{first.sections['hints']}", ""
        )
        (event,) = await skills.session("helper").audit()
        assert (event.skill_name, event.loaded_by, event.unloaded_by) == ("refunds", "loadSkill", "unloadSkill")
