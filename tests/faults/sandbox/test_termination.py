"""Code that does not end is killed in time, and together with the process that started it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement
from tests.faults.sandbox.escapes import linux_only, until_gone
from tests.tools.sandbox.boxes import BOXES, Box, open_box, processes_tagged

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]


async def test_an_endless_program_that_ignores_signals_ends_in_time(box: Box) -> None:
    tag = uuid4().hex
    python = """
import os, signal, time

def run(input, context):
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    if os.fork() == 0:
        try: os.setsid()
        except OSError: pass
        while True: time.sleep(60)
    while True: pass
"""
    javascript = "function run() { for (;;); }"
    outcome = await box.call(python, javascript, Confinement(seconds=0.5, env={"TAG": tag}))
    assert isinstance(outcome, ToolFailure)
    assert (outcome.kind, outcome.retryable) == ("timeout", True)
    await until_gone(tag)


async def test_a_cancelled_call_leaves_nothing(box: Box) -> None:
    tag = uuid4().hex
    program = box.program(
        "def run(input, context):\n    print('on', flush=True)\n    while True: pass",
        "function run() { console.log('on'); for (;;); }",
    )
    started = asyncio.Event()

    async def heard(text: str) -> None:
        started.set()

    task = asyncio.create_task(box.sandbox().run(program, Confinement(env={"TAG": tag}), on_output=heard))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone(tag)


DRIVER = """
import asyncio, sys
from clew.tools.sandbox import Confinement
from tests.tools.sandbox.boxes import open_box

async def heard(text):
    print("on", flush=True)

box = open_box(sys.argv[1])
program = box.program("import time\\ndef run(input, context):\\n    print('on', flush=True)\\n    time.sleep(600)",
    "async function run() { console.log('on'); await new Promise((done) => setTimeout(done, 600000)); }")
asyncio.run(box.sandbox().run(program, Confinement(env={"TAG": sys.argv[2]}), on_output=heard))
"""


@pytest.mark.parametrize("name", [each for each in BOXES if each != "deno alone"])
async def test_a_killed_parent_leaves_no_child(name: str) -> None:
    open_box(name)
    tag = uuid4().hex
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DRIVER, name, tag), stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"on\n"
    assert processes_tagged(tag)
    parent.kill()
    await parent.wait()
    await until_gone(tag)
