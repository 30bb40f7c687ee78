from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.repairs.failures import (
    CLASSES,
    MAX_INPUT,
    MAX_STACK,
    CallFailure,
    FailedTool,
    bounded_input,
    classify,
    error_drafts,
    is_retryable,
)
from clew.agents.runs.requests import request_draft
from clew.clock import ManualClock
from clew.errors import (
    Abort,
    AccessDenied,
    ConfigError,
    InvalidInput,
    ModelError,
    NotFound,
    SandboxUnavailable,
    ToolFailure,
)
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.store import Trail

KEY = "sk-" + "a1B2" * 8
FIELDS = {
    "tool_name",
    "tool_breadcrumb_id",
    "request_id",
    "requestedBy",
    "error_type",
    "error_message",
    "error_stack",
    "tool_input",
    "tool_limits",
    "execution_time_ms",
    "severity",
    "retryable",
    "failed_at",
    "attempt_number",
}


async def ask(trail: Trail, flow: Flow, by: Principal, input: dict[str, Any]) -> Breadcrumb:
    draft = request_draft(flow, "adder", input, request_id="r1", requested_by="assistant", tags=("session:s1", "run:x"))
    return await trail.records.create(draft, by=by)


async def raised(error: BaseException) -> BaseException:
    """The error with a stack of its own."""
    try:
        raise error
    except type(error) as caught:
        return caught


def drafts_for(flow: Flow, request: Breadcrumb, error: BaseException, clock: ManualClock) -> tuple[Draft, Draft]:
    failure = CallFailure(error=error, failed_at=clock.now(), attempt=2, seconds=1.5)
    tool = FailedTool(name="adder", id=request.id, version=4, limits={"timeout_ms": 1000})
    return error_drafts(flow, request, failure, tool)


@pytest.mark.req("RCR-44")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError("after 5 s"), "timeout"),
        (AccessDenied("read", ["curator"]), "permission"),
        (ZeroDivisionError("division by zero"), "runtime"),
        (ConfigError("no key for the model"), "config"),
        (InvalidInput("a", "must be a number"), "validation"),
    ],
)
async def test_each_of_five_failures_leaves_both_breadcrumbs_with_its_tag(
    trail: Trail, flow: Flow, me: Principal, clock: ManualClock, error: Exception, expected: str
) -> None:
    request = await ask(trail, flow, me, {"a": 1})

    response, record = await trail.records.create_many(drafts_for(flow, request, await raised(error), clock), by=me)

    assert (response.schema_name, response.context["status"]) == (flow.response, "error")
    assert {"request:r1", "consumer:assistant", "session:s1", "run:x", "workspace:tools"} <= set(response.tags)
    assert record.schema_name == flow.error
    assert {"tool:error", "tool:adder", f"error:{expected}", "workspace:tools", "session:s1"} <= set(record.tags)
    assert set(record.context) >= FIELDS
    assert record.context | {"error_stack": ""} == record.context | {
        "error_type": expected,
        "error_stack": "",
        "tool_input": {"a": 1},
        "attempt_number": 2,
        "execution_time_ms": 1500,
        "requestedBy": "assistant",
        "tool_version": 4,
        "failed_at": clock.now().isoformat(),
    }
    assert type(error).__name__ in record.context["error_stack"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolFailure("timeout", "killed"), "timeout"),
        (ToolFailure("permission", "no network"), "permission"),
        (ModelError("auth", "401"), "config"),
        (ModelError("timeout", "60 s"), "timeout"),
        (ModelError("server", "503"), "runtime"),
        (ModelError("too_long", "prompt"), "validation"),
        (PermissionError(13, "denied"), "permission"),
        (Abort("a hook said no"), "permission"),
        (SandboxUnavailable("no bubblewrap"), "config"),
        (NotFound("tool", "x"), "validation"),
        (msgspec.ValidationError("expected int"), "validation"),
        (OSError("disk"), "runtime"),
        (KeyError("x"), "runtime"),
    ],
)
def test_every_error_has_a_class(error: Exception, expected: str) -> None:
    assert classify(error) == expected
    assert expected in CLASSES


def test_transient_errors_are_retryable() -> None:
    assert is_retryable(TimeoutError())
    assert is_retryable(ModelError("rate", "429", retryable=True))
    assert not is_retryable(ModelError("auth", "401"))
    assert not is_retryable(ZeroDivisionError())
    assert is_retryable(ConnectionResetError())


@pytest.mark.req("RCR-44")
async def test_no_secret_of_input_message_or_stack_is_in_either_record(
    trail: Trail, flow: Flow, me: Principal, clock: ManualClock
) -> None:
    input = {"api_key": "plain words", "url": f"https://x/?token={KEY}", "deep": [{"password": "hunter2"}], "n": 1}
    request = await ask(trail, flow, me, input)
    error = await raised(RuntimeError(f"401 for Authorization: Bearer {KEY}"))

    response, record = await trail.records.create_many(drafts_for(flow, request, error, clock), by=me)

    for found in (response, record):
        text = msgspec.json.encode(found).decode()
        assert KEY not in text
        assert "hunter2" not in text
        assert "plain words" not in text
    assert record.context["tool_input"]["n"] == 1


async def test_a_huge_input_and_a_deep_stack_are_cut(
    trail: Trail, flow: Flow, me: Principal, clock: ManualClock
) -> None:
    request = await ask(trail, flow, me, {"text": "ä" * 100_000})
    error = ToolFailure("runtime", "x" * 100_000, stack="\ud800" + "frame\n" * 100_000)

    response, record = await trail.records.create_many(drafts_for(flow, request, error, clock), by=me)

    assert record.context["tool_input"]["bytes"] > 200_000
    assert len(record.context["tool_input"]["cut"].encode()) <= MAX_INPUT
    assert len(record.context["error_stack"]) <= MAX_STACK
    assert len(response.context["error"]) <= 1_000


def test_input_within_bounds_stays_as_it_is() -> None:
    for value in ({}, {"a": [1, None, True, 2.5, "ü"]}, "text", None, 7):
        assert bounded_input(value) == value
