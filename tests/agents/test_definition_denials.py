"""Paths that an agent's definition denies are also hidden from tools that find files themselves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.tools.files.folder import WorkingFolder
from clew.tools.processes import OnOutput
from clew.tools.sandbox.program import Confinement, Program, ProgramResult
from clew.tools.search.search_tools import search_tools
from clew.tools.search.searchers import PythonSearcher
from clew.tools.shell import shell_tools
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, hire
from tests.tools.working_folder import plant

DENY = {"deny": ["*(private/**)"]}
FILES = {"private/pay.txt": "IBAN 1\n", "open.txt": "IBAN 2\n"}


class Shut:
    """Runs nothing, and records the denied paths of each command."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.denied: list[list[str]] = []

    async def run(
        self, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
    ) -> ProgramResult:
        self.denied.append([os.path.relpath(each, self._root) for each in confinement.deny])
        return ProgramResult(code=0, stdout="", stderr="", killed_by=None, seconds=0.0)


async def outputs(run: Running, agent: str = CLERK) -> dict[str, str]:
    """The results of each tool for an agent that looks around."""
    sent = await run.talk.send("look", by=run.me, agent=agent)
    await run.rest_of(sent)
    found = await run.written(sent.run, run.flow.response)
    tools = [each for each in found if each.context["tool"] != run.flow.model_tool]
    return {each.context["tool"]: str(each.context["output"]) for each in tools}


def script(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"user": "look", "call": list(calls)}, {"say": "Done."}]


LOOK = script({"glob": {"pattern": "**"}}, {"grep": {"pattern": "IBAN"}}, {"exec": {"command": "true"}})


async def test_searches_and_commands_cannot_reach_paths_that_the_definition_denies(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    root = plant(tmp_path, FILES)
    shut, folder = Shut(root), WorkingFolder(root)
    tools = (*search_tools(folder, PythonSearcher()), *shell_tools(folder, shut))
    async with running(trail, clock, me, LOOK, tools=tools) as run:
        await hire(run, permissions=DENY)
        found = await outputs(run)
        assert "open.txt" in found["glob"]
        assert "private" not in found["glob"]
        assert "IBAN 2" in found["grep"]
        assert "IBAN 1" not in found["grep"]
        await hire(run, "free")
        found = await outputs(run, "free")
        assert "private/pay.txt" in found["glob"]
        assert "IBAN 1" in found["grep"]
    assert shut.denied == [["private"], []], "the rules of the first agent do not apply to the second"


@pytest.mark.req("RCR-48")
async def test_denials_of_the_caller_apply_to_the_called_agent(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    root = plant(tmp_path, FILES)
    tools = search_tools(WorkingFolder(root), PythonSearcher())
    async with running(trail, clock, me, script({"grep": {"pattern": "IBAN"}}), tools=tools) as run:
        await hire(run, permissions=DENY)
        call = await run.define(run.flow.request, tool="spawn-agent", input={}, requestId="r", requestedBy=CLERK)
        await hire(run, "child", metadata={"called_by": {"agent": CLERK, "request": call.id}})
        found = await outputs(run, "child")
    assert "IBAN 2" in found["grep"]
    assert "IBAN 1" not in found["grep"]
