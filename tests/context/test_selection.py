from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.selection import SHARES, ContextCandidate, TokenLimits, fit

SECTIONS = (*SHARES, "other")
candidates = st.lists(
    st.builds(
        ContextCandidate,
        key=st.integers(0, 30).map(str),
        section=st.sampled_from(SECTIONS),
        score=st.floats(0, 1),
        tokens=st.one_of(st.integers(0, 60), st.integers(0, 20_000)),
        is_pinned=st.booleans(),
    ),
    max_size=15,
)


def check_fit(wanted: list[ContextCandidate], limits: TokenLimits) -> None:
    found = fit(wanted, limits)
    assert found.tokens <= limits.total
    assert all(tokens <= limits.section(name) for name, tokens in found.sections.items())
    assert len(found.chosen) == len(set(found.chosen))
    assert {each.key for each in wanted} == set(found.chosen) | set(found.dropped)
    assert not set(found.chosen) & set(found.dropped)
    assert all(found.dropped.values())


@pytest.mark.req("BEY-04")
@given(candidates, st.integers(0, 2_000), st.integers(0, 20))
def test_no_budget_is_exceeded(wanted: list[ContextCandidate], total: int, heading: int) -> None:
    check_fit(wanted, TokenLimits(total=total, heading=heading))


@pytest.mark.req("BEY-04")
def test_no_budget_is_overrun_in_ten_thousand_cases() -> None:
    chance = random.Random(4)
    for _ in range(10_000):
        wanted = [
            ContextCandidate(
                key=str(chance.randrange(30)),
                section=chance.choice(SECTIONS),
                score=chance.random(),
                tokens=chance.randrange(chance.choice((60, 2_000, 30_000))),
                is_pinned=chance.random() < 0.1,
            )
            for _ in range(chance.randrange(15))
        ]
        check_fit(wanted, TokenLimits(total=chance.randrange(3_000), heading=chance.randrange(20)))


def candidate(
    key: str, tokens: int, *, score: float = 0.5, section: str = "knowledge", **more: bool
) -> ContextCandidate:
    return ContextCandidate(key=key, tokens=tokens, score=score, section=section, **more)


@pytest.mark.req("RCR-35", "BEY-04")
def test_the_best_come_first_and_dropped_items_have_a_reason() -> None:
    wanted = [candidate("poor", 150, score=0.1), candidate("best", 190, score=0.9), candidate("good", 190, score=0.8)]
    found = fit(wanted, TokenLimits(total=1_000))
    assert found.chosen == ("best", "good")
    assert "share of knowledge" in found.dropped["poor"]


@pytest.mark.req("BEY-04")
def test_a_crowded_section_leaves_room_for_the_others() -> None:
    crowd = [candidate(f"spam{number}", 190, score=1.0) for number in range(100)]
    other = [
        candidate("said", 150, score=0.2, section="history"),
        candidate("asked", 300, section="message", is_pinned=True),
    ]
    found = fit([*crowd, *other], TokenLimits(total=1_000))
    assert {"said", "asked"} <= set(found.chosen)
    huge = fit([candidate("huge", 201), *other], TokenLimits(total=1_000))
    assert "exceed the limit for one item" in huge.dropped["huge"]
