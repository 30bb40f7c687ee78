"""Contexts on request: a breadcrumb names the consumer, the sources, and the tags of the reply."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from clew.access import Principal
from clew.context.builder import ContextBuilder
from clew.context.definition import (
    AgentDefinition,
    AlwaysSource,
    ContextSources,
    GraphSource,
    Limit,
    Method,
    SemanticSource,
    SessionSource,
    Text,
)
from clew.context.draft import ContextDraft
from clew.decode_errors import in_plain_words
from clew.trail.model.breadcrumb import Breadcrumb, check_tags
from clew.trail.store import Trail


class RequestedSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One source of a requested context."""

    schema: Text
    method: Method = "recent"
    limit: Limit | None = None
    optional: bool = False
    section: str = ""


class ContextRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a context: the consumer and the sources. The trigger is the breadcrumb `trigger_event_id`, else the
    request itself with its `query`. The context has only the named sources, and breadcrumbs linked to them."""

    consumer_id: Text
    reply_tags: tuple[str, ...] = ()
    sources: Annotated[tuple[RequestedSource, ...], Meta(max_length=50)] = ()
    query: str = ""
    trigger_event_id: str | None = None
    model: str | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    hops: Annotated[int, Meta(ge=0, le=4)] = 2
    request_id: str | None = None
    requested_by: str | None = None


def read_request(breadcrumb: Breadcrumb) -> ContextRequest:
    """Parse a request. Raises InvalidInput with the name of the field."""
    spelled = {"requestId": "request_id", "requestedBy": "requested_by"}
    context = {spelled.get(name, name): value for name, value in breadcrumb.context.items()}
    try:
        found = msgspec.convert(context, ContextRequest)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, ContextRequest, "context") from None
    check_tags(found.reply_tags)
    return found


async def answer_request(builder: ContextBuilder, trail: Trail, request: Breadcrumb, *, by: Principal) -> ContextDraft:
    """Build the requested context, with the requested tags. Raises InvalidInput, and NotFound if the trigger was
    deleted."""
    asked = read_request(request)
    trigger = request if asked.trigger_event_id is None else await trail.records.get(asked.trigger_event_id, by=by)
    return await builder.build(trigger, _as_agent(asked), by=by, reply_tags=(*asked.reply_tags, *request.session_tags))


def _as_agent(asked: ContextRequest) -> AgentDefinition:
    """Convert a request to an agent definition with only these sources."""
    always = tuple(
        AlwaysSource(
            schema_name=each.schema,
            method=each.method,
            limit=each.limit,
            optional=each.optional,
            section=each.section,
        )
        for each in asked.sources
    )
    sources = ContextSources(
        always=always,
        semantic=SemanticSource(enabled=False),
        session=SessionSource(enabled=False),
        graph=GraphSource(enabled=asked.hops > 0, hops=asked.hops),
        tokens=asked.tokens,
    )
    return AgentDefinition(agent_id=asked.consumer_id, model=asked.model, context_sources=sources)
