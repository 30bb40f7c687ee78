"""The process of a command: its imports, its garbage collection and numpy's threads."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, PATIENCE, Clew
from tests.knowledge.code.repositories import make_repository
from tests.servers import give_key

FILES = {
    "src/retry.py": 'def backoff(attempt):\n    """Seconds before the next attempt."""\n    return 2**attempt\n',
    "docs/retry.md": "# Retry\n\nA payment is retried twice.\n",
}
RARE = {
    *("attr", "cyclopts", "numpy.ma", "packaging.requirements", "yaml"),
    *("clew.cli.commands.catalog", "clew.cli.options", "clew.knowledge.project.fact_reader"),
    *("anyio", "cryptography", "httpx2", "jwt", "markdown_it", "mcp", "multiprocessing", "pypdf", "rich"),
    *("sqlite3", "starlette", "tree_sitter", "uvicorn", "watchfiles", "importlib.metadata"),
    *("clew.adapters", "clew.agents", "clew.client", "clew.context", "clew.team", "clew.llm.model"),
    *("clew.catalog.servers.connections.connection", "clew.catalog.skills.loaded_skills"),
    *("clew.catalog.sources.http", "clew.catalog.sources.reach", "clew.catalog.sources.warehouse"),
    *("clew.knowledge.code.languages.extract", "clew.knowledge.code.linking.linker", "packaging", "splintr"),
    *("clew.skills.discovery", "clew.skills.sessions.agent_session", "clew.tools.sandbox"),
    *("clew.knowledge.project.devtools", "importlib.resources", "zipfile"),
}
"""Modules that most questions do without: each costs a question more than its answer."""
MOST_MODULES, MOST_PATTERNS = 700, 180
"""How many modules a warm question loads and how many regular expressions it compiles, with some room: most of its time
goes there."""
PROGRAM = """
import gc, json, os, re, sys
compile, compiled = re._compiler.compile, []
re._compiler.compile = lambda pattern, flags=0: compiled.append(pattern) or compile(pattern, flags)
from clew.cli.process import run_command
code = run_command()
about = {"modules": sorted(sys.modules), "young": gc.get_threshold()[0], "frozen": gc.get_freeze_count()}
about["patterns"] = len(compiled)
about["threads"] = os.environ.get("OPENBLAS_NUM_THREADS", "")
sys.stderr.write(json.dumps(about))
sys.exit(code)
"""


def run_process(*arguments: str, cwd: Path, **variables: str) -> dict[str, Any]:
    """Run a command in a separate process and return its report about itself."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, "CLEW_NO_SERVER": "1", **variables}
    if "OPENBLAS_NUM_THREADS" not in variables:
        environment.pop("OPENBLAS_NUM_THREADS", None)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return found


@pytest.mark.req("BEY-11")
def test_a_warm_question_loads_nothing_that_only_other_commands_or_folders_need(
    clew: Clew, folder: Path, tmp_path: Path
) -> None:
    make_repository(tmp_path, FILES)
    give_key(folder)
    assert clew("index").code == 0
    question = ("ask", "where are the seconds before the next attempt")
    run_process(*question, cwd=tmp_path)

    about = run_process(*question, cwd=tmp_path)
    loaded = about["modules"]

    assert "clew.knowledge.base" in loaded  # it was answered here
    assert sorted(RARE.intersection(loaded)) == []
    assert len(loaded) < MOST_MODULES
    assert about["patterns"] < MOST_PATTERNS


def test_a_short_command_looks_for_garbage_seldom_and_leaves_it_to_the_system_at_its_end(tmp_path: Path) -> None:
    about = run_process("--version", cwd=tmp_path)

    assert about["young"] >= 10_000
    assert about["frozen"] > 0


def test_a_short_command_starts_no_threads_for_matrices_unless_the_user_says_so(tmp_path: Path) -> None:
    assert run_process("--version", cwd=tmp_path)["threads"] == "1"
    assert run_process("--version", cwd=tmp_path, OPENBLAS_NUM_THREADS="4")["threads"] == "4"
    assert run_process("up", "--help", cwd=tmp_path)["threads"] == ""


@pytest.mark.parametrize("stderr", ["full", "without a reader", "closed"])
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["trail", "put", "--title", "A first record notes the new trail"]),
        (1, ["trail", "show", "missing"]),
        (2, ["trail", "put", "--nonsense"]),
        (2, ["ask", "what", "--folder="]),
        (2, ["up", "--nonsense"]),
    ],
)
def test_the_exit_code_stands_where_standard_error_takes_nothing(
    folder: Path, code: int, arguments: list[str], stderr: str
) -> None:
    if stderr == "full":
        place = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, place = os.pipe()
        os.close(reader)
    closing = "2>&-" if stderr == "closed" else ""
    command = ["sh", "-c", f"exec {shlex.join([*COMMAND, *arguments])} {closing}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=place, timeout=PATIENCE, check=False)
    os.close(place)
    assert done.returncode == code


@pytest.mark.parametrize(
    ("code", "arguments", "closing"),
    [
        (0, ["trail", "put", "--title", "A record without standard output"], ">&-"),
        (0, ["--help"], ">&-"),
        (0, ["trail", "put", "--title", "A record without standard input"], "<&-"),
        (1, ["trail", "show", "missing"], "<&- >&-"),
    ],
)
def test_a_closed_stream_is_an_empty_one(folder: Path, code: int, arguments: list[str], closing: str) -> None:
    command = ["sh", "-c", f"exec {shlex.join([*COMMAND, *arguments])} {closing}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "unforeseen" not in done.stderr
