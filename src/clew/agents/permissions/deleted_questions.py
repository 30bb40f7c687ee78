"""Questions for permission that were deleted: nobody can answer them any more, so that their requests get a response
instead of waiting without end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.access import Principal
from clew.agents.permissions.questions import read_standing
from clew.agents.runs.executor import inherit
from clew.agents.runs.requests import response_draft
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, find_request
from clew.trail.work.handlers import Handler

WHY = "the question whether it may was deleted"


def withdrawn_handler(name: str, trail: Trail, flow: Flow, *, by: Principal, retry: RetryPolicy) -> Handler:
    """Responds to the request of a question that was deleted before it had an answer, unless another one waits."""

    async def respond(event: Event, deps: Any) -> Sequence[Draft]:
        request_id = next((tag.removeprefix(REQUEST_TAG) for tag in event.tags if tag.startswith(REQUEST_TAG)), "")
        standing = await read_standing(trail, flow, [request_id], by=by)
        is_waiting = not standing.questions.keys() <= standing.answers.keys()
        if is_waiting or request_id in standing.responded or await is_answered(event.breadcrumb_id):
            return ()
        request = await find_request(trail, request_id, by=by, schema_name=flow.request)
        if request is None:
            return ()
        tool = str(request.context.get("tool") or "unknown")
        return [inherit(response_draft(flow, request, tool, "error", error=f"{tool} was not run: {WHY}"), request)]

    async def is_answered(question: str) -> bool:
        """What was answered runs, whatever becomes of its question."""
        to_it = (ContextMatch(path="question", value=question),)
        selector = Selector(schema_name=flow.permission_answer, context_match=to_it)
        return bool((await trail.records.list(selector, by=by, limit=1)).items)

    return Handler(
        name=name,
        selector=Selector(schema_name=flow.permission_request),
        function=respond,
        retry=retry,
        types=("breadcrumb.deleted",),
        ordered=False,
    )
