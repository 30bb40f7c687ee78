"""Output of code cannot control a terminal or be endless, and its input is empty."""

from __future__ import annotations

import re

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement
from tests.faults.sandbox.escapes import linux_only
from tests.tools.sandbox.boxes import Box

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]


async def test_output_has_no_power_over_a_terminal(box: Box) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \x9b2Jgreen\x1b]52;c;cGFzdGU=\x1b\\ \u202etxt\r\x08end\n"
    program = box.program(
        "import sys\ndef run(input, context):\n    for stream in (sys.stdout, sys.stderr): stream.write(input['text'])",
        "function run(input) { const raw = new TextEncoder().encode(input.text);"
        " Deno.stdout.writeSync(raw); Deno.stderr.writeSync(raw); }",
        text=evil,
    )
    ran = await box.sandbox().run(program, Confinement(seconds=20))
    assert ran.stdout == ran.stderr == "red green txt\nend\n"


async def test_an_error_has_no_power_over_a_terminal(box: Box) -> None:
    outcome = await box.call(
        "def run(input, context):\n    raise ValueError('\\x1b[2Jbad\\x07')",
        "function run() { throw new RangeError('\\u001b[2Jbad\\u0007') }",
        Confinement(seconds=20),
    )
    assert isinstance(outcome, ToolFailure)
    assert outcome.message.endswith("Error: bad")
    assert not re.search("[\x00-\x08\x1b]", outcome.stack)


async def test_output_without_end_is_cut_off(box: Box) -> None:
    program = box.program(
        "def run(input, context):\n    while True: print('x' * 10_000)",
        "function run() { const line = 'x'.repeat(10_000); for (;;) console.log(line); }",
    )
    ran = await box.sandbox().run(program, Confinement(seconds=30, output_bytes=200_000))
    assert ran.killed_by == "output"
    assert len(ran.stdout) <= 400_000


async def test_a_huge_result_is_refused(box: Box) -> None:
    outcome = await box.call(
        "def run(input, context):\n    return 'x' * 3_000_000",
        "function run() { return 'x'.repeat(3_000_000) }",
        Confinement(seconds=20),
    )
    assert isinstance(outcome, ToolFailure)
    assert outcome.message == "produced more than 1,000,000 bytes of output"


async def test_stdin_holds_nothing_and_the_terminal_cannot_be_typed_into(box: Box) -> None:
    python = """
import fcntl, os, sys

def run(input, context):
    got = [sys.stdin.read(), os.read(0, 10).decode()]
    for fd in (0, 1, 2):
        try: got.append(fcntl.ioctl(fd, 0x5412, b"x"))
        except OSError: pass
    try: got.append(os.open("/dev/tty", os.O_RDWR))
    except OSError: pass
    return got
"""
    javascript = "async function run() { const got = new Uint8Array(9); return [await Deno.stdin.read(got) ?? '', ''] }"
    assert await box.call(python, javascript, Confinement(seconds=20)) == ["", ""]
