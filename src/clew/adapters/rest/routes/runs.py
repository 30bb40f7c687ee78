"""Routes of runs: explanations of contexts, model usage, and the status of agents and workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.agents.budgets.usage_report import UsageReport, read_usage
from clew.agents.conversations.agent_status import AgentStatus, AgentStatuses
from clew.agents.conversations.context_explanations import explain_context
from clew.agents.conversations.conversation import open_conversations
from clew.agents.workers.worker_records import WorkerStatus, list_workers
from clew.context.receipts import Explanation, ItemExplanation
from clew.errors import InvalidInput


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    session: Annotated[str | None, Meta(description="Only what this session took")] = None
    agent: Annotated[str | None, Meta(description="Only what this agent took")] = None
    since: Annotated[datetime | None, Meta(description="RFC 3339 with a time zone")] = None


class Agents(msgspec.Struct, frozen=True, kw_only=True):
    """The agents by name."""

    items: Sequence[AgentStatus]


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """The live worker processes by name."""

    items: Sequence[WorkerStatus]


async def why_context(call: RestCall) -> RestAnswer:
    return reply(await _explain(call))


async def why_in_context(call: RestCall) -> RestAnswer:
    return reply(await _explain(call, call.path["item"]))


async def _explain(call: RestCall, item: str | None = None) -> Explanation | ItemExplanation:
    flow = (await open_conversations(call.trail, call.services.clock, by=call.by)).flow
    return await explain_context(call.trail, flow, call.path["id"], by=call.by, item=item)


async def get_usage(call: RestCall) -> RestAnswer:
    asked: UsageQuery = call.query
    report = await read_usage(call.trail, by=call.by, session=asked.session, agent=asked.agent, since=asked.since)
    return reply(report)


async def list_agents(call: RestCall) -> RestAnswer:
    conversations = await open_conversations(call.trail, call.services.clock, by=call.by)
    roll = AgentStatuses(call.trail, conversations.flow, call.services.clock, call.services.models)
    return reply(Agents(items=await roll.call(by=call.by)))


async def list_all_workers(call: RestCall) -> RestAnswer:
    return reply(Workers(items=await list_workers(call.trail, call.services.clock, by=call.by)))


_look = partial(RestOperation, method="GET", group="agents", verb="read")

OPERATIONS = (
    _look(
        path="/why/context/{id}",
        handler=why_context,
        summary="The breadcrumbs in the context of an agent; by the id of the context, or of any breadcrumb of its run",
        answer=Explanation,
        raises=(InvalidInput,),
    ),
    _look(
        path="/why/context/{id}/{item}",
        handler=why_in_context,
        summary="Why a breadcrumb is, or is not, in the context of an agent",
        answer=ItemExplanation,
        raises=(InvalidInput,),
    ),
    _look(
        path="/usage",
        handler=get_usage,
        summary="Model usage and cost, by agent, session, layer and model",
        query=UsageQuery,
        answer=UsageReport,
    ),
    _look(path="/agents", handler=list_agents, summary="List the agents and how they are", answer=Agents),
    _look(
        path="/workers",
        handler=list_all_workers,
        summary="List the worker processes, their roles and the events that they hold",
        answer=Workers,
    ),
)
