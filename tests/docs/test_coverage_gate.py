"""The coverage gate of CI for the modules that decide which skills and tools an agent has: every branch is taken."""

from __future__ import annotations

import ast
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRITICAL = ("registry", "exposure", "sessions/tool_mapping", "prompt", "variables")
"""Registry, filters and prompt, with the modules that they use."""
LEAST_TESTS, LEAST_OF_ERRORS = 140, 30


def gated_tests() -> list[Path]:
    """The test files that the gate runs, as `make` would."""
    told = subprocess.run(["make", "-n", "-s", "coverage-skills"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / word for word in shlex.split(told.stdout) if word.endswith(".py") and word.startswith("tests/")]


def is_of_errors(test: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "raises" for node in ast.walk(test))


@pytest.mark.req("CAR-32")
def test_ci_ends_red_when_a_branch_of_the_critical_modules_is_not_taken() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]
    assert settings["run"]["branch"] is True
    assert settings["report"]["fail_under"] == 100
    assert {f"src/clew/skills/{name}.py" for name in CRITICAL} <= set(settings["run"]["include"])
    assert all((ROOT / path).is_file() for path in settings["run"]["include"])
    assert "make coverage-skills" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.req("CAR-32")
def test_the_gate_runs_a_suite_of_the_promised_size() -> None:
    tests = [
        node
        for path in gated_tests()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert len(tests) >= LEAST_TESTS
    assert sum(map(is_of_errors, tests)) >= LEAST_OF_ERRORS
