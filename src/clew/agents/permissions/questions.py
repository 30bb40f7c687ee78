"""Questions for permission: which request one is about, and which answer is its own.

A question names the record of its request with version and digest. Doors show what that record holds, and only that
record, unchanged, is run: what is shown and what is done are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.conversations.steps import CHOICES, PermissionAsked
from clew.agents.repairs.failures import bounded_input
from clew.errors import ClewError, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.flow import Flow
from clew.trail.model.selector import MAX_TERMS, ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request_id

MAX_SHOWN = 20_000
"""Characters of an input that a person can be asked about."""
_PAGE = 200
CHANGED = "what was asked about has changed since, or is gone"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a question is about, as it was."""

    id: str
    version: int
    digest: str


def subject_of(request: Breadcrumb) -> Subject:
    """What a question about a request is bound to."""
    digest = hashlib.sha256(encode_canonical(request.context, "context")).hexdigest()
    return Subject(id=request.id, version=request.version, digest=digest)


def question_draft(flow: Flow, request: Breadcrumb, tool: str, reason: str, pattern: str) -> Draft:
    """Asks whether a request may be run. Its `input` is an overview without what looks secret; the whole is in the
    request."""
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
    """What was asked about some requests, and what came of it: the questions by their ids, the first answer to each by
    the id of the question, and the ids of the requests that have a response."""

    questions: Mapping[str, Breadcrumb]
    answers: Mapping[str, Breadcrumb]
    responded: frozenset[str]


async def read_standing(trail: Trail, flow: Flow, request_ids: Iterable[str], *, by: Principal) -> AnsweredQuestions:
    """How the questions about these requests stand. An answer that was there before its question counts for none."""
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
    """The question that an answer is to: by the question's id, or by that of its request where it names none. None
    where that cannot be told."""
    if named := answer.context.get("question"):
        return questions.get(named) if isinstance(named, str) else None
    found = [each for each in questions.values() if find_request_id(each) == find_request_id(answer)]
    return found[0] if len(found) == 1 else None


async def find_open_question(trail: Trail, flow: Flow, answer: Breadcrumb, *, by: Principal) -> Breadcrumb | None:
    """The question that an answer is to, if nothing else was said to it before, and its request has no response yet."""
    request_id = find_request_id(answer) or ""
    standing = await read_standing(trail, flow, [request_id], by=by)
    if request_id in standing.responded:
        return None
    return next((standing.questions[id] for id, first in standing.answers.items() if first.id == answer.id), None)


async def _about(trail: Trail, flow: Flow, request_ids: Sequence[str], by: Principal) -> AsyncIterator[Breadcrumb]:
    """Questions, answers and responses of requests, those of one request in order."""
    schemas = (flow.permission_request, flow.permission_answer, flow.response)
    for start in range(0, len(request_ids), MAX_TERMS):
        tags = [f"{REQUEST_TAG}{id}" for id in request_ids[start : start + MAX_TERMS]]
        selector = Selector(schema_names=schemas, any_tags=tags)
        async for each in list_all(trail, selector, by=by, oldest_first=True):
            yield each


async def list_all(
    trail: Trail, selector: Selector, *, by: Principal, oldest_first: bool = False
) -> AsyncIterator[Breadcrumb]:
    """All that a selector means, page by page."""
    cursor: str | None = None
    while True:
        page = await trail.records.list(selector, by=by, limit=_PAGE, cursor=cursor, oldest_first=oldest_first)
        for each in page.items:
            yield each
        if (cursor := page.cursor) is None:
            return


async def find_subject(trail: Trail, question: Breadcrumb, *, by: Principal) -> Breadcrumb | None:
    """The request that a question is about, if it is still what it was."""
    try:
        subject = msgspec.convert(question.context.get("request"), Subject)
        request = await trail.records.get(subject.id, by=by)
    except (msgspec.ValidationError, ClewError):
        return None
    return request if subject_of(request) == subject else None


async def show_whole(trail: Trail, asked: PermissionAsked, *, by: Principal) -> PermissionAsked:
    """The question with all that would be run. One whose request has changed can only be denied."""
    try:
        question = await trail.records.get(asked.id, by=by)
    except NotFound:
        return asked
    if "request" not in question.context:  # of no tool that waits: nothing would be run
        return asked
    request = await find_subject(trail, question, by=by)
    if request is None:
        return msgspec.structs.replace(asked, input=None, reason=CHANGED, pattern="", choices=(CHOICES[-1],))
    return msgspec.structs.replace(asked, input=request.context.get("input"))


async def is_id_taken(trail: Trail, flow: Flow, request: Breadcrumb, *, by: Principal) -> bool:
    """Whether another request had the same id before."""
    id = find_request_id(request) or request.id
    named: tuple[dict[str, Any], ...] = (
        {"all_tags": (f"{REQUEST_TAG}{id}",)},
        {"context_match": (ContextMatch(path="requestId", value=id),)},
        {"context_match": (ContextMatch(path="request_id", value=id),)},
    )
    for how in named:
        selector = Selector(schema_name=flow.request, **how)
        page = await trail.records.list(selector, by=by, limit=1, oldest_first=True)
        if any(each.id != request.id for each in page.items):
            return True
    return False


def is_too_long(value: Any) -> bool:
    """Whether nobody could be shown this whole."""
    return len(msgspec.json.encode(value).decode()) > MAX_SHOWN
