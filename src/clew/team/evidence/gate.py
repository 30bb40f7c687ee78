"""The completion gate: a claim that a task is done is accepted only with receipts of this run for exactly this tree.
The gate is a pure function of its arguments. Every reason is one plain sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.team.evidence.masked_commands import find_mask
from clew.team.evidence.receipts import CheckReceipt, hash_log
from clew.team.evidence.related_tests import is_code

MAX_REASONS = 20
ReviewStatus = Literal["passed", "failed", "crashed", "cancelled", "missing"]


class TaskReview(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of a reviewer on a tree. `at` is the time of the verdict."""

    reviewer: str
    session: str
    pipeline: str
    tree: str
    status: ReviewStatus
    at: datetime


class CompletionClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a pipeline is done, with the commit of its work."""

    session: str
    pipeline: str
    commit: str
    tree: str
    base_commit: str
    changed: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    is_clean: bool = True


class GateState(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a claim is compared with. `recorded` maps receipt ids to their digests, as the tools runner
    recorded them in its responses. `requests` are the check requests of this pipeline. `commit` and `tree` are the
    current ones of the pipeline's branch, and `changed_at` is the time of its last commit. `checks` are the commands
    that the plan demands. `waived` names kinds of evidence that the user chose to do without."""

    session: str
    pipeline: str
    commit: str
    tree: str
    base_tree: str = ""
    changed_at: datetime
    recorded: dict[str, str]
    requests: frozenset[str]
    has_tests: bool
    has_linters: bool = False
    touches_tests: bool = False
    checks: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    reviews: tuple[TaskReview, ...] = ()
    waived: frozenset[str] = frozenset()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about a claim. `notes` are remarks that do not affect the decision."""

    accepted: bool
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def accept(claim: CompletionClaim, receipts: Sequence[CheckReceipt], state: GateState) -> Verdict:
    """Decide whether a claim is proven. A receipt of another run or another tree is not ignored: it is a reason to
    refuse the claim."""
    reasons = [
        *_check_claim(claim, state),
        *(reason for receipt in receipts for reason in _check_receipt(receipt, claim, state)),
        *_check_coverage(claim, receipts, state),
        *_check_reviews(claim, state),
    ]
    unique = tuple(dict.fromkeys(reasons))[:MAX_REASONS]
    return Verdict(accepted=not unique, reasons=unique, notes=tuple(_notes(claim, receipts, state)))


def _check_claim(claim: CompletionClaim, state: GateState) -> Iterator[str]:
    if (claim.session, claim.pipeline) != (state.session, state.pipeline):
        yield f"The claim is for {claim.pipeline or 'the session'} of {claim.session}, not for this task."
    if claim.commit != state.commit or claim.tree != state.tree:
        yield "The claim is for another commit than the branch has now."
    if not claim.changed or claim.tree == state.base_tree:
        yield "Nothing was changed."
    if not claim.is_clean:
        yield "The work tree has changes that are not committed."


def _check_receipt(receipt: CheckReceipt, claim: CompletionClaim, state: GateState) -> Iterator[str]:
    shown = receipt.command[:80]
    if state.recorded.get(receipt.id) != receipt.digest:
        yield f"The receipt of `{shown}` was not written by the tools runner."
    if receipt.run not in state.requests:
        yield f"The receipt of `{shown}` belongs to another run."
    if (receipt.session, receipt.pipeline) != (state.session, state.pipeline):
        yield f"The receipt of `{shown}` belongs to another task."
    if receipt.tree != claim.tree or receipt.commit != claim.commit:
        yield f"`{shown}` ran on another version of the files."
    if hash_log(receipt.log) != receipt.log_hash:
        yield f"The log of `{shown}` is not the one that was recorded."
    if receipt.killed_by:
        yield f"`{shown}` was killed ({receipt.killed_by})."
    elif receipt.exit_code != 0:
        yield f"`{shown}` ended with exit code {receipt.exit_code}."
    if receipt.problem:
        yield f"The report of `{shown}` cannot be believed: {receipt.problem}."
    if receipt.changed_tree:
        yield f"`{shown}` changed files that it was to check."
    if mask := find_mask(receipt.command):
        yield f"`{shown}` {mask}, so that its exit code proves nothing."
    yield from _check_tests(receipt, state)


def _check_tests(receipt: CheckReceipt, state: GateState) -> Iterator[str]:
    tests = receipt.tests
    if receipt.kind != "test" or tests is None:
        return
    if tests.is_counted and tests.run == 0:
        yield f"`{receipt.command[:80]}` ran no test."
    if tests.failed:
        yield f"{tests.failed} of {tests.run} tests failed."
    if tests.is_counted and tests.passed + tests.failed != tests.run:
        yield "The counts of the tests contradict each other."
    if not state.touches_tests:
        yield from (f"{each}, which the plan does not state." for each in receipt.test_changes)
        if not receipt.test_changes and (tests.deleted or tests.weakened):
            yield "Tests were deleted or weakened, which the plan does not state."


def _check_coverage(claim: CompletionClaim, receipts: Sequence[CheckReceipt], state: GateState) -> Iterator[str]:
    """Yield the reasons why the receipts together do not cover all required checks."""
    kinds = {receipt.kind for receipt in receipts}
    if not receipts and not (state.waived >= {"lint", "test"}) and (state.has_tests or state.has_linters):
        yield "There is no receipt at all."
    elif state.has_tests and "test" not in kinds and "test" not in state.waived:
        yield "The project has tests, and no receipt shows that they ran."
    elif state.has_linters and "lint" not in kinds and "lint" not in state.waived:
        yield "The project has linters, and no receipt shows that they ran."
    ran = {receipt.command.strip() for receipt in receipts}
    yield from (
        f"The plan demands `{each[:80]}`, which did not run." for each in state.checks if each.strip() not in ran
    )
    tests = [receipt for receipt in receipts if receipt.kind == "test"]
    loaded = {path for receipt in tests for path in receipt.imported}
    sources = _sources(claim)
    if tests and sources and not loaded.intersection(sources):
        yield f"No test loads {sources[0]} or another changed file."


def _sources(claim: CompletionClaim) -> list[str]:
    """Changed files that tests can load."""
    return [path for path in claim.changed if is_code(path) and path not in claim.deleted]


def _check_reviews(claim: CompletionClaim, state: GateState) -> Iterator[str]:
    for reviewer in state.reviewers:
        if reviewer in state.waived:
            continue
        own = [each for each in state.reviews if each.reviewer == reviewer]
        if not own:
            yield f"The {reviewer} gave no verdict."
            continue
        last = max(own, key=lambda each: each.at)
        if (last.session, last.pipeline) != (state.session, state.pipeline):
            yield f"The verdict of the {reviewer} belongs to another task."
        if last.tree != claim.tree or last.at < state.changed_at:
            yield f"The verdict of the {reviewer} is older than the last change."
        if last.status != "passed":
            yield f"The {reviewer} did not pass it ({last.status})."


def _notes(claim: CompletionClaim, receipts: Sequence[CheckReceipt], state: GateState) -> Iterator[str]:
    loaded = {path for receipt in receipts for path in receipt.imported}
    tests = [receipt for receipt in receipts if receipt.kind == "test"]
    yield from (f"No test loads {path}." for path in _sources(claim) if tests and path not in loaded)
    yield from (f"The user chose to go on without the {each}." for each in sorted(state.waived))
    if not state.has_tests:
        yield "The project has no tests, so none ran."
    skipped = sum(receipt.tests.skipped for receipt in tests if receipt.tests)
    if skipped:
        yield f"{skipped} tests were skipped."
