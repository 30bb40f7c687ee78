"""Checks with the real tools of a project, in the sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.knowledge.project.tools import DiscoveredTool, ToolCategory
from clew.team.evidence.checks import CheckRequest, CheckTools, run_check
from clew.team.evidence.receipts import CheckKind, CheckResult, CheckScope, hash_log
from clew.tools.sandbox import open_sandbox
from tests.team.evidence.completions import own_programs_first
from tests.team.worktrees.projects import PYTHON, TeamProject, make_repository, open_project, snapshot

NODE_TEST = """const test = require('node:test');
const assert = require('node:assert');
const { sum } = require('./sum.js');

test('adds', () => {
  assert.strictEqual(sum(1, 2), 3);
});
"""


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", own_programs_first())


def opened(tmp_path: Path, clock: ManualClock, files: Mapping[str, str]) -> TeamProject:
    root = make_repository(tmp_path / "checkout", dict(files))
    has_pointer = open_sandbox(production=False).wall != "landlock"
    return open_project(root, tmp_path / "state", clock, has_pointer=has_pointer)


async def check(
    project: TeamProject,
    kind: CheckKind,
    scope: CheckScope = "all",
    *commands: str,
    pipeline: str = "n.1",
    tools: Sequence[DiscoveredTool] | None = None,
) -> CheckResult:
    sandbox = open_sandbox(production=False)
    given = CheckTools(sandbox=sandbox, clock=project.clock, checkout=project.root, wall=sandbox.wall)
    if tools is not None:

        async def discover(root: Path, category: ToolCategory) -> Sequence[DiscoveredTool]:
            return [each for each in tools if each.category == category]

        given = CheckTools(sandbox=sandbox, clock=project.clock, checkout=project.root, discover=discover)
    request = CheckRequest(session="s1", pipeline=pipeline, run="r1", kind=kind, scope=scope, commands=commands)
    return await run_check(project.trees, request, given)


async def test_issues_of_the_linter_and_the_formatter_have_lines(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, PYTHON)
    commit = project.change("n.1", {"calc/core.py": "import os\ndef add(a, b):\n    return a+b\n"})
    before = snapshot(project.root)
    found = await check(project, "lint", "changed")
    assert not found.passed
    assert ("calc/core.py", 1, "lint") in [(each.file, each.line, each.category) for each in found.issues]
    assert "format" in {each.category for each in found.issues}
    assert {each.tree for each in found.receipts} == {commit.tree}
    assert all(each.exit_code == 1 and hash_log(each.log) == each.log_hash for each in found.receipts)
    assert snapshot(project.root) == before


async def test_types_are_checked_where_the_project_does(tmp_path: Path, clock: ManualClock) -> None:
    files = {**PYTHON, "mypy.ini": "[mypy]\nstrict = true\n"}
    project = opened(tmp_path, clock, files)
    project.change("n.1", {"calc/core.py": "def add(a: int, b: int) -> int:\n    return str(a + b)\n"})
    found = await check(project, "lint", "changed")
    types = [each for each in found.issues if each.category == "type"]
    assert [(each.file, each.line) for each in types] == [("calc/core.py", 2)]
    assert "str" in types[0].message


async def test_failed_tests_are_reported_with_values_and_the_tree_is_restored(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = opened(tmp_path, clock, PYTHON)
    test = PYTHON["tests/test_core.py"].replace("assert add", "open('junk.txt', 'w').close()\n    assert add")
    project.change("n.1", {"calc/core.py": "def add(a, b):\n    return a - b\n", "tests/test_core.py": test})
    found = await check(project, "test", "covering")
    (failure,) = found.failures
    assert (failure.test_name, failure.file) == ("tests.test_core.test_add", "tests/test_core.py")
    assert (failure.expected, failure.actual) == ("3", "-1")
    (receipt,) = found.receipts
    assert receipt.tests is not None
    assert (receipt.tests.run, receipt.tests.failed, receipt.exit_code) == (1, 1, 1)
    assert not (project.pipeline("n.1") / "junk.txt").exists()
    assert project.trees.status("n.1")[2]


async def test_tests_that_change_the_sources_are_noted(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, PYTHON)
    project.change("n.1", {"calc/core.py": PYTHON["calc/core.py"] + "\nX = 1\n"})
    found = await check(project, "command", "all", "echo >> calc/core.py")
    assert not found.passed
    assert found.receipts[0].changed_tree
    assert project.trees.status("n.1")[2]


async def test_only_tests_that_cover_the_change_run_first(tmp_path: Path, clock: ManualClock) -> None:
    more = {
        "calc/text.py": "def shout(a):\n    return a.upper()\n",
        "tests/test_text.py": "from calc.text import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A'\n",
    }
    project = opened(tmp_path, clock, {**PYTHON, **more})
    project.change("n.1", {"calc/text.py": "def shout(a):\n    return a.upper() + ''\n"})
    covering = await check(project, "test", "covering")
    assert covering.receipts[0].command.endswith("tests/test_text.py")
    assert covering.receipts[0].tests is not None
    assert covering.receipts[0].tests.run == 1
    everything = await check(project, "test", "all")
    assert everything.receipts[0].tests is not None
    assert everything.receipts[0].tests.run == 2


async def test_the_modules_of_the_work_tree_are_tested_and_not_those_of_the_checkout(
    tmp_path: Path, clock: ManualClock
) -> None:
    project = opened(tmp_path, clock, PYTHON)
    project.change("n.1", {"calc/core.py": PYTHON["calc/core.py"] + "\nWHERE = __file__\n"})
    found = await check(project, "command", "all", "cd tests && python -c 'import calc.core; print(calc.core.WHERE)'")
    assert found.receipts[0].log.strip().startswith(str(project.state))


async def test_unittest_is_counted_by_its_lines(tmp_path: Path, clock: ManualClock) -> None:
    files = {
        "calc.py": "def add(a, b):\n    return a + b\n",
        "tests/__init__.py": "",
        "tests/test_calc.py": "import unittest\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(add(1, 1), 2)\n\n    @unittest.skip('x')\n"
        "    def test_two(self):\n        self.assertEqual(add(1, 1), 2)\n",
    }
    project = opened(tmp_path, clock, files)
    project.change("n.1", {"calc.py": "def add(a, b):\n    return b + a\n"})
    runner = DiscoveredTool(name="unittest", category="test_framework", language="python")
    found = await check(project, "test", "covering", tools=[runner])
    (receipt,) = found.receipts
    assert receipt.tests is not None
    assert (receipt.tests.run, receipt.tests.skipped) == (1, 1)
    assert receipt.imported == ("calc.py",)


@pytest.mark.skipif(shutil.which("npm") is None, reason="NOT TESTED: npm is missing")
async def test_the_test_script_of_a_package_is_run(tmp_path: Path, clock: ManualClock) -> None:
    files = {
        "package.json": '{"scripts": {"test": "node --test --test-reporter=tap"}}',
        "sum.js": "exports.sum = (a, b) => a + b;\n",
        "sum.test.js": NODE_TEST,
    }
    project = opened(tmp_path, clock, files)
    project.change("n.1", {"sum.js": "exports.sum = (a, b) => a - b;\n"})
    found = await check(project, "test")
    assert not found.passed, found
    assert found.receipts[0].exit_code != 0
    assert found.receipts[0].imported == ("sum.js",)


async def test_a_project_without_tests_and_linters_says_so(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, {"notes.txt": "a\n"})
    project.change("n.1", {"notes.txt": "b\n"})
    lint, test = await check(project, "lint"), await check(project, "test")
    assert (lint.receipts, lint.skipped_reason) == ((), "the project has no linter, formatter or type checker")
    assert (test.receipts, test.skipped_reason, test.has_tests) == ((), "the project has no tests", False)


async def test_a_test_runner_that_is_not_installed_does_not_pass(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, {"a.py": "A = 1\n", "tests/test_a.py": "def test_a():\n    assert 1 + 1 == 2\n"})
    project.change("n.1", {"a.py": "A = 2\n"})
    runner = DiscoveredTool(name="nose9", category="test_framework", language="python", run_command="nose9 .")
    found = await check(project, "test", tools=[runner])
    assert (found.passed, found.skipped_reason) == (False, "nose9 is not installed")


async def test_deleted_tests_still_count_as_tests_of_the_project(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, {**PYTHON, "a.py": ""})
    project.change("n.1", {"tests/test_core.py": None, "a.py": "A = 1\n"})
    found = await check(project, "test")
    assert found.has_tests
    assert not found.passed


async def test_a_failure_in_a_pipe_counts(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, PYTHON)
    found = await check(project, "command", "all", "false | cat", "echo fine", pipeline="")
    assert [each.exit_code for each in found.receipts] == [1, 0]
    assert not found.passed


async def test_secrets_in_the_output_are_masked(tmp_path: Path, clock: ManualClock) -> None:
    project = opened(tmp_path, clock, PYTHON)
    found = await check(project, "command", "all", "echo api_key=sk-abcdef0123456789abcdef01", pipeline="")
    assert "0123456789" not in found.receipts[0].log
    assert found.receipts[0].log_hash == hash_log(found.receipts[0].log)
