"""The dependencies of workflow steps, and references in their inputs."""

from __future__ import annotations

from typing import Any

import pytest

from clew.agents.runs.workflow_runner import fill, read_workflow
from clew.errors import InvalidInput
from clew.trail.model.step_order import OrderedStep, dependencies
from tests.agents.records import record


def workflow(*steps: dict[str, Any], **more: Any) -> Any:
    context = {"workflow_id": "w", "trigger": {"schema_name": "note.v1"}, "steps": list(steps), **more}
    return read_workflow(record("workflow.def.v1", **context))


@pytest.mark.req("RCR-47")
def test_a_group_waits_for_the_one_before_and_its_steps_for_nothing_in_it() -> None:
    groups = {"a": "first", "b": "first", "c": "second", "d": None, "e": None}
    found = dependencies([OrderedStep(id, group, None) for id, group in groups.items()])
    assert {step: sorted(needs) for step, needs in found.items()} == {
        "a": [],
        "b": [],
        "c": ["a", "b"],
        "d": ["c"],
        "e": ["d"],
    }


@pytest.mark.req("RCR-47")
def test_named_dependencies_of_a_step_replace_the_default_order() -> None:
    assert dependencies([OrderedStep("a", None, None), OrderedStep("b", None, ())])["b"] == frozenset()


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ([], "must be 1 to 200"),
        ([{"id": "a", "tool": "t"}, {"id": "a", "tool": "t"}], "the same id"),
        ([{"id": "a", "tool": "t", "depends_on": ["z"]}], "which does not exist"),
        (
            [{"id": "a", "tool": "t", "depends_on": ["b"]}, {"id": "b", "tool": "t", "depends_on": ["a"]}],
            "circular dependency: a → b → a",
        ),
        ([{"id": "a", "tool": "t", "depend_on": ["b"]}], "depend_on"),
    ],
)
def test_steps_that_cannot_be_run_are_refused(steps: list[dict[str, Any]], wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        workflow(*steps)


def test_references_are_filled_at_any_depth_and_keep_their_type() -> None:
    known = {"trigger": {"context": {"n": 3}}, "steps": {"a": {"output": ["x"]}}}
    value = {"number": {"$from": "trigger.context.n"}, "deep": [{"of": {"$from": "steps.a.output"}}], "plain": "$from"}
    assert fill(value, known) == {"number": 3, "deep": [{"of": ["x"]}], "plain": "$from"}


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"steps\.b\.output does not exist"):
        fill({"$from": "steps.b.output"}, {"trigger": {}, "steps": {}})
