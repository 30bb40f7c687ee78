"""Connected agents get the rules of the folder with the first answer, once under each handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent

from clew.access import Principal
from clew.adapters.mcp.server import build_server
from clew.catalog.catalog import RULE_TOKENS, RULES
from clew.catalog.workspace.workspace import Workspace
from clew.clock import ManualClock
from clew.llm.tokens import count_tokens
from clew.trail.store import Trail
from tests.adapters.mcp.catalogs import ERAS
from tests.catalog.skills.northline import ME, open_project, write_project
from tests.consent import trust_all

RULE = "Ferry times are written as 24-hour clock."
STRANGER = Principal(owner_id="else", agent_id="eve")


async def call(workspace: Workspace, era: str, *calls: tuple[str, dict[str, Any]], by: Principal = ME) -> list[str]:
    """The texts of successive calls, each made with the handle of the previous one."""
    told, handle = [], None
    async with Client(build_server(workspace.catalog, lambda context: by), mode=era, cache=None) as client:
        for name, arguments in calls:
            given = arguments if handle is None else {**arguments, "handle": handle}
            result = await client.call_tool(name, given)
            assert result.structured_content is not None, result
            handle = result.structured_content["handle"]
            assert (RULE in result.structured_content.get("rules", "")) == (RULE in text_of(result))
            told.append(text_of(result))
    return told


def text_of(result: Any) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


ASK = ("ask", {"query": "when does the ferry sail"})
GET = ("get", {"routes": [{"route": "repo://resources/AGENTS.md"}]})


@pytest.mark.req("BEY-01")
@pytest.mark.parametrize("era", ERAS)
async def test_the_first_answer_carries_the_rules_and_the_next_ones_do_not(
    trail: Trail, clock: ManualClock, tmp_path: Path, era: str
) -> None:
    folder = write_project(tmp_path / "project", {"AGENTS.md": f"# Rules\n\n{RULE}\n"})
    trust_all(folder)
    async with open_project(trail, clock, folder) as workspace:
        first, again = await call(workspace, era, ASK, ("ask", {"query": "how are passengers refunded"}))
        assert first.startswith(f"## {RULES}\n\nRules for the whole project, from `AGENTS.md`")
        assert RULE in first
        assert RULES not in again
        (got,) = await call(workspace, era, GET)
        assert got.startswith(f"## {RULES}")
        (tmp_path / "project" / "AGENTS.md").write_text("# Rules\n\nNew rules.\n")
        (changed,) = await call(workspace, era, ASK)
        assert RULES not in changed, "changed rules wait for the user's consent"
        (foreign,) = await call(workspace, era, ASK, by=STRANGER)
        assert RULES not in foreign


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_rules_without_consent_stay_away_and_long_ones_are_cut(
    trail: Trail, clock: ManualClock, tmp_path: Path, is_trusted: bool
) -> None:
    folder = write_project(tmp_path / "project", {"AGENTS.md": "\n".join([RULE] * 1_000)})
    if is_trusted:
        trust_all(folder)
    async with open_project(trail, clock, folder, trusting=False) as workspace:
        (told,) = await call(workspace, ERAS[0], ASK)
    rules = told.partition("## Known")[0].partition("## ")[2] if is_trusted else ""
    assert (RULES in told) == is_trusted
    assert count_tokens(rules) <= RULE_TOKENS * 1.3
    assert ("tokens of it are left out: read the file for the rest" in told) == is_trusted
