"""Proof on demand: why a task counts as done, and the same commands run again on the recorded tree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from clew.errors import InvalidInput
from clew.team.evidence.check_commands import CheckCommand, program_of, report_form
from clew.team.evidence.checks import (
    SHELL,
    CheckRequest,
    CheckTools,
    describe_subject,
    run_command,
)
from clew.team.evidence.gate import CompletionClaim, Verdict
from clew.team.evidence.receipts import CheckReceipt, TestCounts
from clew.team.evidence.run_recorder import make_folders
from clew.team.worktrees.confinement import find_setup
from clew.team.worktrees.session_trees import SessionTrees
from clew.trust import printable

MAX_COMMAND = 160


class TaskEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for a task: its claim, the receipts and the verdict. `progress` says how far a task is that is not
    finished; its verdict is about the work so far."""

    task: str
    title: str = ""
    progress: str = ""
    claim: CompletionClaim
    receipts: tuple[CheckReceipt, ...] = ()
    verdict: Verdict


class RepeatedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was run again. `difference` is empty if the result is the recorded one."""

    command: str
    recorded_code: int
    exit_code: int
    tests: TestCounts | None = None
    difference: str = ""


class TaskVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The result of running the commands of a task again on its tree."""

    task: str
    tree: str
    matches: bool
    commands: tuple[RepeatedCommand, ...] = ()


def why_done(evidence: TaskEvidence) -> str:
    """The evidence for a task as text: the verdict, then two lines for each receipt."""
    claim, verdict = evidence.claim, evidence.verdict
    head = f"{evidence.task}{f': {printable(evidence.title, 100)}' if evidence.title else ''}"
    stands = evidence.progress or f"is {'accepted' if verdict.accepted else 'refused'}"
    files = f"{len(claim.changed)} file{'' if len(claim.changed) == 1 else 's'} changed"
    lines = [
        f"{head} {stands}",
        *([f"  tree {claim.tree[:12]} at commit {claim.commit[:12]}, {files}"] if claim.commit else []),
        *(f"  ✗ {reason}" for reason in verdict.reasons if not evidence.progress),
        *(f"  {line}" for receipt in evidence.receipts for line in _lines(receipt)),
        *(f"  note: {note}" for note in verdict.notes if not evidence.progress),
    ]
    if not evidence.receipts:
        lines.append("  no receipts yet" if evidence.progress else "  no receipts")
    return "\n".join(lines)


def _lines(receipt: CheckReceipt) -> tuple[str, str]:
    mark = "✓" if receipt.exit_code == 0 and not receipt.killed_by else "✗"
    tests = f", {describe_tests(receipt.tests)}" if receipt.tests else ""
    return (
        f"{mark} {printable(receipt.command, MAX_COMMAND)}: exit code {receipt.exit_code}{tests}",
        f"    {receipt.seconds:.1f} s, log {receipt.log_hash[:12]}, run {receipt.run}",
    )


def describe_tests(tests: TestCounts) -> str:
    """Counts of tests in words."""
    if not tests.is_counted:
        return "tests not counted"
    parts = [f"{tests.passed} of {tests.run} tests passed"]
    more = (("skipped", tests.skipped), ("deleted", tests.deleted), ("weakened", tests.weakened))
    return ", ".join([*parts, *(f"{count} {name}" for name, count in more if count)])


async def verify(trees: SessionTrees, evidence: TaskEvidence, tools: CheckTools) -> TaskVerification:
    """Run the commands of the receipts again in a new work tree of the recorded commit, and compare exit codes and
    tests. Raises InvalidInput if there is nothing to run, or if the commit has another tree."""
    claim = evidence.claim
    if not evidence.receipts:
        raise InvalidInput("task", f"{evidence.task} has no receipts", hint="There is nothing to run again")
    with trees.scratch_tree(claim.commit) as tree:
        found = tree.git.tree_of(claim.commit)
        if found != claim.tree:
            raise InvalidInput("task", f"commit {claim.commit[:12]} has another tree than the receipts say")
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
