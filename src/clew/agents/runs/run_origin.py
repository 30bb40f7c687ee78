"""Whom a call works for: the one who wrote what began its run. What a user allowed for a session is for the words of
some people, and anybody who may write can put a message into a session."""

from __future__ import annotations

from clew.access import Principal
from clew.agents.runs.callers import MAX_DEPTH, find_caller
from clew.agents.runs.requests import CALLED_TAG
from clew.errors import ClewError
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_requester, next_hop

TRIGGER_TAG = "trigger:"
"""On the requests of agents and workflows: the breadcrumb that began their run."""


async def find_beginner(trail: Trail, flow: Flow, request: Breadcrumb, *, by: Principal) -> str | None:
    """Who wrote what began the run of a request, over all agents that called one another for it; of a request that
    nothing else brought, who wrote that. None where it cannot be told, and for what came of another run."""
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
    """The tag of a request that names what began its run, for those that follow it."""
    return tuple(tag for tag in record.tags if tag.startswith(TRIGGER_TAG))


def _is_task(trigger: Breadcrumb, by: Principal) -> bool:
    """Whether a breadcrumb is what an agent called another one for. Only the runtime writes such."""
    return trigger.created_by == (by.agent_id or None) and any(tag.startswith(CALLED_TAG) for tag in trigger.tags)


async def _trigger_of(trail: Trail, request: Breadcrumb, by: Principal) -> Breadcrumb | None:
    named = trigger_tags(request)
    return request if not named else await _find(trail, named[0].removeprefix(TRIGGER_TAG), by)


async def _call_of(trail: Trail, flow: Flow, agent: str, by: Principal) -> Breadcrumb | None:
    """The request by which another agent called this one."""
    selector = Selector(schema_name=flow.agent, context_match=(ContextMatch(path="agent_id", value=agent),))
    page = await trail.records.list(selector, by=by, limit=1)
    caller = find_caller(page.items[0].context.get("metadata")) if page.items else None
    return await _find(trail, caller.request, by) if caller is not None else None


async def _find(trail: Trail, id: str, by: Principal) -> Breadcrumb | None:
    try:
        return await trail.records.get(id, by=by)
    except ClewError:
        return None
