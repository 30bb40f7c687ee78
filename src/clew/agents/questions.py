"""Questions for permission: which request one is about, and which answer is its own.

A question names the record of its request with version and digest. Doors show what that record holds, and only that
record, unchanged, is run: what is shown and what is done are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.failures import bounded_input
from clew.agents.steps import CHOICES, PermissionAsked
from clew.errors import ClewError, NotFound
from clew.trail.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.correlation import REQUEST_TAG, find_request_id
from clew.trail.flow import Flow
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

MAX_SHOWN = 20_000
"""Characters of an input that a person can be asked about."""
_LOOK_AHEAD = 100
"""How many records of one request are looked at for its question and the answers to it."""
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


def is_for(answer: Breadcrumb, question: Breadcrumb) -> bool:
    """Whether an answer is to this question: by the question's id, or by that of its request where it names none."""
    named = answer.context.get("question")
    return named == question.id if named else find_request_id(answer) == find_request_id(question)


def find_question(answer: Breadcrumb, questions: Iterable[Breadcrumb]) -> Breadcrumb | None:
    """The question that an answer is to; None where that cannot be told."""
    found = [each for each in questions if is_for(answer, each)]
    return found[0] if len(found) == 1 else None


async def find_open_question(trail: Trail, flow: Flow, answer: Breadcrumb, *, by: Principal) -> Breadcrumb | None:
    """The question that an answer is to, if nothing else was said to it before, and its request has no response yet."""
    schemas = (flow.permission_request, flow.permission_answer, flow.response)
    selector = Selector(schema_names=schemas, all_tags=(f"{REQUEST_TAG}{answer.context.get('request_id') or ''}",))
    page = await trail.records.list(selector, by=by, limit=_LOOK_AHEAD, oldest_first=True)
    question = find_question(answer, [each for each in page.items if each.schema_name == flow.permission_request])
    if question is None or any(each.schema_name == flow.response for each in page.items):
        return None
    later = page.items[page.items.index(question) :]
    answers = (each for each in later if each.schema_name == flow.permission_answer and is_for(each, question))
    first = next(answers, None)
    return question if first is not None and first.id == answer.id else None


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


async def is_used_twice(trail: Trail, flow: Flow, request: Breadcrumb, *, by: Principal) -> bool:
    """Whether another request has the same id."""
    id = find_request_id(request) or request.id
    named: tuple[dict[str, Any], ...] = (
        {"all_tags": (f"{REQUEST_TAG}{id}",)},
        {"context_match": (ContextMatch(path="requestId", value=id),)},
        {"context_match": (ContextMatch(path="request_id", value=id),)},
    )
    for how in named:
        page = await trail.records.list(Selector(schema_name=flow.request, **how), by=by, limit=2)
        if any(each.id != request.id for each in page.items):
            return True
    return False


def is_too_long(value: Any) -> bool:
    """Whether nobody could be shown this whole."""
    return len(msgspec.json.encode(value).decode()) > MAX_SHOWN
