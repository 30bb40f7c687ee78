"""When a program is stopped, the programs that it started are stopped too."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.connections.stdio import open_stdio

from .conftest import PATIENCE

CHILD = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.{handling})
with open(sys.argv[1], "w") as pipe:
    print(os.getpid(), file=pipe, flush=True)
    while True:
        signal.pause()
"""
PARENT = """
import subprocess, sys
none = subprocess.DEVNULL
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], stdin=none, stdout=none, stderr=none)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
@pytest.mark.parametrize("handling", ["SIG_DFL", "SIG_IGN"])
async def test_children_of_a_program_that_ended_by_itself_do_not_survive(tmp_path: Path, handling: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = (sys.executable, "-c", PARENT, CHILD.format(handling=handling), str(pipe))
    async with open_stdio(command, {}, "", Faults()):
        held = await asyncio.wait_for(asyncio.to_thread(pipe.open), PATIENCE)
        child = int(await asyncio.to_thread(held.readline))
    with held:
        os.set_blocking(held.fileno(), True)
        ending = asyncio.create_task(asyncio.to_thread(held.read))  # ends when nobody holds the other side
        done, _ = await asyncio.wait({ending}, timeout=PATIENCE)
        if not done:
            os.kill(child, signal.SIGKILL)
        await ending
    assert done, "the child ended with its parent"
