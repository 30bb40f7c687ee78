"""The simulation of larger installations, on points that were measured once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SIMULATE = Path(__file__).parents[2] / "benchmarks" / "simulate_scale.py"
POINTS = Path(__file__).with_name("scale_points.json")
SMALL = ("--workers", "1,4", "--sessions", "10,200", "--warm-up", "20", "--seconds", "10", "--think", "20")


def simulate(points: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SIMULATE), "--points", str(points), *SMALL, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def rows(text: str) -> list[list[str]]:
    """The cells of the only table in a text."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_measured_points_are_reproduced_before_larger_installations_are_simulated() -> None:
    done = simulate(POINTS)
    assert done.returncode == 0, done.stderr
    points, workers, sessions = map(rows, done.stdout.split("###"))
    assert {row[0] for row in points} == set(json.loads(POINTS.read_text())["points"])
    rates = {tuple(row[:2]): float(row[2].replace(",", "")) for row in workers}
    assert rates["4", "1"] > 1.5 * rates["1", "1"], "more workers do more"
    assert rates["4", "2"] > 1.3 * rates["4", "1"], "and more with a second log, as they wait for the lock of the first"
    assert [row[0] for row in sessions] == ["10", "200"]


def test_a_run_with_one_seed_gives_the_same_answer_again() -> None:
    first, second = simulate(POINTS), simulate(POINTS)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout


def test_nothing_is_said_of_larger_machines_where_a_point_is_not_reproduced(tmp_path: Path) -> None:
    found = json.loads(POINTS.read_text())
    found["points"]["steps/s, 2 workers"] *= 4
    wrong = tmp_path / "points.json"
    wrong.write_text(json.dumps(found))
    done = simulate(wrong)
    assert done.returncode == 1
    assert "The model is off by" in done.stderr
    assert "at 'steps/s, 2 workers'" in done.stderr
    assert "### Sessions" not in done.stdout
