"""The evidence for a task as records and as text: why it counts as done, and the result of running it again."""

from __future__ import annotations

import msgspec

from clew.team.evidence.gate import CompletionClaim, Verdict
from clew.team.evidence.receipts import CheckReceipt, TestCounts
from clew.trust import printable

MAX_COMMAND = 160


class TaskEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for a task: its claim, the receipts and the verdict. For an unfinished task, `progress` describes
    its state, and the verdict applies to the work so far."""

    task: str
    title: str = ""
    progress: str = ""
    claim: CompletionClaim
    receipts: tuple[CheckReceipt, ...] = ()
    verdict: Verdict


class RepeatedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was run again. `difference` is empty if the result equals the recorded one."""

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
