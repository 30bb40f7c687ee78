"""What the user has allowed for longer than once: answers on the trail that count until they are deleted."""

from __future__ import annotations

from datetime import datetime

import msgspec

from clew.access import Principal
from clew.trail.correlation import REQUEST_TAG, find_request_id
from clew.trail.flow import Flow
from clew.trail.selector import Selector
from clew.trail.store import Trail

MOST = 200
"""How many answers are looked at, the newest first."""
LASTING = ("session", "always")


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
    answers = (await trail.records.list(Selector(schema_name=flow.permission_answer), by=by, limit=MOST)).items
    lasting = [each for each in answers if each.context.get("answer") in LASTING]
    tags = [f"{REQUEST_TAG}{id}" for each in lasting if (id := find_request_id(each))]
    if not tags:
        return []
    asked = Selector(schema_name=flow.permission_request, any_tags=tuple(tags))
    questions = {find_request_id(each): each for each in (await trail.records.list(asked, by=by, limit=MOST)).items}
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
        for each in lasting
        if (question := questions.get(find_request_id(each))) is not None and question.context.get("pattern")
    ]
