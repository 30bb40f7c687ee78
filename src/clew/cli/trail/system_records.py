"""Clew's own records on a trail: definitions, policies, reports, the catalog and steps of runs. Listings hide them."""

from __future__ import annotations

import msgspec

from clew.access import OWN_SCHEMAS, Principal
from clew.app import App
from clew.errors import NotFound
from clew.knowledge.nodes.node_store import SCHEMA as NODE_SCHEMA
from clew.trail.bootstrap import own_ids, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Page
from clew.trail.model.flow import Flow, read_flow, shipped_flow
from clew.trail.model.query import MAX_LIMIT, SearchRequest, SearchResult
from clew.trail.model.selector import Selector

SYSTEM = "system."
PAGE = 200
ROUNDS = 5
HIDDEN = "are hidden (definitions, catalog, steps of runs); --system shows them."


class SystemRecords:
    """Recognizes Clew's own breadcrumbs of an owner: records from the initial setup, the catalog, schemas `system.…`,
    steps of runs, and knowledge nodes, which have commands of their own."""

    def __init__(self, by: Principal, flow: Flow) -> None:
        self.ids = own_ids(by)
        self.steps = steps_of(flow)
        self.schemas = (*OWN_SCHEMAS, *self.steps, NODE_SCHEMA)

    def has(self, id: str, schema_name: str | None) -> bool:
        return id in self.ids or (schema_name or "").startswith(SYSTEM) or schema_name in self.schemas

    def leaves(self, breadcrumbs: tuple[Breadcrumb, ...]) -> tuple[Breadcrumb, ...]:
        """The breadcrumbs that are not Clew's own."""
        return tuple(each for each in breadcrumbs if not self.has(each.id, each.schema_name))

    def without(self, selector: Selector) -> Selector:
        """The selector, restricted to schemas that are not Clew's own."""
        return msgspec.structs.replace(selector, except_schemas=(*selector.except_schemas, *self.schemas))


def steps_of(flow: Flow) -> tuple[str, ...]:
    """The schemas of a flow that are steps of a run. Messages, definitions and results are not steps."""
    kept = {flow.message, flow.answer, flow.agent, flow.tool, flow.tool_config, flow.workflow, flow.workflow_result}
    kept |= {flow.stopped, flow.model_tool}
    return tuple(name for name in msgspec.structs.astuple(flow) if name not in kept)


async def read_system_records(app: App) -> SystemRecords:
    """The schemas of Clew's own records, by the names that the trail's flow has for them."""
    try:
        flow = await read_flow(app.trail, by=app.me)
    except NotFound:  # nothing has been set up there
        flow = shipped_flow(read_pieces())
    return SystemRecords(app.me, flow)


async def has_steps(app: App, selector: Selector) -> bool:
    """Whether the selector matches any steps of runs."""
    steps = msgspec.structs.replace(selector, schema_names=(await read_system_records(app)).steps)
    return bool((await app.trail.records.list(steps, by=app.me, limit=1)).items)


async def list_others(app: App, selector: Selector, *, limit: int, cursor: str | None, oldest_first: bool) -> Page:
    """One page of a listing without Clew's own records. Raises InvalidInput."""
    own = await read_system_records(app)
    selector = own.without(selector)
    kept: list[Breadcrumb] = []

    async def read(number: int) -> Page:
        return await app.trail.records.list(selector, by=app.me, limit=number, cursor=cursor, oldest_first=oldest_first)

    while True:
        wanted = limit - len(kept)
        page = await read(max(wanted, PAGE) if wanted > 0 else limit)
        others = own.leaves(page.items)
        if len(others) > wanted:
            # The cursor of a page is at its end, so the page has to end with the last one that is wanted.
            page = await read(page.items.index(others[wanted - 1]) + 1)
            others = own.leaves(page.items)
        kept += others
        cursor = page.cursor
        if cursor is None or len(kept) >= limit:
            return Page(items=tuple(kept), cursor=cursor)


async def describe_hidden(app: App, selector: Selector | None) -> str:
    """A sentence about Clew's own breadcrumbs that a listing leaves out, with their number if there is no selector;
    empty if there are none."""
    own = await read_system_records(app)
    if selector is None:
        by_schema = (await app.trail.upkeep.stats(by=app.me)).schemas
        number = sum(count for name, count in by_schema.items() if own.has("", name))
        set_up = await app.trail.records.find_many(sorted(own.ids), by=app.me)
        number += sum(not own.has("", each.schema_name) for each in set_up.values())
        return f"{number:,} breadcrumbs of Clew itself {HIDDEN}" if number else ""
    hidden = msgspec.structs.replace(selector, schema_names=own.schemas)
    found = (await app.trail.records.list(hidden, by=app.me, limit=1)).items
    return f"Breadcrumbs of Clew itself {HIDDEN}" if found else ""


async def search_others(app: App, request: SearchRequest) -> SearchResult:
    """The best breadcrumbs that are not Clew's own."""
    own = await read_system_records(app)
    request = msgspec.structs.replace(request, selector=own.without(request.selector))
    excluded = set(own.ids)
    for _ in range(ROUNDS):
        asked = msgspec.structs.replace(request, exclude=sorted(excluded)[:MAX_LIMIT])
        result = await app.trail.index.search(asked, by=app.me)
        found = {hit.breadcrumb.id for hit in result.hits if own.has(hit.breadcrumb.id, hit.breadcrumb.schema_name)}
        if not found:
            return result
        excluded |= found
    hits = tuple(hit for hit in result.hits if hit.breadcrumb.id not in excluded)
    return msgspec.structs.replace(result, hits=hits)
