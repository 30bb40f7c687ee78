"""How far a source is believed (SYL-83)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from clew.knowledge.evidence.trust import LEVELS, level_of, trust_of
from clew.knowledge.nodes.kinds import NodeType
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY, NOW, node

SECOND = 1 / 86_400


@pytest.mark.req("SYL-83")
@pytest.mark.parametrize(
    ("days", "trust"),
    [(0, 80), (7 - SECOND, 80), (7, 60), (7 + SECOND, 60), (30 - SECOND, 60), (30, 40), (365, 40), (-1, 80)],
)
def test_verified_history_is_worth_less_after_seven_and_after_thirty_days(days: float, trust: int) -> None:
    assert trust_of(node(HISTORY, days=days, verified=True), NOW) == trust


@pytest.mark.req("SYL-83")
def test_the_age_of_history_is_that_of_what_happened_not_of_the_record() -> None:
    written_late = node(HISTORY, days=0, verified=True, timestamp=NOW - timedelta(days=31))
    assert trust_of(written_late, NOW) == 40


@pytest.mark.req("SYL-83")
@pytest.mark.parametrize(
    ("node_type", "trust"),
    [
        (NodeType.RFC, 70),
        (NodeType.DOCUMENTATION, 70),
        (NodeType.PAPER, 60),
        (NodeType.BEST_PRACTICE, 60),
        (NodeType.TUTORIAL, 60),
        (NodeType.STACK_OVERFLOW, 30),
        (NodeType.BLOG_POST, 30),
    ],
)
def test_trust_in_literature_depends_on_its_type_and_not_on_its_age(node_type: NodeType, trust: int) -> None:
    for days in (0, 4_000):
        assert trust_of(node(ACADEMIC, days=days, node_type=node_type, verified=True), NOW) == trust


@pytest.mark.req("SYL-83")
def test_code_is_the_ground_truth_and_what_was_never_verified_a_guess() -> None:
    assert trust_of(node(CODE, days=900), NOW) == 100
    for domain in (HISTORY, ACADEMIC):
        assert trust_of(node(domain, trust=95), NOW) == 20


@pytest.mark.req("SYL-83")
def test_every_level_has_a_name_and_all_but_the_ground_truth_a_warning() -> None:
    assert [int(least) for least, _, _ in LEVELS] == [100, 80, 70, 60, 40, 30, 20]
    assert len({name for _, name, _ in LEVELS}) == 7
    assert level_of(100) == ("Ground truth (code)", "")
    assert all(warning for _, _, warning in LEVELS[1:])
    assert level_of(99)[0] == "Recent, verified"
    assert level_of(0) == level_of(20)
