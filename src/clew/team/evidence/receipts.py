"""Records of checks: receipts of commands, line-level issues and failed tests. The tool that ran a command writes its
receipt, never a model, and the receipt names the tree that was tested."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal

import msgspec

from clew.fences import clean
from clew.secrecy import mask_document
from clew.team.messages.payloads import TestFailure

MAX_LOG = 16_000
MAX_MESSAGE = 1_000
CheckKind = Literal["lint", "test", "command"]
CheckScope = Literal["changed", "covering", "all"]
IssueCategory = Literal["lint", "format", "type", "compliance"]
Severity = Literal["error", "warning"]


class TestCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of the tests of a run, and of tests that were deleted or weakened since the base commit. If `is_counted`
    is false, the runner left no readable report and only its exit code is known."""

    __test__ = False

    run: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    deleted: int = 0
    weakened: int = 0
    is_counted: bool = False


class CodeIssue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finding of a linter, formatter or type checker at a line; line 0 is the file as a whole."""

    file: str
    line: int = 0
    column: int = 0
    category: IssueCategory = "lint"
    severity: Severity = "error"
    message: str = ""
    suggestion: str = ""


class CheckReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The proof that a command ran. `run` is the id of the check request, `tree` the git tree that was tested.
    `changed_tree` says whether the command itself changed tracked files. `imported` are the changed files that the
    tests loaded. `test_changes` describe deleted and weakened tests in words. `problem` says why the test report cannot
    be trusted."""

    id: str
    session: str
    pipeline: str
    run: str
    kind: CheckKind
    scope: CheckScope = "all"
    tool: str
    command: str
    exit_code: int
    tree: str
    commit: str
    base_commit: str
    log: str
    log_hash: str
    started_at: datetime
    seconds: float
    tests: TestCounts | None = None
    imported: tuple[str, ...] = ()
    test_changes: tuple[str, ...] = ()
    changed_tree: bool = False
    killed_by: str = ""
    environment: str = ""
    problem: str = ""

    @property
    def digest(self) -> str:
        """A hash of everything that the receipt says."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-check`. A check without receipts has a `skipped_reason` and proves nothing."""

    passed: bool
    receipts: tuple[CheckReceipt, ...] = ()
    issues: tuple[CodeIssue, ...] = ()
    failures: tuple[TestFailure, ...] = ()
    skipped_reason: str = ""
    has_tests: bool = False
    has_linters: bool = False


def hash_log(log: str) -> str:
    return hashlib.sha256(log.encode(errors="replace")).hexdigest()


def bounded_log(stdout: str, stderr: str) -> str:
    """The output as text, without invisible characters and secrets. The middle of a long output is left out."""
    text = mask_document(clean(f"{stdout}\n{stderr}".strip()))
    if len(text) <= MAX_LOG:
        return text
    half = MAX_LOG // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
