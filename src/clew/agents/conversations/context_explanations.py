"""Explanations and previews of contexts: why a context contains each breadcrumb, and which context a message would
get."""

from __future__ import annotations

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations, check_message
from clew.agents.conversations.sessions import message_draft
from clew.clock import Clock
from clew.context.builder import ContextBuilder
from clew.context.draft import ContextDraft
from clew.context.receipts import Explanation, ItemExplanation, explain, explain_item
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.prepare import SchemaRules, as_breadcrumb, prepare_draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_run, run_tag


async def explain_context(
    trail: Trail, flow: Flow, id: str, *, by: Principal, item: str | None = None
) -> Explanation | ItemExplanation:
    """The receipt of a context; with `item`, the reason why that breadcrumb is or is not in the context. `id` is the id
    of the context, or of any breadcrumb of its run. Raises NotFound, and InvalidInput for a context without a
    receipt."""
    record = await trail.records.get(id, by=by)
    if record.schema_name != flow.context:
        record = await _context_of(trail, flow, record, by)
    return explain(record) if item is None else explain_item(record, item)


async def _context_of(trail: Trail, flow: Flow, record: Breadcrumb, by: Principal) -> Breadcrumb:
    """The first context of the run that a breadcrumb is part of."""
    tag = run_tag(find_run(record) or record.id)
    selector = Selector(schema_name=flow.context, all_tags=(tag,))
    page = await trail.records.list(selector, by=by, limit=1, oldest_first=True)
    if not page.items:
        raise NotFound("context", record.id)
    return page.items[0]


async def preview_context(
    builder: ContextBuilder,
    conversations: Conversations,
    clock: Clock,
    text: str,
    *,
    by: Principal,
    agent: str,
    session: str | None = None,
) -> ContextDraft:
    """The context that the agent's model would see for a message if it were sent now. Nothing is written. Raises
    InvalidInput, NotFound."""
    by.require("read")
    check_message(text)
    definition = await conversations.find_agent(agent, by=by)
    if session is not None:
        await conversations.sessions.first(session, by=by)
    id, now = clock.new_id(), clock.now()
    sent = message_draft(
        conversations.flow, text, id=id, session=session or clock.new_id(), agent=agent, source="preview"
    )
    prepared = prepare_draft(sent, SchemaRules(), None, now, id)
    message = as_breadcrumb(prepared, owner_id=by.owner_id, agent_id=by.agent_id or None, now=now)
    return await builder.build(message, definition, by=by)
