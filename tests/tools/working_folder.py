"""Helpers for tests of file, search, shell and fetch tools: a working folder with files, and calls as an interface
makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.tools import Tool, ToolContext
from clew.tools.processes import OnOutput, run_process, safe_environment
from clew.tools.sandbox.output_text import clean_text
from clew.tools.sandbox.program import Confinement, Program, ProgramResult

ANN = ToolContext(by=Principal(owner_id="acme", agent_id="ann", session="s1"))
BEN = ToolContext(by=Principal(owner_id="acme", agent_id="ben", session="s1"))


def plant(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, with the folders that they need."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    root.mkdir(exist_ok=True)
    return root


class HostRunner:
    """Runs commands on this machine without a sandbox, for tests of the tools themselves."""

    async def run(
        self, program: Program, confinement: Confinement, *, on_output: OnOutput | None = None
    ) -> ProgramResult:
        ended = await run_process(
            program.argv,
            cwd=confinement.cwd or None,
            env={**safe_environment(os.environ), **confinement.env},
            stdin=program.stdin,
            seconds=confinement.seconds,
            output_bytes=confinement.output_bytes,
            on_output=on_output,
        )
        return ProgramResult(
            code=ended.code,
            stdout=clean_text(ended.stdout),
            stderr=clean_text(ended.stderr),
            seconds=ended.seconds,
            killed_by=ended.killed_by,
        )


class Toolbox:
    """Tools by their names; a call goes through the check of its arguments."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = {each.name: each for each in tools}

    async def call(self, name: str, context: ToolContext = ANN, /, **arguments: Any) -> str:
        chosen = self.tools[name]
        return (await chosen.call(chosen.check(arguments), context)).content

    async def call_json(self, name: str, context: ToolContext = ANN, /, **arguments: Any) -> dict[str, Any]:
        shown = await self.call(name, context, **arguments)
        found: dict[str, Any] = json.loads(shown.removeprefix("```json\n").removesuffix("\n```"))
        return found
