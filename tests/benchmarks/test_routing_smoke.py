"""The benchmark of routing: what it promises on the dev sets, and that it says so where these are absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/routing.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_without_the_data_it_is_skipped_loudly(tmp_path: Path) -> None:
    done = run("--data", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped: ")


@pytest.mark.req("SYL-12")
@pytest.mark.skipif(not (DATA / "routing_dev.jsonl").exists(), reason="../shared/data is absent")
def test_the_router_is_right_where_it_is_certain_on_messages_it_has_not_seen() -> None:
    done = run("--seeds", "1", "--shipped")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Slash commands: 14 of 14 right." in done.stdout
