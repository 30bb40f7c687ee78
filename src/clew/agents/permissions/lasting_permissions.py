"""What the user has allowed for longer than once: answers on the trail that count until they are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.agents.conversations.sessions import Sessions
from clew.agents.permissions.questions import list_all, read_standing
from clew.agents.runs.run_origin import find_beginner
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_request_id

LASTING = ("session", "always")
_LOOK_BACK = 200
"""How many of the newest questions about the same are looked at."""


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. `id` is its breadcrumb: deleting that takes it back."""

    id: str
    tool: str
    pattern: str
    answer: str
    session: str
    by: str
    at: datetime


async def find_allowances(trail: Trail, flow: Flow, *, by: Principal) -> list[Allowance]:
    """What is allowed for a session or always, newest first. Raises AccessDenied."""
    lasting = Selector(
        schema_name=flow.permission_answer, context_match=(ContextMatch(path="answer", op="in", value=list(LASTING)),)
    )
    answers = [each async for each in list_all(trail, lasting, by=by)]
    ids = [id for each in answers if (id := find_request_id(each))]
    standing = await read_standing(trail, flow, ids, by=by)
    to = {answer.id: standing.questions[question] for question, answer in standing.answers.items()}
    return [
        Allowance(
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
    """Whether just this was allowed for longer than once. What was allowed for a session is so for what they who began
    it, and they who allowed it, wrote there."""
    if not pattern:
        return False
    same = (ContextMatch(path="tool", value=tool), ContextMatch(path="pattern", value=pattern))
    asked = Selector(schema_name=flow.permission_request, context_match=same)
    questions = (await trail.records.list(asked, by=by, limit=_LOOK_BACK)).items
    standing = await read_standing(trail, flow, [id for each in questions if (id := find_request_id(each))], by=by)
    firsts = [(each, first) for each in questions if (first := standing.answers.get(each.id)) is not None]
    if any(first.context.get("answer") == "always" for _, first in firsts):
        return True
    session = request.session
    given = [first for each, first in firsts if each.session == session and first.context.get("answer") == "session"]
    return bool(session and given) and await _is_for(trail, flow, request, given, by)


async def _is_for(trail: Trail, flow: Flow, request: Breadcrumb, given: Sequence[Breadcrumb], by: Principal) -> bool:
    """Whether what was allowed for a session is allowed to the one whom a request works for."""
    beginner = await find_beginner(trail, flow, request, by=by)
    if beginner is None:
        return False
    if beginner in [each.created_by for each in given]:
        return True
    try:
        first = await Sessions(trail, flow).first(request.session or "", by=by)
    except NotFound:
        return False
    return first.created_by == beginner
