"""The waiting times of a person on a repository of 1,000 files: the first question, a later one, and the handshake of
MCP.

Each is a process of its own, beside an empty Python. Its processor time hardly depends on other programs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from speed.processes import clean_environment, clew_command, clew_up, serving
from speed.report import Finding, Promise, Row
from speed.stage import Stage
from speed.timing import tell

MEASURE = "asking, as processes"
FILES, RUNS, FIRSTS = 1_000, 9, 2
MOST_ASK, MOST_HANDSHAKE, MOST_FIRST = 600.0, 500.0, 5_000.0
QUESTION, OTHER = "where is the backoff of a payment computed", "which function sends an invoice to a customer"
ALONE = {"CLEW_NO_SERVER": "1"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
NOUNS = ("payment", "invoice", "customer", "shipment", "refund", "contract", "address", "discount", "stock", "order")
VERBS = ("send", "compute", "check", "store", "cancel", "merge", "export", "import", "verify", "schedule")


class Took(NamedTuple):
    """Milliseconds on the clock, and of processor time."""

    wall: float
    processor: float


def measure(stage: Stage) -> list[Finding]:
    tell(f"{MEASURE}: {FILES:,} files")
    root = build_repository(stage.folder / "asking")
    ask = [*clew_command(), "ask"]
    firsts = stage.settings.samples(FIRSTS, least=1)
    took: dict[str, list[Took]] = {"first ask": [], "second ask": []}
    for _ in range(firsts):
        shutil.rmtree(root / ".clew", ignore_errors=True)
        took["first ask"].append(run_process([*ask, QUESTION], root, ALONE))
        took["second ask"].append(run_process([*ask, OTHER], root, ALONE))
    runs = stage.settings.samples(RUNS, least=2)
    with serving(clew_up(root / ".clew")):
        turns: dict[str, Callable[[], Took]] = {
            "python alone": lambda: run_process([sys.executable, "-c", "pass"], root),
            "warm ask by itself": lambda: run_process([*ask, QUESTION], root, ALONE),
            "warm ask beside clew up": lambda: run_process([*ask, QUESTION], root),
            "clew mcp until initialized": lambda: handshake([*clew_command(), "mcp"], root),
        }
        for turn in range(runs + 1):
            for name, run in turns.items():
                seen = run()
                if turn:  # the first turn warms the caches of the system
                    took.setdefault(name, []).append(seen)
    return find(took)


def find(took: Mapping[str, Sequence[Took]]) -> list[Finding]:
    middle = {name: Took(*(median(column) for column in zip(*each, strict=True))) for name, each in took.items()}
    python = middle["python alone"]
    rows = [
        Row(
            measure=MEASURE,
            records=FILES,
            contender=name,
            values={
                "ms": each.wall,
                "processor ms": each.processor,
                "times python": each.wall / python.wall,
                "times python's processor time": each.processor / python.processor,
            },
        )
        for name, each in middle.items()
    ]
    promised = (
        ("warm ask beside clew up", MOST_ASK),
        ("clew mcp until initialized", MOST_HANDSHAKE),
        ("first ask", MOST_FIRST),
    )
    return [
        *rows,
        *(
            Promise(name=f"{name}, ms", records=FILES, value=middle[name].wall, target=most, at_least=False)
            for name, most in promised
        ),
    ]


def build_repository(root: Path) -> Path:
    """A git repository of small modules that call each other."""
    for number in range(FILES - 1):
        path = root / f"shop{number // 50}" / f"part{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_module(number), encoding="utf-8")
    (root / "README.md").write_text("# Shop\n\nPayments are tried again with a backoff.\n", encoding="utf-8")
    about = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*about, "commit", "-q", "-m", "Add the shop"]):
        subprocess.run(["git", *command], cwd=root, check=True, env=clean_environment())
    return root


def _module(number: int) -> str:
    noun, verb = NOUNS[number % len(NOUNS)], VERBS[number // len(NOUNS) % len(VERBS)]
    functions = [
        f'def {verb}_{noun}_{number}_{step}(amount):\n    """{verb.title()} the {noun} of step {step}."""\n'
        f"    return amount * {step + 1}\n"
        for step in range(5)
    ]
    before = f"from shop{(number - 1) // 50}.part{number - 1} import *\n\n\n" if number else ""
    return f'"""How to {verb} each {noun}."""\n\n{before}' + "\n\n".join(functions)


def run_process(command: Sequence[str], root: Path, environment: Mapping[str, str] | None = None) -> Took:
    """Run a command in a folder to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=root,
        env=clean_environment(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[1:3]} ended with {process.returncode}")
    return Took(1000 * wall, 1000 * (used.ru_utime + used.ru_stime))


def handshake(command: Sequence[str], root: Path) -> Took:
    """Start an MCP server, and wait until it has answered `initialize`."""
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=root,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        wall = time.perf_counter() - began
        used = _processor_seconds(process.pid)
        process.kill()
    if b'"result"' not in answer:
        raise RuntimeError(f"{command[1:3]} did not answer the handshake")
    return Took(1000 * wall, 1000 * used)


def _processor_seconds(pid: int) -> float:
    """The processor time of a running process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
