"""The team's tools as the tools runner calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, SandboxUnavailable, ToolFailure
from clew.team.worktrees.team_tools import TeamFolder, team_tools
from clew.tools.content import ValueContent
from clew.tools.sandbox import open_sandbox
from clew.tools.tool import Tool, ToolContext
from tests.team.evidence.completions import own_programs_first
from tests.team.worktrees.projects import TEAM_CALL, git, make_repository
from tests.tools.working_folder import plant

NAMES = {"team-open", "team-worktree", "team-commit", "team-check", "team-merge", "team-diff"}
DOUBLE = {
    "calc/core.py": "def add(a: int, b: int) -> int:\n    return a + b\n\n\n"
    "def double(a: int) -> int:\n    return a + a\n",
    "tests/test_double.py": "from calc.core import double\n\n\ndef test_double() -> None:\n    assert double(2) == 4\n",
}


class Caller:
    """Calls the tools of a project by name."""

    def __init__(self, folder: TeamFolder) -> None:
        self.folder = folder
        self.tools: dict[str, Tool] = {each.name: each for each in team_tools(folder)}

    async def __call__(self, name: str, *, ctx: ToolContext = TEAM_CALL, key: str = "", **arguments: Any) -> Any:
        tool = self.tools[name]
        context = msgspec.structs.replace(ctx, key=key) if key else ctx
        content = await tool.call(tool.check(arguments), context)
        assert isinstance(content, ValueContent)
        return content.value


@pytest.fixture
def call(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setenv("PATH", own_programs_first())
    root = make_repository(tmp_path / "checkout")
    return Caller(TeamFolder(root=root, state=tmp_path / "state", sandbox=open_sandbox(production=False), clock=clock))


async def test_a_task_goes_from_a_work_tree_to_the_sessions_branch(call: Caller) -> None:
    opened = await call("team-open", session="s1", base="HEAD", take_changes=False)
    assert opened["branch"] == "clew/s1"
    given = {"start": opened["head"]}
    made = await call("team-worktree", session="s1", pipeline="n.1", **given)
    assert made["branch"] == "clew-work/s1/n.1"
    plant(Path(made["folder"]), DOUBLE)
    commit = await call("team-commit", session="s1", pipeline="n.1", message="double", files=["calc/**", "tests"])
    assert (commit["is_empty"], commit["outside"]) == (False, [])
    assert "+def double" in (await call("team-diff", session="s1", pipeline="n.1"))["diff"]
    lint = await call("team-check", key="a", session="s1", pipeline="n.1", kind="lint", scope="changed")
    assert (lint["passed"], lint["issues"]) == (True, [])
    test = await call("team-check", key="b", session="s1", pipeline="n.1", kind="test", scope="covering", call="c-2")
    assert test["passed"]
    (receipt,) = test["receipts"]
    assert receipt["run"] == "c-2"
    assert receipt["tree"] == commit["tree"]
    assert receipt["tests"]["run"] == 2
    merged = await call("team-merge", session="s1", pipeline="n.1")
    assert (merged["merged"], merged["head"]) == (True, commit["commit"])
    session = await call("team-check", key="c", session="s1", kind="command", commands=["test -f tests/test_double.py"])
    assert session["passed"]
    assert git(call.folder.root, "status", "--porcelain") == ""


async def test_a_check_that_was_finished_is_not_run_again(call: Caller) -> None:
    """The process may die after the check and before its response is stored."""
    await call("team-open", session="s1")
    asked: dict[str, Any] = {"session": "s1", "kind": "command", "commands": ['echo "$RANDOM$RANDOM$RANDOM"']}
    first = await call("team-check", key="a", **asked)
    assert await call("team-check", key="a", **asked) == first
    assert await call("team-check", key="b", **asked) != first


@pytest.mark.parametrize("name", sorted(NAMES))
async def test_only_the_team_calls_its_tools(call: Caller, name: str) -> None:
    arguments: dict[str, Any] = {"session": "s1", "pipeline": "n.1", "kind": "lint"}
    known = call.tools[name].schema["properties"]
    given = {key: value for key, value in arguments.items() if key in known}
    engineer = Principal(owner_id="acme", agent_id="engineer", steers=False)
    person = Principal(owner_id="acme", agent_id="team")
    for by, key in ((engineer, "k"), (person, "k"), (TEAM_CALL.by, "")):
        with pytest.raises(ToolFailure, match="only the team"):
            await call(name, ctx=ToolContext(by=by, key=key), **given)


async def test_the_tools_are_hidden_repeatable_and_describe_their_arguments(call: Caller) -> None:
    assert set(call.tools) == NAMES
    for each in call.tools.values():
        assert not each.searchable
        assert each.effects.keyed
        assert "session" in each.schema["properties"]
    assert set(call.tools["team-worktree"].schema["properties"]) == {"session", "pipeline", "start"}


async def test_arguments_that_are_wrong_are_refused_in_one_line(call: Caller) -> None:
    await call("team-open", session="s1")
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("team-open", {"session": "../x"}),
        ("team-worktree", {"session": "s1", "pipeline": "n.1", "start": "--all"}),
        ("team-check", {"session": "s1", "kind": "deploy"}),
        ("team-commit", {"session": "s1"}),
    )
    for name, arguments in wrong:
        with pytest.raises(InvalidInput):
            await call(name, **arguments)


def test_no_command_runs_where_nothing_confines_it(tmp_path, clock):
    sandbox = open_sandbox(production=False, wall="none")
    folder = TeamFolder(root=tmp_path, state=tmp_path / "state", sandbox=sandbox, clock=clock)
    for call in (folder.require_wall, folder.checks):
        with pytest.raises(SandboxUnavailable, match="only in a sandbox"):
            call()
