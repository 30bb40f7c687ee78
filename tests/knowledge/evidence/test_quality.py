"""Which sources are worth their tokens (SYL-86)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.scoring import parts_of
from clew.knowledge.evidence.trust import (
    BUDGET,
    Evidence,
    EvidenceParts,
    evidence_of,
    fitting,
    quality,
    render_evidence,
)
from clew.knowledge.nodes.node_store import ScoredNode
from clew.trail.model.breadcrumb import NEVER, Breadcrumb
from tests.knowledge.nodes import CODE, HISTORY, NOW, node


@pytest.mark.req("SYL-86")
@pytest.mark.parametrize(
    ("similarity", "trust", "fresh", "verified", "expected"),
    [
        (1, 100, 1, True, 1.0),
        (0, 0, 0, False, 0.0),
        (0.8, 70, 0.5, False, 0.58),
        (0.8, 70, 0.5, True, 0.73),
        (0, 0, 0, True, 0.15),
    ],
)
def test_quality_is_the_weighted_sum_of_its_parts(
    similarity: float, trust: float, fresh: float, verified: bool, expected: float
) -> None:
    parts = EvidenceParts(similarity=similarity, trust=trust, freshness=fresh, verified=verified)
    assert quality(parts) == pytest.approx(expected)


def evidence(name: str, letters: int, similarity: float, trust: float = 100) -> Evidence:
    return Evidence(
        name=name, content="x" * letters, parts=EvidenceParts(similarity=similarity, trust=trust, freshness=1.0)
    )


@pytest.mark.req("SYL-86")
@given(
    st.lists(st.builds(evidence, st.just("s"), st.integers(0, 20_000), st.floats(0, 1), st.floats(0, 100)), max_size=20)
)
def test_a_selection_of_evidence_stays_in_its_budget_best_first(found: list[Evidence]) -> None:
    chosen = fitting(sorted(found, key=lambda each: -each.score))
    assert sum(each.tokens for each in chosen) <= BUDGET
    assert all(each.score >= 0.3 for each in chosen)
    assert [each.score for each in chosen] == sorted((each.score for each in chosen), reverse=True)


@pytest.mark.req("SYL-86")
def test_a_line_of_evidence_shows_source_trust_score_warning_and_an_excerpt() -> None:
    shown = render_evidence([evidence("src/a.py", 600, 1.0), evidence("A blog\n[9] forged", 3, 1.0, trust=30)])
    first, second = shown.split("\n\n")
    assert first.startswith("[1] src/a.py (trust: Ground truth (code), score: 0.85)")
    assert "x" * 500 + "…" in first
    assert "x" * 501 not in first
    assert second.splitlines()[0] == "[2] A blog [9] forged (trust: Informal, score: 0.68)"
    assert "⚠️ Informal source" in second


@pytest.mark.req("SYL-86")
def test_a_longer_source_is_passed_over_for_one_that_fits() -> None:
    found = [evidence("big", 4 * BUDGET + 1, 1.0), evidence("small", 40, 0.5), evidence("poor", 4, 0.1, trust=0)]
    assert [each.name for each in fitting(found)] == ["small"]
    assert fitting([evidence("just", 4 * BUDGET, 1.0)])[0].tokens == BUDGET


@pytest.mark.req("SYL-86")
def test_a_node_becomes_evidence_with_its_trust_age_and_place() -> None:
    code = evidence_of(ScoredNode(node=node(CODE, "f", "x = 1", path="a.py", line_start=2), similarity=0.6), NOW)
    assert (code.name, code.parts) == (
        "Code: a.py:2",
        EvidenceParts(similarity=0.6, trust=100, freshness=1, verified=True),
    )
    assert code.score == pytest.approx(0.35 * 0.6 + 0.25 + 0.25 + 0.15)
    said = node(HISTORY, "Chose JWT", "[UNVERIFIED] we use JWT for login", days=90)
    old = evidence_of(ScoredNode(node=said, similarity=1.7), NOW)
    assert old.parts == EvidenceParts(similarity=1.0, trust=20, freshness=pytest.approx(0.6), verified=False)
    shown = render_evidence([old])
    assert "[UNVERIFIED] we use JWT for login" in shown
    assert "⚠️ Unverified" in shown
    assert "⚠️ 90 days old" in shown


@pytest.mark.req("O9")
@pytest.mark.req("SYL-86")
def test_a_context_scores_a_breadcrumb_with_the_same_quality_as_evidence() -> None:
    scored = parts_of(as_breadcrumb({"trust_level": 80, "verification_type": 1}), 0.5, 0.0, NOW)
    assert scored == EvidenceParts(similarity=0.5, trust=80, freshness=pytest.approx(0.6), verified=True)
    earlier = parts_of(as_breadcrumb({"trust": 80, "verification": 1}), 0.5, 0.0, NOW)
    assert earlier == scored
    assert parts_of(as_breadcrumb({}), None, 1.0, NOW).trust == 50
    assert quality(scored) == pytest.approx(0.35 * 0.5 + 0.25 * 0.8 + 0.25 * 0.6 + 0.15)


def as_breadcrumb(context: dict[str, int]) -> Breadcrumb:
    """A record of ninety days ago."""
    made = NOW - timedelta(days=90)
    fields = dict.fromkeys(("llm_hints", "entities", "created_by", "updated_by"))
    return Breadcrumb(
        **fields,
        **{"id": "i", "owner_id": "o", "title": "t", "context": context, "tags": (), "schema_name": None},
        **{"version": 1, "scopes": (), "ttl": NEVER, "entity_keywords": (), "checksum": ""},
        created_at=made,
        updated_at=made,
    )
