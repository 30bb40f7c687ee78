"""Sandboxes for tests: each wall with each language, the test skipped loudly where this machine has none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement, LocalSandbox, Program
from clew.tools.sandbox.bubblewrap import BubblewrapWall, find_bubblewrap
from clew.tools.sandbox.calls import call_code
from clew.tools.sandbox.landlock import LandlockWall, find_landlock
from clew.tools.sandbox.runtimes import find_deno
from clew.tools.sandbox.wall import NoWall, Wall

BOXES = ("bubblewrap python", "bubblewrap deno", "landlock python", "landlock deno", "deno alone")


@dataclass(frozen=True)
class Box:
    """One way to run code. `deny` of `call` is the sandbox's own."""

    wall: str
    language: str
    inner: Wall

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    def sandbox(self, *deny: str) -> LocalSandbox:
        return LocalSandbox(self.inner, production=True, deny=deny)

    def program(self, python: str, javascript: str, **input: Any) -> Program:
        code = python if self.is_python else javascript
        return Program(language="python" if self.is_python else "javascript", code=code, input=input)

    async def call(self, python: str, javascript: str, confinement: Confinement, **input: Any) -> Any:
        """The result of the code, or the failure as a value."""
        try:
            return await call_code(self.sandbox(), self.program(python, javascript, **input), confinement)
        except ToolFailure as failure:
            return failure


@cache
def open_box(name: str) -> Box:
    """One of BOXES. Whether this machine has it is found once, by trying."""
    wall, _, language = name.partition(" ")
    inner: Wall = NoWall()
    if wall == "bubblewrap":
        if (program := find_bubblewrap()) is None:
            pytest.skip("NOT TESTED: bubblewrap is missing, or cannot make its name spaces here")
        inner = BubblewrapWall(program)
    elif wall == "landlock":
        if not (version := find_landlock()):
            pytest.skip("NOT TESTED: this kernel has no Landlock")
        inner = LandlockWall(version)
    if "deno" in name and find_deno() is None:
        pytest.skip("NOT TESTED: Deno is missing")
    return Box(wall=wall, language="python" if language == "python" else "javascript", inner=inner)


def processes_tagged(tag: str) -> list[int]:
    """The processes of this machine that have a text among their variables."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if tag.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found
