"""The handlers of the context builder: one for the triggers of each agent, and one for requested contexts. Each handles
one event, writes one context and ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.context.builder import ContextBuilder
from clew.context.definition import AgentDefinition
from clew.context.draft import ContextDraft
from clew.context.requests import answer_request
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG
from clew.trail.work.handlers import Handler

PREFIX = "context/"
REQUESTS = "context/requests"
_RETRY = RetryPolicy(attempts=3, backoff=0.5)


def context_handler(
    builder: ContextBuilder,
    trail: Trail,
    flow: Flow,
    agent: AgentDefinition,
    *,
    by: Principal,
    after: int | None = None,
) -> Handler | None:
    """Return the handler of an agent's triggers, in order within a session; None for an agent without a context
    trigger. It skips messages to other agents."""
    if agent.context_trigger is None:
        return None
    mine = CONSUMER_TAG + agent.agent_id

    async def build(event: Event, deps: object = None) -> Sequence[Draft]:
        trigger = event.breadcrumb
        if trigger is None or (event.schema_name == flow.message and _is_for_others(event, mine)):
            return ()
        return await _written(trail, await builder.build(trigger, agent, by=within(by, trigger)), by)

    return Handler(
        name=PREFIX + agent.agent_id,
        selector=agent.context_trigger,
        function=build,
        retry=_RETRY,
        after=after,
    )


def _is_for_others(event: Event, mine: str) -> bool:
    addressed = [tag for tag in event.tags if tag.startswith(CONSUMER_TAG)]
    return bool(addressed) and mine not in addressed


def request_handler(builder: ContextBuilder, trail: Trail, flow: Flow, *, by: Principal) -> Handler:
    """Return the handler of context requests."""

    async def answer(event: Event, deps: object = None) -> Sequence[Draft]:
        if event.breadcrumb is None:
            return ()
        return await _written(
            trail, await answer_request(builder, trail, event.breadcrumb, by=within(by, event.breadcrumb)), by
        )

    return Handler(name=REQUESTS, selector=Selector(schema_name=flow.context_request), function=answer, retry=_RETRY)


def within(by: Principal, trigger: Breadcrumb) -> Principal:
    """Limit the principal of the builder to the scopes of the trigger, so that everybody who may read the trigger may
    read the context."""
    return msgspec.structs.replace(by, scopes=by.scopes & set(trigger.scopes))


async def _written(trail: Trail, draft: ContextDraft, by: Principal) -> Sequence[Draft]:
    """Return the breadcrumb to write. Counts one read of each shown breadcrumb whose TTL counts reads."""
    for each in draft.read:
        if each.ttl.max_reads is not None and each.id != draft.trigger.id:
            await trail.records.read(each.id, by=by)
    return (msgspec.structs.replace(draft.as_draft(), scopes=draft.trigger.scopes),)
