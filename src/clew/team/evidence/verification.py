"""Proof on demand: the commands of a task run again on the recorded tree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from clew.errors import InvalidInput
from clew.team.evidence.check_commands import CheckCommand, program_of, report_form
from clew.team.evidence.checks import (
    SHELL,
    CheckRequest,
    CheckTools,
    describe_subject,
    run_command,
)
from clew.team.evidence.receipts import CheckReceipt, TestCounts
from clew.team.evidence.run_recorder import make_folders
from clew.team.evidence.task_evidence import RepeatedCommand, TaskEvidence, TaskVerification, describe_tests
from clew.team.worktrees.confinement import find_setup
from clew.team.worktrees.session_trees import SessionTrees


async def verify(trees: SessionTrees, evidence: TaskEvidence, tools: CheckTools) -> TaskVerification:
    """Run the commands of the receipts again in a new work tree of the recorded commit, and compare exit codes and
    tests. Raises InvalidInput if there is nothing to run, or if the tree of the commit is not the recorded one."""
    claim = evidence.claim
    if not evidence.receipts:
        raise InvalidInput("task", f"{evidence.task} has no receipts", hint="There is nothing to run again")
    with trees.scratch_tree(claim.commit) as tree:
        found = tree.git.tree_of(claim.commit)
        if found != claim.tree:
            raise InvalidInput("task", f"commit {claim.commit[:12]} has another tree than the receipts")
        request = CheckRequest(
            session=claim.session,
            pipeline=claim.pipeline,
            run=tools.clock.new_id(),
            kind="test",
            scope="all",
            base_commit=claim.base_commit,
        )
        subject = await asyncio.to_thread(describe_subject, request, tree, claim.commit, found)
        folders = await asyncio.to_thread(make_folders, trees.place)
        try:
            setup = await asyncio.to_thread(find_setup, tools.checkout, tree.project, scratch=folders.scratch)
            repeated = [
                _compare(receipt, (await run_command(subject, _command(receipt), tools, setup, folders)).receipt)
                for receipt in _distinct(evidence.receipts)
            ]
        finally:
            await asyncio.to_thread(folders.remove)
    is_same = not any(each.difference for each in repeated)
    return TaskVerification(task=evidence.task, tree=found, matches=is_same, commands=tuple(repeated))


def _distinct(receipts: Sequence[CheckReceipt]) -> list[CheckReceipt]:
    """The newest receipt of each command."""
    return list({each.command: each for each in sorted(receipts, key=lambda each: each.started_at)}.values())


def _command(receipt: CheckReceipt) -> CheckCommand:
    return CheckCommand(
        tool=receipt.tool,
        category="test_framework" if receipt.kind == "test" else "linter",
        command=receipt.command,
        program=SHELL if receipt.tool == SHELL else program_of(receipt.command),
        report=report_form(receipt.tool) if receipt.kind == "test" else "none",
    )


def _compare(recorded: CheckReceipt, now: CheckReceipt) -> RepeatedCommand:
    difference = ""
    if now.killed_by:
        difference = f"it was killed ({now.killed_by})"
    elif now.problem:
        difference = now.problem
    elif recorded.exit_code != now.exit_code:
        difference = f"exit code {now.exit_code} instead of {recorded.exit_code}"
    elif recorded.tests and now.tests and _counted(recorded.tests) != _counted(now.tests):
        difference = f"{describe_tests(now.tests)} instead of {describe_tests(recorded.tests)}"
    return RepeatedCommand(
        command=recorded.command,
        recorded_code=recorded.exit_code,
        exit_code=now.exit_code,
        tests=now.tests,
        difference=difference,
    )


def _counted(tests: TestCounts) -> tuple[int, ...]:
    return tests.run, tests.passed, tests.failed, tests.skipped
