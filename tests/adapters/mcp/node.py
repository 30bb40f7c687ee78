"""Node and the packages of tools/node for tests that run programs of others, which are skipped where it is missing."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".venv" / "node"
MODULES = FOLDER / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance"
"""The conformance suite of the protocol's authors."""

Check = dict[str, Any]


@cache
def find_node() -> str:
    """The path of a Node of version 22 or newer, installed on first use. Skips the test where that is impossible."""
    setup = [sys.executable, str(ROOT / "tools" / "setup_node.py"), str(FOLDER)]
    done = subprocess.run(setup, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"NOT RUN, no Node >= 22: {done.stderr.strip()}")
    return done.stdout.strip()


async def run_node(*arguments: str, cwd: Path = FOLDER, timeout: float = 60) -> tuple[int, str, str]:
    """Run a script: its exit code, and what it wrote."""
    node = await asyncio.to_thread(find_node)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(node, *arguments, cwd=cwd, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def read_checks(folder: Path) -> dict[str, list[Check]]:
    """The checks of each scenario, from the files that the conformance suite wrote to a folder."""
    found = {str(file.parent.relative_to(folder)): json.loads(file.read_text()) for file in folder.rglob("checks.json")}
    return {re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", name): checks for name, checks in found.items()}
