from __future__ import annotations

import pytest

from clew.knowledge.evidence.conflicts import SourceConflict
from clew.knowledge.evidence.prompt import RULES, build_trust_prompt, parse_response
from clew.knowledge.evidence.trust import Evidence, EvidenceParts
from clew.knowledge.nodes.kinds import ConflictKind

CODE = EvidenceParts(similarity=0.8, trust=100, freshness=1.0, verified=True)
OLD = EvidenceParts(similarity=0.7, trust=40, freshness=0.5)


@pytest.mark.req("SYL-87")
def test_the_prompt_has_rules_then_conflicts_then_sources_then_the_question() -> None:
    sources = [
        Evidence(name="Code: src/pay.py", content="def pay(): ...", parts=CODE),
        Evidence(name="History: chat", content="y" * 1_500, parts=OLD),
    ]
    conflict = SourceConflict(kind=ConflictKind.SOURCE_MISMATCH, description="chat says\nStripe", resolution="the code")
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


SOURCES = [Evidence(id=f"n{number}", name="s", content="c", parts=CODE) for number in (1, 2, 3)]
ANSWER = """\
Payments go through Stripe [2], see [1] and again [2]. The table is rows[7] long.
[INFERENCE] It was probably chosen for its fees. [3]
⚠️ The note is 45 days old: it may be out of date [9].
The sources contradict each other on retries [0].
[INFERENCE]: nothing else pays"""


@pytest.mark.req("SYL-88")
def test_an_answer_tells_its_sources_inferences_conflicts_and_warnings() -> None:
    found = parse_response(ANSWER, SOURCES)
    assert found.response == ANSWER
    assert found.sources == ("n2", "n1", "n3")
    assert found.inferences == ("It was probably chosen for its fees.", "nothing else pays")
    assert found.conflicts == ("The sources contradict each other on retries [0].",)
    assert found.warnings == ("⚠️ The note is 45 days old: it may be out of date [9].",)


@pytest.mark.req("SYL-88")
def test_a_number_that_no_source_has_is_reported_and_leads_to_none() -> None:
    assert parse_response(ANSWER, SOURCES).unknown == (9, 0)
    lost = parse_response("As [1] and [99999999999] say", [])
    assert (lost.sources, lost.unknown) == ((), (1,))


def test_an_answer_that_cites_nothing_has_nothing() -> None:
    found = parse_response("", SOURCES)
    assert (found.sources, found.inferences, found.conflicts, found.warnings, found.unknown) == ((), (), (), (), ())
