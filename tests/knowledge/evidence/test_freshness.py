"""How current a source is (SYL-80)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from clew.knowledge.evidence.trust import freshness_of, rank_by_freshness
from clew.knowledge.nodes.node_store import ScoredNode
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY, NOW, node


@pytest.mark.req("SYL-80")
@pytest.mark.parametrize(
    ("days", "code", "history", "academic"),
    [
        (0, 1.0, 1.0, 1.0),
        (30, 1.0, 1 - 0.8 * 30 / 180, 1 - 0.7 * 30 / 365),
        (90, 1.0, 0.6, 1 - 0.7 * 90 / 365),
        (180, 1.0, 0.2, 1 - 0.7 * 180 / 365),
        (365, 1.0, 0.2, 0.3),
        (3_650, 1.0, 0.2, 0.3),
        (-10, 1.0, 1.0, 1.0),
    ],
)
def test_history_fades_in_half_a_year_literature_in_a_year_and_code_never(
    days: int, code: float, history: float, academic: float
) -> None:
    found = [freshness_of(node(domain, days=days), NOW).score for domain in (CODE, HISTORY, ACADEMIC)]
    assert found == pytest.approx([code, history, academic])


@pytest.mark.req("SYL-80")
@pytest.mark.parametrize(
    ("days", "history", "academic"), [(30, "", ""), (31, "31", ""), (180, "180", ""), (181, *["181"] * 2)]
)
def test_a_warning_tells_the_age_of_what_is_old_for_its_kind(days: int, history: str, academic: str) -> None:
    for domain, told in ((HISTORY, history), (ACADEMIC, academic), (CODE, "")):
        warning = freshness_of(node(domain, days=days), NOW).warning
        assert bool(warning) == bool(told)
        assert told in warning


@pytest.mark.req("SYL-80")
def test_superseded_statements_count_a_tenth() -> None:
    for domain in (CODE, HISTORY, ACADEMIC):
        old = node(domain, superseded_by="n-new", expires_at=NOW - timedelta(days=1))
        found = freshness_of(old, NOW)
        assert found.score == 0.1
        assert "Superseded" in found.warning


@pytest.mark.req("SYL-80")
def test_expired_statements_count_half_and_are_marked() -> None:
    expired = NOW - timedelta(seconds=1)
    assert freshness_of(node(ACADEMIC, expires_at=expired), NOW).score == 0.5
    assert freshness_of(node(HISTORY, days=90, expires_at=expired), NOW).score == pytest.approx(0.3)
    assert "Expired" in freshness_of(node(HISTORY, days=90, expires_at=expired), NOW).warning
    assert freshness_of(node(HISTORY, expires_at=NOW), NOW).score == 1.0


@pytest.mark.req("SYL-80")
def test_a_node_that_is_gone_counts_half() -> None:
    assert freshness_of(None, NOW).score == 0.5


@pytest.mark.req("SYL-80")
def test_results_are_ranked_by_similarity_times_freshness() -> None:
    old, new, code = node(HISTORY, days=180), node(HISTORY), node(CODE, content_hash="a")
    found = [ScoredNode(node=each, similarity=close) for each, close in ((old, 0.9), (new, 0.5), (code, 0.4))]
    ranked = rank_by_freshness(found, NOW)
    assert [each.node for each in ranked] == [new, code, old]
    assert [each.similarity for each in ranked] == pytest.approx([0.5, 0.4, 0.18])
