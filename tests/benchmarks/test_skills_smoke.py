"""The benchmark of skills with a few of them: that all of it runs and cleans up. No times are judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run_benchmark(folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    scratch, results = folder / "scratch", folder / "skills.json"
    scratch.mkdir()
    places = ["--data", str(folder), "--scratch", str(scratch), "--json", str(results)]
    command = [sys.executable, str(BENCHMARKS / "skills.py"), "--skills", "30", "--tools", "200", "--quick"]
    done = subprocess.run([*command, *places, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(scratch.iterdir()) == []
    return json.loads(results.read_text(encoding="utf-8")), done.stdout


def test_every_promise_is_measured_on_made_up_skills(tmp_path: Path) -> None:
    found, tables = run_benchmark(tmp_path, "--without-peers")
    assert {row["measure"] for row in found["rows"]} == {"building", "tools of an agent", "prompt"}
    assert len(found["promises"]) == 6
    assert all(value > 0 for row in found["rows"] for value in row["values"].values())
    assert "### promises" in tables


def test_real_skills_are_built_beside_the_peers_that_are_installed(tmp_path: Path) -> None:
    rows = [{"id": f"s:{at}", "name": f"Skill {at}", "description": f"Does {at}", "content": "# A"} for at in range(7)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "skills_dev_corpus.jsonl").write_text(text, encoding="utf-8")
    found, tables = run_benchmark(tmp_path, "--only", "builds,prompts")
    contenders = {row["contender"] for row in found["rows"] if row["measure"] == "building"}
    assert {"clew", "clew, unchanged", "skills-ref, validate and read", "FastMCP, listing anew"} <= contenders
    assert "times as long as clew" in tables


def test_an_unknown_measure_is_refused() -> None:
    command = [sys.executable, str(BENCHMARKS / "skills.py"), "--only", "weather"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'weather' is none of builds, tools, prompts" in done.stderr
