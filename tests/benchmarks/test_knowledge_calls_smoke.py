"""The benchmark of who calls what on a program of two files: that it runs, and that its figures are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))

from knowledge_calls import measure_calls, measure_speed  # noqa: E402  # the folder is no package
from speed.report import Promise, Row  # noqa: E402


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    folder = tmp_path / "repositories" / "me+small"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "main.py").write_text("from lib import f\ng = f\ndef run():\n    g()\n")
    (folder / "one" / "lib.py").write_text("def f(): ...\ndef h(): f()\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        _git(folder, *command)
    return tmp_path / "repositories"


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _data(folder: Path, repositories: Path, **row: Any) -> Path:
    commit = _git(repositories / "me+small", "rev-parse", "HEAD")
    place = {"repo": "me/small", "commit": commit, "path": "one", "feature": "aliases", "callee": "lib.f"}
    (folder / "callgraph_dev.jsonl").write_text(json.dumps({**place, **row}) + "\n")
    return folder


def test_precision_and_recall_are_over_pairs(tmp_path: Path, repositories: Path) -> None:
    data = _data(tmp_path, repositories, relevant=["main.run", "lib.h", "lib.nobody"])
    findings = measure_calls(data, repositories)
    ours = next(row for row in findings if isinstance(row, Row) and row.contender == "clew")
    assert ours.values == {"precision": 1.0, "recall": 2 / 3, "F1": 0.8, "macro F1": 0.8}
    assert [promise.is_kept for promise in findings if isinstance(promise, Promise)] == [False]


def test_missing_data_is_skipped_and_named(tmp_path: Path, repositories: Path) -> None:
    (without,) = measure_calls(tmp_path, repositories)
    data = _data(tmp_path, repositories, repo="you/none", relevant=[])
    (unknown,) = measure_calls(data, repositories)
    assert isinstance(without, Row)
    assert without.note == "skipped: callgraph_dev.jsonl is not there"
    assert isinstance(unknown, Row)
    assert unknown.note == "skipped: you/none is not among the repositories"


def test_times_are_taken_on_a_folder(repositories: Path) -> None:
    row, promise = measure_speed(repositories)
    assert isinstance(row, Row)
    assert isinstance(promise, Promise)
    assert (row.records, row.values["calls"]) == (2, 2)
