"""Lasting permissions: answers for a session or for always. They apply until they are deleted.

A permission for a session applies only to messages of the user who started the session or gave the permission, because
anybody with write access can put a message into a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.agents.conversations.sessions import Sessions
from clew.agents.permissions.questions import read_answered_questions
from clew.agents.runs.callers import MAX_DEPTH, find_caller
from clew.agents.runs.requests import CALLED_TAG
from clew.errors import ClewError, NotFound
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_request_id, find_requester, next_hop

LASTING = ("session", "always")
_LOOK_BACK = 200
"""How many of the newest questions with the same pattern are read."""


class LastingPermission(msgspec.Struct, frozen=True, kw_only=True):
    """One permission. `id` is the breadcrumb of the answer: deleting it revokes the permission."""

    id: str
    tool: str
    pattern: str
    answer: str
    session: str
    by: str
    at: datetime


async def find_lasting_permissions(trail: Trail, flow: Flow, *, by: Principal) -> list[LastingPermission]:
    """The lasting permissions, newest first. Raises AccessDenied."""
    lasting = Selector(
        schema_name=flow.permission_answer, context_match=(ContextMatch(path="answer", op="in", value=list(LASTING)),)
    )
    answers = [each async for each in each_record(trail, lasting, by=by, oldest_first=False)]
    ids = [id for each in answers if (id := find_request_id(each))]
    standing = await read_answered_questions(trail, flow, ids, by=by)
    to = {answer.id: standing.questions[question] for question, answer in standing.answers.items()}
    return [
        LastingPermission(
            id=each.id,
            tool=str(question.context.get("tool") or ""),
            pattern=str(question.context["pattern"]),
            answer=str(each.context["answer"]),
            session=question.session or "",
            by=str(each.context.get("by") or ""),
            at=each.created_at,
        )
        for each in answers
        if (question := to.get(each.id)) is not None and question.context.get("pattern")
    ]


async def is_allowed(trail: Trail, flow: Flow, request: Breadcrumb, tool: str, pattern: str, *, by: Principal) -> bool:
    """Whether a lasting permission covers this pattern of a tool for this request."""
    if not pattern:
        return False
    same = (ContextMatch(path="tool", value=tool), ContextMatch(path="pattern", value=pattern))
    asked = Selector(schema_name=flow.permission_request, context_match=same)
    questions = (await trail.records.list(asked, by=by, limit=_LOOK_BACK)).items
    standing = await read_answered_questions(
        trail, flow, [id for each in questions if (id := find_request_id(each))], by=by
    )
    firsts = [(each, first) for each in questions if (first := standing.answers.get(each.id)) is not None]
    if any(first.context.get("answer") == "always" for _, first in firsts):
        return True
    session = request.session
    given = [first for each, first in firsts if each.session == session and first.context.get("answer") == "session"]
    return bool(session and given) and await _is_for(trail, flow, request, given, by)


async def _is_for(trail: Trail, flow: Flow, request: Breadcrumb, given: Sequence[Breadcrumb], by: Principal) -> bool:
    """Whether permissions for a session apply to the run: its user gave one of them, or started the session."""
    run_author = await find_run_author(trail, flow, request, by=by)
    if run_author is None:
        return False
    if run_author in [each.created_by for each in given]:
        return True
    try:
        first = await Sessions(trail, flow).first(request.session or "", by=by)
    except NotFound:
        return False
    return first.created_by == run_author


TRIGGER_TAG = "trigger:"
"""Tag on requests of agents and workflows: the breadcrumb that started their run."""


async def find_run_author(trail: Trail, flow: Flow, request: Breadcrumb, *, by: Principal) -> str | None:
    """Return the user whose message started the run; the search follows the chain of agents that called one another.
    For a request without a trigger, return its writer. Return None if the chain is broken, or another run started this
    one."""
    for _ in range(MAX_DEPTH + 1):
        trigger = await _trigger_of(trail, request, by)
        if trigger is None:
            return None
        if not _is_task(trigger, by):
            return trigger.created_by if trigger is request or not next_hop(trigger) else None
        call = await _call_of(trail, flow, find_requester(request) or "", by)
        if call is None:
            return None
        request = call
    return None


def trigger_tags(record: Breadcrumb) -> tuple[str, ...]:
    """The tag of a request that names the trigger of its run; later requests of the run get it too."""
    return tuple(tag for tag in record.tags if tag.startswith(TRIGGER_TAG))


def _is_task(trigger: Breadcrumb, by: Principal) -> bool:
    """Whether a breadcrumb is the task of a called agent. Only the runtime writes tasks."""
    return trigger.created_by == (by.agent_id or None) and any(tag.startswith(CALLED_TAG) for tag in trigger.tags)


async def _trigger_of(trail: Trail, request: Breadcrumb, by: Principal) -> Breadcrumb | None:
    named = trigger_tags(request)
    return request if not named else await _find(trail, named[0].removeprefix(TRIGGER_TAG), by)


async def _call_of(trail: Trail, flow: Flow, agent: str, by: Principal) -> Breadcrumb | None:
    """The request that called this agent."""
    selector = Selector(schema_name=flow.agent, context_match=(ContextMatch(path="agent_id", value=agent),))
    page = await trail.records.list(selector, by=by, limit=1)
    caller = find_caller(page.items[0].context.get("metadata")) if page.items else None
    return await _find(trail, caller.request, by) if caller is not None else None


async def _find(trail: Trail, id: str, by: Principal) -> Breadcrumb | None:
    try:
        return await trail.records.get(id, by=by)
    except ClewError:
        return None
