"""The benchmark of the runtime with a few steps, and without the peers that only its own environment has."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEERS = "langgraph,langgraph-async,dbos"

sys.path.insert(0, str(BENCHMARKS))

from speed.runtime_conversations import evenness  # noqa: E402  # the folder is no package
from speed.step_contenders import crash, resume  # noqa: E402


def run_benchmark(folder: Path, only: str) -> dict[str, Any]:
    """The results of a quick run, which must leave nothing behind in its scratch folder."""
    scratch, results = folder / "scratch", folder / "runtime.json"
    scratch.mkdir()
    options = ["--quick", "--only", only, "--without", PEERS, "--scratch", str(scratch), "--json", str(results)]
    command = [sys.executable, str(BENCHMARKS / "runtime.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(scratch.iterdir()) == []
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    assert all(math.isfinite(value) for row in found["rows"] for value in row["values"].values())
    return found


@pytest.mark.slow
def test_steps_crashes_and_conversations_are_measured(tmp_path: Path) -> None:
    found = run_benchmark(tmp_path, "steps,resume,conversations")

    rows = {(row["measure"], row["contender"]): row for row in found["rows"]}
    for measure in ("durable steps, one session", "durable steps, 8 sessions side by side"):
        assert rows[measure, "clew"]["values"]["steps/s"] > 0
    assert rows["durable steps, 8 sessions side by side", "dbos"]["note"] == "left out"
    assert rows["bytes stored a step", "clew"]["values"]["beyond it"] > 0
    assert rows["going on after kill -9", "clew, conversation"]["values"]["s"] > 0
    promised = {promise["name"]: promise["value"] for promise in found["promises"]}
    assert promised["conversations with all their events"] == 1.0
    assert "clew: done after kill -9, s" in promised


@pytest.mark.slow
def test_contexts_are_measured(tmp_path: Path) -> None:
    found = run_benchmark(tmp_path, "contexts")

    assert [row["measure"] for row in found["rows"]] == ["context assembly"]
    assert any("p95" in promise["name"] for promise in found["promises"])


def test_a_killed_run_goes_on_in_another_process(tmp_path: Path) -> None:
    crash("clew", tmp_path, steps=6, at=3)
    assert resume("clew", tmp_path, steps=6).processor > 0


def test_how_even_conversations_go_on_is_what_the_one_behind_has_of_the_mean() -> None:
    even = {"a": [(1, "x"), (3, "x")], "b": [(2, "x"), (4, "x")]}
    uneven = {"a": [(1, "x"), (2, "x"), (3, "x")], "b": [(4, "x"), (5, "x"), (6, "x")]}
    assert evenness(even) == pytest.approx(1 / 1.5)
    assert evenness(uneven) == pytest.approx(1 / 2)


def test_an_unknown_measure_is_refused() -> None:
    command = [sys.executable, str(BENCHMARKS / "runtime.py"), "--only", "weather"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'weather' is none of steps, resume, conversations" in done.stderr
