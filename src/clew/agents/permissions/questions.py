"""Permission questions: the request of each question, and its first valid answer.

A question stores the id, version and digest of its request. The user is shown that request, and it runs only if it has
not changed since. So the user sees the exact call that will run.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.conversations.steps import CHOICES, PermissionAsked
from clew.agents.repairs.failures import bounded_input
from clew.agents.runs.executor import inherit
from clew.agents.runs.requests import response_draft
from clew.errors import ClewError, NotFound
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.selector import MAX_TERMS, ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request, find_request_id, find_requests
from clew.trail.work.handlers import Handler

MAX_SHOWN = 20_000
"""The longest input, in characters, about which a person can be asked."""
CHANGED = "the request was changed or deleted after the question"


class AskedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a question, as it was when the question was asked."""

    id: str
    version: int
    digest: str


def subject_of(request: Breadcrumb) -> AskedRequest:
    """The version and digest that bind a question to a request."""
    digest = hashlib.sha256(encode_canonical(request.context, "context")).hexdigest()
    return AskedRequest(id=request.id, version=request.version, digest=digest)


def question_draft(flow: Flow, request: Breadcrumb, tool: str, reason: str, pattern: str) -> Draft:
    """The question whether a request may run. Its `input` is a shortened copy with secrets masked."""
    request_id = find_request_id(request) or request.id
    return Draft(
        title=f"May {tool} run?"[:200],
        schema_name=flow.permission_request,
        tags=(f"{REQUEST_TAG}{request_id}", "permission:asked"),
        context={
            "request_id": request_id,
            "request": msgspec.to_builtins(subject_of(request)),
            "tool": tool,
            "input": bounded_input(request.context.get("input") or {}),
            "reason": reason,
            "pattern": pattern,
            "choices": list(CHOICES) if pattern else [CHOICES[0], CHOICES[-1]],
        },
        embed="never",
    )


class AnsweredQuestions(msgspec.Struct, frozen=True, kw_only=True):
    """Questions by id, the first answer to each by the id of the question, and the ids of requests with a response."""

    questions: Mapping[str, Breadcrumb]
    answers: Mapping[str, Breadcrumb]
    responded: frozenset[str]


async def read_answered_questions(
    trail: Trail, flow: Flow, request_ids: Iterable[str], *, by: Principal
) -> AnsweredQuestions:
    """Read the questions about these requests, the answers to the questions, and the responses to the requests. An
    answer older than its question does not count."""
    questions: dict[str, Breadcrumb] = {}
    answers: dict[str, Breadcrumb] = {}
    responded: set[str] = set()
    async for each in _about(trail, flow, list(dict.fromkeys(request_ids)), by):
        if each.schema_name == flow.permission_request:
            questions[each.id] = each
        elif each.schema_name == flow.response:
            responded.add(find_request_id(each) or "")
        elif (question := find_question(each, questions)) is not None:
            answers.setdefault(question.id, each)
    return AnsweredQuestions(questions=questions, answers=answers, responded=frozenset(responded))


def find_question(answer: Breadcrumb, questions: Mapping[str, Breadcrumb]) -> Breadcrumb | None:
    """The question of an answer: by the question's id, or by the id of its request if the answer names no question.
    None if several questions are possible."""
    if named := answer.context.get("question"):
        return questions.get(named) if isinstance(named, str) else None
    found = [each for each in questions.values() if find_request_id(each) == find_request_id(answer)]
    return found[0] if len(found) == 1 else None


async def find_open_question(trail: Trail, flow: Flow, answer: Breadcrumb, *, by: Principal) -> Breadcrumb | None:
    """The question of an answer, if this is its first answer and its request has no response yet."""
    request_id = find_request_id(answer) or ""
    standing = await read_answered_questions(trail, flow, [request_id], by=by)
    if request_id in standing.responded:
        return None
    return next((standing.questions[id] for id, first in standing.answers.items() if first.id == answer.id), None)


async def _about(trail: Trail, flow: Flow, request_ids: Sequence[str], by: Principal) -> AsyncIterator[Breadcrumb]:
    """Yield the questions, answers and responses of requests; the records of one request come in order."""
    schemas = (flow.permission_request, flow.permission_answer, flow.response)
    for start in range(0, len(request_ids), MAX_TERMS):
        tags = [f"{REQUEST_TAG}{id}" for id in request_ids[start : start + MAX_TERMS]]
        selector = Selector(schema_names=schemas, any_tags=tags)
        async for each in each_record(trail, selector, by=by):
            yield each


async def find_subject(trail: Trail, question: Breadcrumb, *, by: Principal) -> Breadcrumb | None:
    """The request of a question, unless it was changed or deleted."""
    try:
        subject = msgspec.convert(question.context.get("request"), AskedRequest)
        request = await trail.records.get(subject.id, by=by)
    except (msgspec.ValidationError, ClewError):
        return None
    return request if subject_of(request) == subject else None


async def show_whole(trail: Trail, asked: PermissionAsked, *, by: Principal) -> PermissionAsked:
    """The question with the complete input. If the request was changed or deleted, the user can only deny it."""
    try:
        question = await trail.records.get(asked.id, by=by)
    except NotFound:
        return asked
    if "request" not in question.context:  # no tool waits for it
        return asked
    request = await find_subject(trail, question, by=by)
    if request is None:
        return msgspec.structs.replace(asked, input=None, reason=CHANGED, pattern="", choices=(CHOICES[-1],))
    return msgspec.structs.replace(asked, input=request.context.get("input"))


async def is_id_taken(trail: Trail, flow: Flow, request: Breadcrumb, *, by: Principal) -> bool:
    """Whether an older request has the same id."""
    id = find_request_id(request) or request.id
    return any(each.id != request.id for each in await find_requests(trail, id, by=by, schema_name=flow.request))


def is_too_long(value: Any) -> bool:
    """Whether a value is too long to be shown to a person."""
    return len(msgspec.json.encode(value).decode()) > MAX_SHOWN


WHY = "the question for permission was deleted"


def deleted_question_handler(name: str, trail: Trail, flow: Flow, *, by: Principal, retry: RetryPolicy) -> Handler:
    """Responds to a request whose question was deleted before it had an answer, unless another question is pending."""

    async def respond(event: Event, deps: Any) -> Sequence[Draft]:
        request_id = next((tag.removeprefix(REQUEST_TAG) for tag in event.tags if tag.startswith(REQUEST_TAG)), "")
        standing = await read_answered_questions(trail, flow, [request_id], by=by)
        is_waiting = not standing.questions.keys() <= standing.answers.keys()
        if is_waiting or request_id in standing.responded or await is_answered(event.breadcrumb_id, request_id):
            return ()
        request = await find_request(trail, request_id, by=by, schema_name=flow.request)
        if request is None:
            return ()
        tool = str(request.context.get("tool") or "unknown")
        return [inherit(response_draft(flow, request, tool, "error", error=f"{tool} was not run: {WHY}"), request)]

    async def is_answered(question: str, request_id: str) -> bool:
        """An answered request runs, even when its question is deleted later."""
        to_it = (ContextMatch(path="question", value=question),)
        tags = (f"{REQUEST_TAG}{request_id}",)  # an answer without it is ignored
        selector = Selector(schema_name=flow.permission_answer, all_tags=tags, context_match=to_it)
        return bool((await trail.records.list(selector, by=by, limit=1)).items)

    return Handler(
        name=name,
        selector=Selector(schema_name=flow.permission_request),
        function=respond,
        retry=retry,
        types=("breadcrumb.deleted",),
        ordered=False,
    )
