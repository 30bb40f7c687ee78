"""The benchmark of the catalog's speed with a few tools: that all of it runs and cleans up. No times are judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def write_data(folder: Path) -> None:
    rows = [
        {"id": f"t:{at}", "name": f"tool_{at}", "description": f"Does the thing number {at}", "content": "", "set": "t"}
        for at in range(80)
    ]
    queries = [{"query": f"do the thing {at}", "relevant": [f"t:{at}"], "set": "t"} for at in range(20)]
    for name, lines in (("tools_dev_corpus", rows), ("tools_dev", queries), ("tools_distractors_docker", [])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.slow
def test_every_measure_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch, results = tmp_path / "scratch", tmp_path / "catalog.json"
    scratch.mkdir()
    write_data(tmp_path)
    options = ["--tools", "70", "--routes", "250", "--resources", "300", "--quick", "--data", str(tmp_path)]
    command = [sys.executable, str(BENCHMARKS / "catalog.py"), *options, "--scratch", str(scratch)]
    done = subprocess.run([*command, "--json", str(results)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(results.read_text(encoding="utf-8"))
    measures = {row["measure"]: row["values"] for row in found["rows"]}
    assert set(measures) == {"asking", "starting clew mcp", "getting", "loading", "a bare mcp round trip"}
    assert all(value == value for values in measures.values() for value in values.values())
    assert any("p95" in promise["name"] for promise in found["promises"])
    assert list(scratch.iterdir()) == []


def test_an_unknown_measure_is_refused() -> None:
    command = [sys.executable, str(BENCHMARKS / "catalog.py"), "--only", "weather"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'weather' is none of asks, gets, loads, bare" in done.stderr
