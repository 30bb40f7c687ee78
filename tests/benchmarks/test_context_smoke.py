"""The benchmark of contexts with a few records: all of it runs, and the walk finds records that search cannot find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import DATA

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "context.py"


def run_benchmark(folder: Path, *options: str) -> dict[str, Any]:
    scratch = folder / "scratch"
    scratch.mkdir()
    command = [sys.executable, str(BENCHMARK), "--scratch", str(scratch), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(scratch.iterdir()) == []
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_contexts_are_built_on_a_trail_of_a_few_records(tmp_path: Path) -> None:
    found = run_benchmark(tmp_path, "--only", "assembly", "--records", "300", "--builds", "2")
    assert found["assembly"]["records"] == 300
    assert found["assembly"]["p95 ms"] >= found["assembly"]["p50 ms"] > 0


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_an_answer_beside_what_the_question_says_is_found_by_the_walk_alone(tmp_path: Path) -> None:
    said = [
        "Good morning Bo",
        "Which wine festival did you visit last autumn?",
        "The one at Merano, marvellous!",
        "Bye",
    ]
    fill = [f"Wine number {at} is stored beside festival flag {at}" for at in range(60)]
    rows = [
        {"id": f"c-1:{'D1' if at < 4 else f'D{at}'}:{at}", "name": "Ann 1 May", "description": text, "set": "c-1"}
        for at, text in enumerate(said + fill)
    ]
    write_rows(tmp_path / "memory_dev_corpus.jsonl", rows)
    write_rows(
        tmp_path / "memory_dev.jsonl",
        [{"query": "Which wine festival was visited?", "relevant": ["c-1:D1:2"], "set": "c-1"}],
    )
    found = run_benchmark(tmp_path, "--only", "two_hop", "--data", str(tmp_path))["two_hop"]
    assert (found["questions"], found["flat recall %"], found["graph recall %"]) == (1, 0.0, 100.0)


@pytest.mark.req("RCR-35", "BEY-04")
@pytest.mark.skipif(not (DATA / "memory_dev.jsonl").exists(), reason="the benchmark data is not at hand")
def test_on_real_conversations_the_walk_is_fifteen_points_ahead(tmp_path: Path) -> None:
    found = run_benchmark(tmp_path, "--only", "two_hop", "--conversations", "2", "--data", str(DATA))["two_hop"]
    assert found["questions"] >= 10
    assert found["points ahead"] >= 15
