"""The visible steps of a run: the breadcrumbs of a conversation as typed records. Anybody with write access
can write such a breadcrumb, so a missing field or one of a wrong type is read as empty."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Literal

import msgspec

from clew.agents.runs.requests import find_author
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.work.correlation import find_request_id, find_run

Choice = Literal["once", "session", "always", "deny"]
CHOICES: tuple[Choice, ...] = ("once", "session", "always", "deny")


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """One event of a conversation. `seq` is the number of its event, `id` its breadcrumb."""

    seq: int
    session: str
    run: str
    id: str


class RunStarted(Step, frozen=True, kw_only=True, tag="message"):
    """The message is on the trail, and the run begins."""

    agent: str


class ContextBuilt(Step, frozen=True, kw_only=True, tag="context"):
    """The context builder has written the context; `clew why context ID` explains it."""

    agent: str
    items: int
    tokens: int


class AnswerChunk(Step, frozen=True, kw_only=True, tag="text"):
    """A piece of an answer. The piece with index 0 starts the answer. If the model call is retried, the pieces start
    again at 0."""

    request_id: str
    index: int
    text: str


class ModelAnswered(Step, frozen=True, kw_only=True, tag="model"):
    """A model call has ended, with an answer or an error."""

    request_id: str
    status: str
    model: str
    input_tokens: int
    output_tokens: int
    error: str = ""


class ToolCalled(Step, frozen=True, kw_only=True, tag="tool_call"):
    request_id: str
    tool: str
    input: Any


class ToolAnswered(Step, frozen=True, kw_only=True, tag="tool_result"):
    request_id: str
    tool: str
    status: str
    output: Any
    error: str
    milliseconds: float


class PermissionAsked(Step, frozen=True, kw_only=True, tag="permission"):
    """A tool waits for the user's permission. `input` has the arguments: shortened as stored in the question, complete
    when `Conversations` returns the step. `pattern` describes the calls that a lasting permission would cover."""

    request_id: str
    tool: str
    input: Any
    reason: str
    pattern: str
    choices: tuple[str, ...]


class PermissionAnswered(Step, frozen=True, kw_only=True, tag="permission_answer"):
    request_id: str
    answer: str


class CancelRequested(Step, frozen=True, kw_only=True, tag="cancel"):
    reason: str


class Stopped(Step, frozen=True, kw_only=True, tag="stopped"):
    """The run was ended by a limit: a budget, or turns without progress."""

    why: str
    detail: str
    how_to_go_on: str


class Answered(Step, frozen=True, kw_only=True, tag="answer"):
    """The end of a run: `done`, `cancelled` or `stopped`."""

    text: str
    status: str
    reason: str
    agent: str


class RunAbandoned(Step, frozen=True, kw_only=True, tag="failed"):
    """The end of an abandoned run: one of its events became a dead letter, so no worker continues it."""

    reason: str


ENDS = (Answered, RunAbandoned)
"""The steps that end a run; no step of the run follows them."""


def step_of(event: Event, flow: Flow) -> Step | None:
    """The step of an event, or None if the event has none."""
    if event.breadcrumb is None or event.type != "breadcrumb.created":
        return None
    return read_step(event.breadcrumb, flow, event.seq)


def read_step(found: Breadcrumb, flow: Flow, seq: int = 0) -> Step | None:
    """The step of a breadcrumb."""
    read = _READERS.get(_part_of(found.schema_name, flow))
    return read(_Found(found, flow, seq)) if read is not None else None


def shown_schemas(flow: Flow) -> tuple[str, ...]:
    """The schemas that steps are made of."""
    return tuple(getattr(flow, part) for part in _READERS)


def _part_of(schema_name: str | None, flow: Flow) -> str:
    return next((part for part in _READERS if getattr(flow, part) == schema_name), "")


class _Found:
    """A breadcrumb as input of the readers: its fields, and the values that all steps share (`head`)."""

    def __init__(self, record: Breadcrumb, flow: Flow, seq: int) -> None:
        self.record = record
        self.context = record.context
        self.of_model = record.context.get("tool") == flow.model_tool
        self.request_id = find_request_id(record) or ""
        self.head: dict[str, Any] = {
            "seq": seq,
            "session": record.session or "",
            "run": find_run(record) or "",
            "id": record.id,
        }

    def text(self, name: str) -> str:
        return _text(self.context, name)

    def number(self, name: str) -> float:
        return _number(self.context, name)


def _gathered(found: _Found) -> Step:
    items, tokens = int(found.number("breadcrumb_count")), int(found.number("token_estimate"))
    return ContextBuilt(**found.head, agent=found.text("consumer_id"), items=items, tokens=tokens)


def _said(found: _Found) -> Step:
    index = int(found.number("index"))
    return AnswerChunk(**found.head, request_id=found.request_id, index=index, text=found.text("text"))


def _called(found: _Found) -> Step | None:
    """The step of a request to a tool. A request to a model is not a step, its answer is one."""
    if found.of_model:
        return None
    tool, input = found.text("tool"), found.context.get("input")
    return ToolCalled(**found.head, request_id=found.request_id, tool=tool, input=input)


def _responded(found: _Found) -> Step:
    if found.of_model:
        return _modelled(found)
    return ToolAnswered(
        **found.head,
        request_id=found.request_id,
        tool=found.text("tool"),
        status=found.text("status"),
        output=found.context.get("output"),
        error=_error(found.context.get("error")),
        milliseconds=found.number("execution_time_ms"),
    )


def _modelled(found: _Found) -> Step:
    output = found.context.get("output")
    answer = output if isinstance(output, dict) else {}
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return ModelAnswered(
        **found.head,
        request_id=found.request_id,
        status=found.text("status"),
        model=_text(answer, "model"),
        input_tokens=int(_number(usage, "input_tokens")),
        output_tokens=int(_number(usage, "output_tokens")),
        error=_error(found.context.get("error")),
    )


def _asked(found: _Found) -> Step:
    offered = found.context.get("choices")
    choices = tuple(each for each in CHOICES if isinstance(offered, list) and each in offered)
    return PermissionAsked(
        **found.head,
        request_id=found.request_id,
        tool=found.text("tool"),
        input=found.context.get("input"),
        reason=found.text("reason"),
        pattern=found.text("pattern"),
        choices=choices or CHOICES,
    )


def _allowed(found: _Found) -> Step:
    return PermissionAnswered(**found.head, request_id=found.request_id, answer=found.text("answer"))


def _cancelling(found: _Found) -> Step:
    return CancelRequested(**found.head, reason=found.text("reason"))


def _stopped(found: _Found) -> Step:
    detail, onward = found.text("detail"), found.text("how_to_go_on")
    return Stopped(**found.head, why=found.text("why"), detail=detail, how_to_go_on=onward)


def _answered(found: _Found) -> Step:
    return Answered(
        **found.head,
        text=found.text("message"),
        status=found.text("status") or "done",
        reason=found.text("reason"),
        agent=find_author(found.record),
    )


_READERS: dict[str, Callable[[_Found], Step | None]] = {
    "context": _gathered,
    "delta": _said,
    "request": _called,
    "response": _responded,
    "permission_request": _asked,
    "permission_answer": _allowed,
    "cancel": _cancelling,
    "stopped": _stopped,
    "answer": _answered,
}
"""The role of a schema in the flow → the function that reads its breadcrumbs as steps."""


def _text(context: Mapping[str, Any], name: str) -> str:
    value = context.get(name)
    return value if isinstance(value, str) else ""


def _number(context: Mapping[str, Any], name: str) -> float:
    value = context.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _error(value: Any) -> str:
    """The error as one text, whether it was written as a text or as an object with a message."""
    if isinstance(value, dict):
        value = value.get("message") or value.get("error")
    return value if isinstance(value, str) else ""


async def without_old_pieces(steps: AsyncIterator[Step], head: int) -> AsyncIterator[Step]:
    """The steps of a run without stale answer pieces. Pieces up to the event `head` are held back. They are yielded if
    a later piece continues their answer or their model call ends; otherwise they are dropped."""
    kept: list[AnswerChunk] = []
    async for step in steps:
        if isinstance(step, AnswerChunk) and step.seq <= head:
            is_next = bool(kept) and step.index > 0 and step.request_id == kept[-1].request_id
            kept = [*kept, step] if is_next else [step]
            continue
        if kept and isinstance(step, AnswerChunk | ModelAnswered) and step.request_id == kept[-1].request_id:
            for each in kept if isinstance(step, ModelAnswered) or step.index > 0 else ():
                yield each
            kept = []
        yield step
