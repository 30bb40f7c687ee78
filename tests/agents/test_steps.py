"""Steps are built from any records on the trail, even from records that no runner would write."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.conversations.steps import CHOICES, PermissionAsked, ToolAnswered, read_step, shown_schemas
from clew.trail.bootstrap import read_pieces
from clew.trail.model.flow import shipped_flow
from tests.agents.records import record

FLOW = shipped_flow(read_pieces())
NAMES = ("tool", "status", "error", "output", "input", "text", "index", "message", "creator", "choices", "request_id")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("message", "usage", "agent_id")), inner)
    ),
    max_leaves=5,
)


@given(st.sampled_from(shown_schemas(FLOW)), st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_every_context_makes_a_valid_step_that_json_can_represent(schema_name: str, context: dict[str, Any]) -> None:
    step = read_step(record(schema_name, "session:s", "run:r", **context), FLOW)
    assert step is None or (step.session, step.run) == ("s", "r")
    assert step is None or msgspec.json.decode(msgspec.json.encode(step))["type"]


def test_records_outside_of_conversations_make_no_step() -> None:
    assert read_step(record("note.v1"), FLOW) is None
    assert read_step(record(FLOW.request, tool="llm", input={}), FLOW) is None


@pytest.mark.parametrize(
    ("error", "told"), [("broke", "broke"), ({"message": "broke"}, "broke"), ({"code": 3}, ""), (None, "")]
)
def test_an_error_is_shown_as_text(error: Any, told: str) -> None:
    step = read_step(record(FLOW.response, tool="x", status="error", error=error), FLOW)
    assert isinstance(step, ToolAnswered)
    assert step.error == told


@pytest.mark.parametrize("offered", [None, [], ["maybe"], "once"])
def test_a_question_without_choices_offers_all(offered: Any) -> None:
    step = read_step(record(FLOW.permission_request, tool="x", choices=offered), FLOW)
    assert isinstance(step, PermissionAsked)
    assert step.choices == CHOICES
