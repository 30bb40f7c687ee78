"""Variables in the texts of skills that callers load through the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.trail.store import Trail
from tests.catalog.skills.northline import FIND, LOAD, Caller, open_project, write_project
from tests.skills.definition_trees import markdown

FILES = {
    ".clew/skills/greeting.md": markdown(
        "Welcome aboard the {{CLEW_PROMPT_SHIP}}, {{ CLEW_TOKEN }} of {{ SHIP }}.",
        description="Greet passengers on board",
        toolsets="[horn]",
    ),
    ".clew/toolsets/horn.md": markdown("Twice for the {{ CLEW_PROMPT_SHIP }}.", description="The horn"),
}


@pytest.mark.req("CAR-28")
async def test_a_loaded_skill_and_its_toolset_have_the_variables_that_the_environment_allows(
    trail: Trail, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_PROMPT_SHIP", "Alba")
    monkeypatch.setenv("CLEW_TOKEN", "not-for-models")
    async with open_project(trail, clock, write_project(tmp_path / "project", FILES)) as workspace:
        caller = Caller(workspace)
        await caller.get(FIND, need="greet passengers")
        skill = await caller.text(LOAD, skill="greeting")
        assert "Welcome aboard the Alba, {{ CLEW_TOKEN }} of {{ SHIP }}." in skill
        assert "Twice for the Alba." in skill
        monkeypatch.setenv("CLEW_PROMPT_SHIP", "{{ CLEW_PROMPT_CREW }}")
        monkeypatch.setenv("CLEW_PROMPT_CREW", "Bo")
        toolset = await caller.text(LOAD, toolset="horn")
        assert "Twice for the {{ CLEW_PROMPT_CREW }}." in toolset
