"""Code that tries to use up processes, memory or disk space."""

from __future__ import annotations

from uuid import uuid4

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement
from tests.faults.sandbox.escapes import is_limited, linux_only, until_gone
from tests.tools.sandbox.boxes import Box

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]

FORKS = """
import os, signal

def run(input, context):
    made = 0
    try:
        while made < 400:
            if os.fork() == 0:
                signal.pause()
            made += 1
    except OSError:
        pass
    return made
"""
BOMB = """
import os

def run(input, context):
    while True:
        try: os.fork()
        except OSError: pass
"""
RUN_JS = """
import child from "node:child_process";
function run() {
  const got = [];
  try { got.push(new Deno.Command("/bin/sh").outputSync()) } catch (error) { got.push(error.name) }
  try { got.push(child.execSync("id")) } catch (error) { got.push(error.name) }
  try { Deno.dlopen("libc.so.6", {getpid: {parameters: [], result: "i32"}}) } catch (error) { got.push(error.name) }
  return got;
}
"""
WORKERS_JS = """
async function run() {
  const url = "data:application/javascript," + encodeURIComponent("for (;;) {}");
  for (;;) { new Worker(url, {type: "module"}); await new Promise((done) => setTimeout(done, 1)); }
}
"""


async def test_a_program_can_have_only_so_many_processes(box: Box) -> None:
    confinement = Confinement(seconds=20, processes=30)
    outcome = await box.call(FORKS, RUN_JS, confinement)
    if not box.is_python:
        assert outcome == ["NotCapable", "NotCapable", "NotCapable"]
    elif is_limited(box):
        assert 0 < outcome < 60
    else:
        assert outcome == 400


async def test_a_fork_bomb_ends_and_leaves_nothing(box: Box) -> None:
    if not is_limited(box):
        pytest.skip("NOT HELD: as root only bubblewrap limits processes, and clew doctor says so")
    tag = uuid4().hex
    confinement = Confinement(seconds=1.5, processes=30, env={"TAG": tag})
    outcome = await box.call(BOMB, WORKERS_JS, confinement)
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind in ("timeout", "runtime")
    await until_gone(tag)


MEMORY = {
    "heap": (
        "def run(input, context):\n    kept = []\n    while True: kept.append(bytearray(b'x') * 5_000_000)",
        "function run() { const kept = []; for (;;) kept.push({at: kept.length, text: 'x' + kept.length}); }",
    ),
    "outside the heap": (
        "import mmap\ndef run(input, context):\n    kept = []\n    while True:\n"
        "        kept.append(mmap.mmap(-1, 5_000_000))\n        kept[-1].write(b'x' * 5_000_000)",
        "function run() { const kept = []; for (;;) kept.push(new Uint8Array(5_000_000).fill(1)); }",
    ),
}


@pytest.mark.parametrize("kind", MEMORY)
async def test_memory_is_limited(box: Box, kind: str) -> None:
    outcome = await box.call(*MEMORY[kind], Confinement(seconds=25, memory_mb=96))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "runtime"


async def test_memory_of_all_processes_together_is_limited(box: Box) -> None:
    if not box.is_python:
        pytest.skip("JavaScript has no processes of its own")
    code = """
import os, signal

def run(input, context):
    for _ in range(8):
        if os.fork() == 0:
            kept = bytearray(b"x") * 60_000_000
            signal.pause()
    signal.pause()
"""
    outcome = await box.call(code, "", Confinement(seconds=25, memory_mb=128))
    assert isinstance(outcome, ToolFailure)
    assert "128 MB" in outcome.message


FILL = """
import errno

def run(input, context):
    full = []
    for place in ("/", "/tmp/", "/dev/", "/dev/shm/", "/usr/", "/etc/"):
        try:
            with open(place + "filled", "wb", buffering=0) as file:
                for _ in range(300): file.write(b"x" * 1_000_000)
        except OSError as error:
            full.append(place)
    return full
"""


async def test_no_place_of_the_sandbox_can_be_filled_without_end(box: Box) -> None:
    if box.wall != "bubblewrap" or not box.is_python:
        pytest.skip("only bubblewrap gives code places of its own")
    places = ["/", "/tmp/", "/dev/", "/dev/shm/", "/usr/", "/etc/"]
    assert await box.call(FILL, "", Confinement(seconds=20)) == places
