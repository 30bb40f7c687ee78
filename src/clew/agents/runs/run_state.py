"""The state of an agent in a run, derived from the records of the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from clew.agents.runs.requests import (
    TURN_TAG,
    ToolRequest,
    find_author,
    read_request,
    read_response,
)
from clew.errors import InvalidInput
from clew.llm.messages import ToolCall
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.work.correlation import REQUEST_TAG, find_requester


class ModelTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model that called tools, with the requests and the responses so far."""

    answer: Breadcrumb
    calls: tuple[ToolCall, ...]
    requests: tuple[Breadcrumb, ...]
    responses: tuple[Breadcrumb, ...]
    """The responses so far, in the order of the calls."""

    @property
    def is_complete(self) -> bool:
        return len(self.responses) == len(self.calls)


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's part of a run."""

    records: Mapping[str, Breadcrumb]
    model_requests: tuple[Breadcrumb, ...]
    turns: tuple[ModelTurn, ...]
    responses: Mapping[str, Breadcrumb]
    """The first response to each request of the agent."""
    is_ended: bool

    @property
    def last_request(self) -> Breadcrumb | None:
        return self.model_requests[-1] if self.model_requests else None

    def find_unanswered(self, tags: Collection[str]) -> Breadcrumb | None:
        """The model request without a response that the tags of a response name."""
        ids = ((each, read_request(each).request_id) for each in self.model_requests)
        return next((each for each, id in ids if REQUEST_TAG + id in tags and id not in self.responses), None)

    def is_newest(self, answer: Breadcrumb) -> bool:
        """Whether an answer is that to the last model request."""
        last = self.last_request
        found = self.responses.get(read_request(last).request_id) if last is not None else None
        return found is not None and found.id == answer.id

    def is_awaited(self, response: Breadcrumb) -> bool:
        """Whether a response is the first one to a request of the agent."""
        found = self.responses.get(read_response(response).request_id)
        return found is not None and found.id == response.id

    def find_turn(self, breadcrumb: Breadcrumb) -> ModelTurn | None:
        """The turn that a response belongs to."""
        id = next((tag.removeprefix(TURN_TAG) for tag in breadcrumb.tags if tag.startswith(TURN_TAG)), None)
        return next((turn for turn in self.turns if turn.answer.id == id), None)


def read_state(flow: Flow, records: Mapping[str, Breadcrumb], agent_id: str) -> RunState:
    """The state of one agent in a run, from the records of the run in order."""
    mine = [each for each in records.values() if each.schema_name == flow.request and find_requester(each) == agent_id]
    requests = [(each, request) for each in mine if (request := _read(each)) is not None]
    responses: dict[str, Breadcrumb] = {}
    asked = {request.request_id for _, request in requests}
    for each in records.values():
        if each.schema_name == flow.response and (id := read_response(each).request_id) in asked:
            responses.setdefault(id, each)
    model_requests = [each for each, request in requests if request.tool == flow.model_tool]
    answers = [
        responses[request.request_id]
        for _, request in requests
        if request.tool == flow.model_tool and request.request_id in responses
    ]
    return RunState(
        records=records,
        model_requests=tuple(model_requests),
        turns=tuple(_turn(answer, requests, responses) for answer in answers if calls_of(answer)),
        responses=responses,
        is_ended=any(each.schema_name == flow.answer and find_author(each) == agent_id for each in records.values()),
    )


def calls_of(answer: Breadcrumb) -> tuple[ToolCall, ...]:
    """The tool calls in an answer of a model."""
    output = answer.context.get("output")
    found: Any = output.get("tool_calls") if isinstance(output, dict) else None
    return msgspec.convert(found or (), tuple[ToolCall, ...])


def _turn(
    answer: Breadcrumb, requests: Sequence[tuple[Breadcrumb, ToolRequest]], responses: Mapping[str, Breadcrumb]
) -> ModelTurn:
    tag = TURN_TAG + answer.id
    asked = [(record, request) for record, request in requests if tag in record.tags]
    return ModelTurn(
        answer=answer,
        calls=calls_of(answer),
        requests=tuple(record for record, _ in asked),
        responses=tuple(responses[request.request_id] for _, request in asked if request.request_id in responses),
    )


def _read(record: Breadcrumb) -> ToolRequest | None:
    """The request; None for an invalid one."""
    try:
        return read_request(record)
    except InvalidInput:
        return None
