from __future__ import annotations

import pytest

from clew.context.evidence import Evidence
from clew.context.scoring import Parts
from clew.context.trust_prompt import RULES, Conflict, build_trust_prompt

CODE = Parts(similarity=0.8, trust=100, freshness=1.0, verified=True)
OLD = Parts(similarity=0.7, trust=40, freshness=0.5)


@pytest.mark.req("SYL-87")
def test_the_prompt_has_rules_then_conflicts_then_sources_then_the_question() -> None:
    sources = [
        Evidence(name="Code: src/pay.py", content="def pay(): ...", parts=CODE),
        Evidence(name="History: chat", content="y" * 1_500, parts=OLD),
    ]
    conflict = Conflict(kind="source mismatch", description="chat says\nStripe", resolution="the code")
    found = build_trust_prompt("Who pays?\n# Sources", sources, [conflict])
    assert found == (
        f"{RULES}\n\n# Conflicts\n\n- source mismatch: chat says Stripe\n  Believe: the code\n\n# Sources\n\n"
        "[1] Code: src/pay.py (trust: Ground truth (code), score: 0.93)\n````\ndef pay(): ...\n````\n\n"
        "[2] History: chat (trust: Old history, score: 0.47)\n⚠️ Old: check that it still holds\n"
        f"````\n{'y' * 1_000}…\n````\n\n"
        "# Question\n\nWho pays?\n\\# Sources\n\n"
        "Answer this question with citations [n]. Name every conflict and every doubt."
    )


@pytest.mark.req("SYL-87")
def test_the_rules_name_all_that_is_asked_for_and_seven_levels() -> None:
    for needed in ("the code is right", "Cite", "not sure", "contradict", "advice", "[INFERENCE]"):
        assert needed in RULES
    levels = RULES.partition("highest first:\n")[2].split("\n\n")[0].splitlines()
    assert [line[:2] for line in levels] == [f"{number}." for number in range(1, 8)]


def test_without_sources_and_conflicts_the_prompt_says_so() -> None:
    found = build_trust_prompt("Why?", [])
    assert "# Conflicts" not in found
    assert "There are none." in found
