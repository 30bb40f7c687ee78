"""`why_done` shows the evidence of a task, and `verify` runs it again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from clew.errors import InvalidInput
from clew.team.evidence.task_evidence import TaskEvidence, why_done
from clew.team.evidence.verification import verify
from tests.team.evidence.completions import TASK, TASK_TEST, Bench, Completion, own_programs_first, run_all


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PATH", own_programs_first())
    return Bench(tmp_path)


def evidence(done: Completion) -> TaskEvidence:
    return TaskEvidence(
        task="double", title="Add double", claim=done.claim, receipts=tuple(done.receipts), verdict=done.judge()
    )


@pytest.mark.req("BEY-10")
async def test_the_commands_of_a_task_run_again_on_its_tree_with_the_same_result(bench: Bench) -> None:
    done = await run_all(bench, {**TASK, **TASK_TEST})
    bench.commit({"calc/core.py": "broken("}, done.claim.pipeline)  # later work does not matter
    found = await verify(bench.project.trees, evidence(done), bench.tools)
    assert found.matches, found.commands
    assert found.tree == done.claim.tree
    assert len(found.commands) == len(done.receipts)
    assert not list((bench.project.state / "s1/scratch").iterdir())


@pytest.mark.req("BEY-10")
async def test_a_receipt_that_claims_too_much_is_found_out(bench: Bench) -> None:
    done = await run_all(bench, {**TASK, "tests/test_double.py": TASK_TEST["tests/test_double.py"].replace("4", "5")})
    done.change_receipt("test", exit_code=0)
    found = await verify(bench.project.trees, evidence(done), bench.tools)
    assert not found.matches
    assert [each.difference for each in found.commands if each.difference] == ["exit code 1 instead of 0"]


async def test_the_evidence_is_shown_with_verdict_counts_and_hashes(bench: Bench) -> None:
    done = bench.complete({**TASK, **TASK_TEST})
    shown = why_done(evidence(done))
    assert shown.startswith("double: Add double is accepted\n")
    assert done.claim.tree[:12] in shown
    assert "✓ pytest -q: exit code 0, 5 of 5 tests passed" in shown
    refused = why_done(evidence(done.change_receipt("test", exit_code=1)))
    assert "is refused" in refused
    assert "✗ `pytest -q` ended with exit code 1." in refused


async def test_a_task_without_receipts_or_with_another_tree_is_not_verified(bench: Bench) -> None:
    done = bench.complete({**TASK, **TASK_TEST})
    given = evidence(done)
    with pytest.raises(InvalidInput, match="no receipts"):
        await verify(bench.project.trees, msgspec.structs.replace(given, receipts=()), bench.tools)
    other = msgspec.structs.replace(done.claim, tree="0" * 40)
    with pytest.raises(InvalidInput, match="another tree"):
        await verify(bench.project.trees, msgspec.structs.replace(given, claim=other), bench.tools)
