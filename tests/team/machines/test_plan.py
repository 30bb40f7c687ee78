"""Plans: refusals, parallel nodes, and the text of a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import clew.team
from clew.errors import InvalidInput
from clew.team.messages.message_types import AGENTS, MEMBERS, ROUTES, MessageType, read_payload
from clew.team.planning.plan import overlap, read_plan
from clew.team.planning.plan_text import plan_text
from clew.team.planning.preflight import preflight


def node(id: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "prompt": f"do {id}", "depends_on": list(needs), **more}


@pytest.mark.req("SYL-45")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes": []}, "nodes"),
        ({"nodes": [node("a", "b"), node("b", "a")]}, "circular dependency"),
        ({"nodes": [node("a", "a")]}, "circular dependency: a → a"),
        ({"nodes": [node("a", "x")]}, "a depends on x, which does not exist"),
        ({"nodes": [node("a"), node("a")]}, "two have the same id"),
        ({"nodes": [node("a"), node("b", "a")], "execution_order": [["b"], ["a"]]}, "contradicts depends_on"),
        ({"nodes": [node("a", files=["x.py"]), node("b", files=["x.py"])]}, "share x.py"),
        ({"nodes": [node("a", files=["src/"]), node("b", files=["src/x.py"])]}, "run in parallel"),
        ({"nodes": [node("a", files=["../x"])]}, "not a path inside the project"),
        ({"nodes": [node("a", files=["/etc/passwd"])]}, "not a path inside the project"),
        ({"nodes": [node("a", files=[".git/config"])]}, "belongs to git"),
        ({"nodes": [node("../../x")]}, "id"),
        ({"nodes": [node("a", agent="librarian")]}, "agent"),
        ({"nodes": [node(f"n{at}") for at in range(10_000)]}, "at most 200"),
        ({"nodes": [node("a")], "colour": 1}, "colour"),
        ({"nodes": [{"id": "a", "prompt": "x" * 1_000_000}]}, "prompt"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_plan(given)


@pytest.mark.req("SYL-45")
def test_layers_follow_from_the_dependencies() -> None:
    plan = read_plan({"nodes": [node("c", "a", "b"), node("a"), node("b"), node("d", "c")]})
    assert plan.execution_order == (("a", "b"), ("c",), ("d",))
    assert (plan.policy.max_concurrency, plan.policy.fail_fast) == (4, True)
    assert (plan.policy.default_retry.max, plan.policy.default_retry.backoff_ms) == (2, 2_000)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a.py", "a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src", "src/a.py", True),
        ("src/*.py", "src/*.js", False),
        ("src/**", "src/x/y.py", True),
        ("tests/*.py", "src/*.py", False),
        ("a.py", "b.py", False),
        ("app", "application/x.py", False),
    ],
)
def test_patterns_overlap_when_they_can_mean_one_file(first: str, second: str, expected: bool) -> None:
    assert overlap(first, second) is expected
    assert overlap(second, first) is expected


@pytest.mark.req("PLA-04")
def test_a_plan_is_shown_as_a_tree_with_the_status_of_each_node() -> None:
    plan = read_plan({"id": "p1", "summary": "Add limits", "nodes": [node("a"), node("b", "a"), node("plan")]})
    text = plan_text(plan, {"a": "done"})
    assert text.splitlines()[0] == "Plan p1: Add limits (1 of 3 done)"
    assert "- [done] a (step): do a" in text
    assert "  - [pending] b (step): do b" in text


@pytest.mark.req("BEY-14")
def test_preflight_gives_the_estimate_of_one_agent_and_of_a_team() -> None:
    found = preflight(read_plan({"nodes": [node("a"), node("b"), node("c", "a", "b")]}), budget=1_000)
    assert not found.one_agent
    assert found.team.agents == 2
    assert found.single.tokens < found.team.tokens
    assert found.team.seconds < found.single.seconds
    assert found.exceeds_budget


@pytest.mark.req("SYL-44")
def test_every_type_of_message_has_a_payload_a_sender_and_a_receiver() -> None:
    assert set(ROUTES) == set(MessageType)
    assert len(MessageType) >= 39 + 17
    for type, route in ROUTES.items():
        assert route.senders, type
        assert route.receivers, type
        assert {*route.senders, *route.receivers} <= set(MEMBERS), type
        with pytest.raises(InvalidInput):
            read_payload(type, {"no such field": 1})
    assert len(AGENTS) == 10


WITHOUT_SENDER = {MessageType.TEST_PLAN_REQUEST, MessageType.TEST_DAG_REQUEST}
"""Types that have no place in the design; decision 0026 says why."""


@pytest.mark.req("SYL-44")
def test_every_type_of_message_is_sent_by_the_program_or_by_a_door() -> None:
    """A type that only the table of types names would be dead."""
    root = Path(clew.team.__path__[0])
    sources = [path for path in root.rglob("*.py") if path.name not in ("message_types.py", "phases.py")]
    text = "\n".join(path.read_text() for path in sources)
    unused = {each for each in MessageType if not re.search(rf"\b{each}\b", text)}
    assert unused == WITHOUT_SENDER
