"""The benchmark of localisation on a repository of two commits: that every contender runs, that what is absent is
named, and that a run that was ended goes on where it was."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))

from knowledge_peers import raw_tools  # noqa: E402  # the folder is no package
from knowledge_peers.localisation import measure_localisation  # noqa: E402
from speed.report import Promise, Row  # noqa: E402

FILES = {
    "src/retry_policy.py": "def retry_request(attempts):\n    return attempts\n",
    "src/invoices.py": "def render_invoice(total):\n    return str(total)\n",
    "README.md": "A shop.\n",
}


def _git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    folder = tmp_path / "repositories" / "me+shop"
    _write(folder, FILES)
    _git(folder, "init", "-q")
    for message in ("one", "two"):
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", message)
        _git(folder, "tag", message)
        _write(folder, {"src/invoices.py": "", "src/billing.py": FILES["src/invoices.py"]})
    return tmp_path / "repositories"


def _ask(folder: Path, repositories: Path, *more: dict[str, Any]) -> Path:
    at = {name: _git(repositories / "me+shop", "rev-parse", name) for name in ("one", "two")}
    about = {"repo": "me/shop", "set": "commit", "query": "where does render_invoice round the total of an invoice"}
    rows = [
        {**about, "base_commit": at["one"], "relevant": ["src/invoices.py"]},
        {**about, "base_commit": at["two"], "relevant": ["src/billing.py"]},
        *more,
    ]
    (folder / "code_loc_dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def _rows(findings: list[Any]) -> dict[str, Row]:
    return {row.contender: row for row in findings if isinstance(row, Row) and not row.note}


def test_each_contender_finds_the_file_at_each_commit(tmp_path: Path, repositories: Path) -> None:
    findings = measure_localisation(_ask(tmp_path, repositories), repositories)
    rows = _rows(findings)
    assert {"clew", "fts5"} <= set(rows)
    assert {way: row.values["nDCG@10"] for way, row in rows.items()} == dict.fromkeys(rows, 1.0)
    assert [promise.is_kept for promise in findings if isinstance(promise, Promise)] == [True]


def test_missing_contenders_are_skipped_and_named(tmp_path: Path, repositories: Path) -> None:
    absent = {"repo": "you/none", "set": "commit", "query": "x", "base_commit": "0", "relevant": ["y"]}
    findings = measure_localisation(_ask(tmp_path, repositories, absent), repositories)
    notes = [row.note for row in findings if isinstance(row, Row) and row.note]
    assert "skipped: you/none is not among the repositories" in notes
    assert "skipped: no Python with aider was given (--aider PYTHON)" in notes
    (without,) = measure_localisation(tmp_path / "nothing", repositories)
    assert isinstance(without, Row)
    assert without.note == "skipped: code_loc_dev.jsonl is not there"


def test_a_run_goes_on_from_what_was_kept(tmp_path: Path, repositories: Path) -> None:
    data, kept = _ask(tmp_path, repositories), tmp_path / "kept.jsonl"
    measure_localisation(data, repositories, kept=kept)
    lines = kept.read_bytes().splitlines()
    whole = len(lines)
    assert whole >= 4
    kept.write_bytes(b"\n".join([*lines[: whole // 2], lines[-1][:20]]) + b"\n")
    findings = measure_localisation(data, repositories, kept=kept)
    assert _rows(findings)["clew"].records == 2
    assert len(kept.read_bytes().splitlines()) == whole + 1


def test_only_the_chosen_repositories_are_asked_about(tmp_path: Path, repositories: Path) -> None:
    findings = measure_localisation(_ask(tmp_path, repositories), repositories, only=["you/none"])
    assert _rows(findings) == {}


async def test_lookups_are_timed_beside_the_tools_that_are_installed(tmp_path: Path) -> None:
    root = tmp_path / "code"
    _write(root, FILES | {"src/many.py": "".join(f"def number_{at}(): ...\n" for at in range(20))})
    findings = await raw_tools.measure_beside(root, tmp_path)
    rows = [row for row in findings if isinstance(row, Row)]
    timed = {row.contender for row in rows if row.measure == "symbol by name" and not row.note}
    installed = {way for way, program in {"ripgrep": "rg", "readtags": "readtags"}.items() if shutil.which(program)}
    assert {"clew", "an empty program"} <= timed
    assert (installed & timed) or not shutil.which("rg")
    assert [row.contender for row in rows if "serena" in row.note] == ["serena"]


def test_the_summary_has_all_parts(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "knowledge_all.py"), "--only", "calls,search"]
    command += ["--data", str(tmp_path / "none"), "--repos", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    short = done.stdout.partition("# in short")[2]
    assert done.returncode == 0, done.stderr
    assert "calls: 0 | clew | skipped: callgraph_dev.jsonl is not there" in short
    assert "search: skipped: no benchmark data" in short
