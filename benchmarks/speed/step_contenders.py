"""Processes of contenders as the measures use them: served, killed, started again."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from speed.processes import clean_environment

OURS, TALK = "clew", "conversation"
GRAPH, GRAPH_ASYNC, DBOS = "langgraph", "langgraph-async", "dbos"
TEAM, SUPERVISOR, BARE = "team", "supervisor", "supervisor-bare"
PEERS = {GRAPH: "langgraph", GRAPH_ASYNC: "langgraph", DBOS: "dbos", SUPERVISOR: "langgraph", BARE: "langgraph"}
SHOWN = {
    OURS: "clew",
    TALK: "clew, conversation",
    GRAPH: "langgraph, durability sync",
    GRAPH_ASYNC: "langgraph, durability async",
    DBOS: "dbos",
    TEAM: "clew, team",
    SUPERVISOR: "langgraph, supervisor with agents",
    BARE: "langgraph, supervisor with empty nodes",
}
PATIENCE = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is measured, and where."""

    scratch: Path
    rounds: int = 5
    quick: bool = False
    without: frozenset[str] = frozenset()

    def count(self, full: int, least: int) -> int:
        return least if self.quick else full

    def folder(self, name: str) -> Path:
        """A new folder for a contender."""
        found = self.scratch / name
        found.mkdir(parents=True)
        return found


def why_absent(name: str, settings: Settings) -> str:
    """Why a peer is not measured; empty when it is."""
    if name in settings.without:
        return "left out"
    package = PEERS.get(name)
    return f"{package} is not installed" if package and find_spec(package) is None else ""


class Spent(NamedTuple):
    """The cost of some work: elapsed seconds, and processor seconds, which other programs on the machine hardly
    affect."""

    seconds: float
    processor: float


class Served:
    """A contender that waits for work."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, sessions: int, steps: int) -> Spent:
        """Run so many new sessions of so many steps."""
        answer = self.measure(sessions, steps)
        return Spent(answer["seconds"], answer["processor"])

    def measure(self, sessions: int, steps: int) -> dict[str, float]:
        """As `run`, with the steps that were counted."""
        names = [str(uuid4()) for _ in range(sessions)]  # as the runtime names its sessions
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"sessions": names, "steps": steps}) + "\n")
        self._process.stdin.flush()
        return read_answer(self._process)


@contextlib.contextmanager
def serving(name: str, folder: Path, steps: int = 0) -> Iterator[Served]:
    """A contender's process, which ends with the block and then has closed its files."""
    process = start(name, folder, "serve", steps)
    try:
        read_answer(process)
        yield Served(process)
        process.communicate(timeout=PATIENCE)  # closes its input, at the end of which it exits
    finally:
        process.kill()
        process.wait()


def crash(name: str, folder: Path, steps: int, at: int) -> None:
    """Let a contender begin a session, and be killed in the middle of it."""
    process = start(name, folder, "crash", steps, at)
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    if process.returncode != -9:
        raise RuntimeError(f"{name} was to be killed, and ended with {process.returncode}: {last_words(folder)}")


def resume(name: str, folder: Path, steps: int) -> Spent:
    """From the start of a new process to the end of the session that was killed."""
    began = time.perf_counter()
    process = start(name, folder, "resume", steps)
    try:
        processor = read_answer(process)["processor"]
        spent = Spent(time.perf_counter() - began, processor)
        process.communicate(timeout=PATIENCE)
        return spent
    finally:
        process.kill()
        process.wait()


def start(name: str, folder: Path, what: str, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "speed.step_process", name, str(folder), what, *map(str, numbers)]
    environment = clean_environment({"PYTHONPATH": str(Path(__file__).parents[1])})
    with errors_of(folder).open("w") as errors:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )


def errors_of(folder: Path) -> Path:
    """The file for the report of a contender; it is beside its folder, whose size is measured."""
    return folder.with_name(f"{folder.name}.errors")


def last_words(folder: Path) -> str:
    return errors_of(folder).read_text(encoding="utf-8", errors="replace")[-2_000:]


def read_answer(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        name, folder = process.args[3:5]  # type: ignore[index, misc]  # a list, as given
        raise RuntimeError(f"{name} ended without an answer: {last_words(Path(str(folder)))}")
    found: dict[str, float] = json.loads(line)
    return found


def folder_bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def measured(names: Sequence[str], settings: Settings) -> list[str]:
    """Those that are there."""
    return [name for name in names if not why_absent(name, settings)]
