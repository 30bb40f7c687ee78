"""Helpers for tests of escapes: the secrets, the granted paths, and checks of the outcome."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement
from tests.tools.sandbox.boxes import Box, processes_tagged

TREASURE = "treasure-5d1f"
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: the walls are those of Linux")


def allowed(home: Path, **more: Any) -> Confinement:
    """To read and write in the project, but not its store."""
    project = str(home / "project")
    values: dict[str, Any] = {"read": (project,), "write": (project,), "cwd": project, "seconds": 20, **more}
    return Confinement(deny=(str(home / "project/store.db"),), **values)


def everything_below(folder: Path) -> list[str]:
    """Files and links, and files by way of a link to their folder."""
    found = [str(path) for path in folder.rglob("*") if not path.is_dir()]
    return [*found, str(folder / "project/shortcut/id_ed25519")]


def told(outcome: Any) -> str:
    """All that can be learned of an outcome."""
    if isinstance(outcome, ToolFailure):
        return f"{outcome.kind} {outcome} {outcome.stack}"
    return repr(outcome)


def is_limited(box: Box) -> bool:
    """Only control groups limit root, and only bubblewrap uses them."""
    return box.wall == "bubblewrap" or os.geteuid() != 0


async def until_gone(tag: str) -> None:
    """Return once no process has the tag any more."""
    for _ in range(600):
        if not processes_tagged(tag):
            return
        await asyncio.sleep(0.05)
    assert processes_tagged(tag) == []
