"""One real project with several languages, and completions of tasks in it: commits in real work trees, with receipts of
real runs or receipts that are bound to such a commit."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from clew.clock import ManualClock
from clew.team.evidence.checks import CheckRequest, CheckTools, describe_subject, run_check
from clew.team.evidence.gate import CompletionClaim, GateState, TaskReview, Verdict, accept
from clew.team.evidence.receipts import CheckKind, CheckReceipt, CheckResult, TestCounts, hash_log
from clew.team.evidence.related_tests import loaded_statically
from clew.team.worktrees.session_trees import PipelineCommit
from clew.tools.sandbox import open_sandbox
from tests.team.worktrees.projects import TeamProject, make_repository, open_project

CORE = '''"""Sums."""


def add(a: int, b: int) -> int:
    return a + b


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
'''
TEXT = 'def shout(text: str) -> str:\n    return text.upper() + "!"\n'
TEST_CORE = """import unittest

import pytest
from calc.core import add, mean


def test_add() -> None:
    assert add(1, 2) == 3
    assert add(-1, 1) == 0


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [0.0, 2.0]])
def test_mean_is_one(values: list[float]) -> None:
    assert mean(values) == 1.0


def test_mean_of_nothing_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        mean([])


class TestAdd(unittest.TestCase):
    def test_zero(self) -> None:
        self.assertEqual(add(0, 0), 0)
"""
TEST_TEXT = 'from calc.text import shout\n\n\ndef test_shout() -> None:\n    assert shout("a") == "A!"\n'
FILES: dict[str, str] = {
    "calc/__init__.py": "",
    "calc/core.py": CORE,
    "calc/text.py": TEXT,
    "tests/test_core.py": TEST_CORE,
    "tests/test_text.py": TEST_TEXT,
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef one() -> int:\n    return 1\n",
    "web/sum.js": "export const sum = (a, b) => a + b;\n",
    "web/sum.test.js": "import { sum } from './sum.js';\n\ntest('adds', () => {\n  expect(sum(1, 2)).toBe(3);\n});\n",
    "srv/sum.go": "package srv\n\nfunc Sum(a, b int) int { return a + b }\n",
    "srv/sum_test.go": 'package srv\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n'
    '\t\tt.Error("wrong")\n\t}\n}\n',
    "rs/sum.rs": "pub fn sum(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[test]\nfn adds() {\n"
    "    assert_eq!(sum(1, 2), 3);\n}\n",
    "README.md": "# calc\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\ndependencies = []\n\n[tool.ruff]\nline-length = 100\n\n'
    '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "package.json": '{"scripts": {"test": "jest"}, "devDependencies": {}}\n',
    "setup.cfg": "[metadata]\nname = calc\n",
    ".gitignore": "__pycache__/\n",
}
TASK = {"calc/core.py": CORE + "\n\ndef double(a: int) -> int:\n    return add(a, a)\n"}
TASK_TEST = {
    "tests/test_double.py": "from calc.core import double\n\n\ndef test_double() -> None:\n    assert double(2) == 4\n"
}


@dataclass
class Completion:
    """A claim with its receipts and the facts that it is compared with."""

    claim: CompletionClaim
    receipts: list[CheckReceipt]
    state: GateState
    given: dict[str, Any] = field(default_factory=dict)

    def judge(self) -> Verdict:
        return accept(self.claim, self.receipts, self.state)

    def change_claim(self, **values: Any) -> Completion:
        self.claim = msgspec.structs.replace(self.claim, **values)
        return self

    def change_state(self, **values: Any) -> Completion:
        self.state = msgspec.structs.replace(self.state, **values)
        return self

    def change_receipt(self, kind: CheckKind, *, is_recorded: bool = True, **values: Any) -> Completion:
        """Change a receipt. A recorded receipt is as the tools runner writes it."""
        at = next(at for at, each in enumerate(self.receipts) if each.kind == kind)
        self.receipts[at] = msgspec.structs.replace(self.receipts[at], **values)
        return self.record() if is_recorded else self

    def change_tests(self, **values: Any) -> Completion:
        tests = next(each.tests for each in self.receipts if each.kind == "test")
        assert tests is not None
        return self.change_receipt("test", tests=msgspec.structs.replace(tests, **values))

    def change_review(self, **values: Any) -> Completion:
        return self.change_state(reviews=(msgspec.structs.replace(self.state.reviews[0], **values),))

    def add_command(self, command: str, exit_code: int = 0) -> Completion:
        """Add the receipt of a further command that the plan demands."""
        base = self.receipts[0]
        more = msgspec.structs.replace(base, id=f"command-{len(self.receipts)}", kind="command", command=command)
        self.receipts.append(msgspec.structs.replace(more, exit_code=exit_code, tests=None, tool="shell"))
        return self.change_state(checks=(command,)).record()

    def record(self) -> Completion:
        return self.change_state(recorded={each.id: each.digest for each in self.receipts})


class Bench:
    """A project with an open session, in which tasks are completed."""

    def __init__(self, place: Path) -> None:
        self.clock = ManualClock()
        self.project: TeamProject = open_project(
            make_repository(place / "checkout", FILES), place / "state", self.clock
        )
        self.count = 0
        self._made: dict[tuple[tuple[str, str | bytes | None], ...], Completion] = {}
        sandbox = open_sandbox(production=False)
        self.tools = CheckTools(sandbox=sandbox, clock=self.clock, checkout=self.project.root, wall=sandbox.wall)

    def commit(self, files: Mapping[str, str | bytes | None], pipeline: str = "") -> tuple[str, PipelineCommit]:
        self.count += 1
        name = pipeline or f"n{self.count}.1"
        self.clock.advance(seconds=10)
        return name, self.project.change(name, files)

    async def check(self, pipeline: str, kind: CheckKind, *commands: str, run: str = "") -> CheckResult:
        """Run a real check in a work tree."""
        self.clock.advance(seconds=1)
        request = CheckRequest(
            session="s1",
            pipeline=pipeline,
            run=run or f"run-{pipeline}",
            kind=kind,
            scope="covering" if kind == "test" else "changed",
            commands=commands,
        )
        return await run_check(self.project.trees, request, self.tools)

    def completion(self, pipeline: str, commit: PipelineCommit, receipts: list[CheckReceipt]) -> Completion:
        """The completion of a pipeline with a passed review after its last change."""
        self.clock.advance(seconds=1)
        review = TaskReview(
            reviewer="inspector",
            session="s1",
            pipeline=pipeline,
            tree=commit.tree,
            status="passed",
            at=self.clock.now(),
        )
        trees = self.project.trees
        state = GateState(
            session="s1",
            pipeline=pipeline,
            commit=commit.commit,
            tree=commit.tree,
            base_tree=trees.tree(pipeline).git.tree_of(commit.base_commit),
            changed_at=self.clock.now() - timedelta(seconds=1),
            recorded={},
            requests=frozenset(each.run for each in receipts),
            has_tests=True,
            has_linters=True,
            reviewers=("inspector",),
            reviews=(review,),
        )
        claim = CompletionClaim(
            session="s1",
            pipeline=pipeline,
            commit=commit.commit,
            tree=commit.tree,
            base_commit=commit.base_commit,
            changed=commit.changed,
            deleted=commit.deleted,
            is_clean=trees.status(pipeline)[2],
        )
        return Completion(claim=claim, receipts=receipts, state=state).record()

    def complete(self, files: Mapping[str, str | bytes | None]) -> Completion:
        """A completion whose receipts are bound to a real commit. Tests are compared and imports followed for
        real; only the commands did not run."""
        pipeline, commit = self.commit(files)
        request = CheckRequest(session="s1", pipeline=pipeline, run=f"run-{pipeline}", kind="test", scope="all")
        tree = self.project.trees.tree(pipeline)
        subject = describe_subject(request, tree, commit.commit, commit.tree)
        found = subject.comparison
        counts = TestCounts(run=5, passed=5, deleted=len(found.deleted), weakened=len(found.weakened), is_counted=True)
        loaded = loaded_statically(str(tree.project), subject.changed)
        test = self._receipt(
            request, commit, "test", "pytest -q", tests=counts, imported=loaded, test_changes=found.sentences
        )
        return self.completion(pipeline, commit, [self._receipt(request, commit, "lint", "ruff check ."), test])

    def complete_once(self, files: Mapping[str, str | bytes | None]) -> Completion:
        """A copy of the completion with these files, which are committed once. Nobody may write into its work tree."""
        key = tuple(files.items())
        if key not in self._made:
            self._made[key] = self.complete(files)
        made = self._made[key]
        return Completion(claim=made.claim, receipts=list(made.receipts), state=made.state)

    def _receipt(
        self, request: CheckRequest, commit: PipelineCommit, kind: CheckKind, command: str, **more: Any
    ) -> CheckReceipt:
        return CheckReceipt(
            id=f"{kind}-{request.pipeline}",
            session="s1",
            pipeline=request.pipeline,
            run=request.run,
            kind=kind,
            tool=command.split()[0],
            command=command,
            exit_code=0,
            tree=commit.tree,
            commit=commit.commit,
            base_commit=commit.base_commit,
            log="All passed.",
            log_hash=hash_log("All passed."),
            started_at=self.clock.now(),
            seconds=1.0,
            **more,
        )


async def run_all(bench: Bench, files: Mapping[str, str | bytes | None], *commands: str) -> Completion:
    """A completion with receipts of real runs of ruff and pytest."""
    pipeline, commit = await asyncio.to_thread(bench.commit, files)
    lint = await bench.check(pipeline, "lint")
    test = await bench.check(pipeline, "test", *commands)
    done = bench.completion(pipeline, commit, [*lint.receipts, *test.receipts])
    done.given = {"lint": lint, "test": test}
    return done.change_state(checks=commands)


def own_programs_first() -> str:
    """A PATH on which the programs beside this Python come first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
