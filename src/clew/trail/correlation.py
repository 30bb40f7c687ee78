"""Which response belongs to which request. The ids live in the records, so that a restart loses none.

`request_id` and `requested_by` are the names; `requestId` and `requestedBy` are understood as well.
"""

from __future__ import annotations

from clew.access import Principal
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

REQUEST_TAG = "request:"
CONSUMER_TAG = "consumer:"
RUN_TAG = "run:"
"""Names all that one trigger brings about, by the id of the trigger."""


def find_request_id(breadcrumb: Breadcrumb) -> str | None:
    """The id that a request and its responses share: from the context, else from a `request:` tag."""
    return _find_text(breadcrumb, "request_id", "requestId") or next(
        (tag.removeprefix(REQUEST_TAG) for tag in breadcrumb.tags if tag.startswith(REQUEST_TAG)), None
    )


def find_requester(breadcrumb: Breadcrumb) -> str | None:
    """Who asked, as the request says."""
    return _find_text(breadcrumb, "requested_by", "requestedBy")


def run_tag(trigger_id: str) -> str:
    """The tag of the run that a breadcrumb started."""
    return RUN_TAG + trigger_id


def find_run(breadcrumb: Breadcrumb) -> str | None:
    """The id of the run that a breadcrumb is part of."""
    return next((tag.removeprefix(RUN_TAG) for tag in breadcrumb.tags if tag.startswith(RUN_TAG)), None)


def inherited_tags(breadcrumb: Breadcrumb) -> tuple[str, ...]:
    """The tags that go over to all that follows from a breadcrumb: its session and its run."""
    return tuple(tag for tag in breadcrumb.tags if tag.startswith(("session:", RUN_TAG)))


def reply_tags(request: Breadcrumb) -> tuple[str, ...]:
    """The tags that lead a response back: the session, the run, the request and who asked."""
    request_id, requester = find_request_id(request), find_requester(request)
    return (
        *inherited_tags(request),
        *((REQUEST_TAG + request_id,) if request_id else ()),
        *((CONSUMER_TAG + requester,) if requester else ()),
    )


async def find_request(
    trail: Trail, request_id: str, *, by: Principal, schema_name: str = "tool.request.v1"
) -> Breadcrumb | None:
    """The oldest request of a schema with that id, as tag or in its context."""
    selectors = (
        Selector(schema_name=schema_name, all_tags=(REQUEST_TAG + request_id,)),
        Selector(schema_name=schema_name, context_match=(ContextMatch(path="request_id", value=request_id),)),
        Selector(schema_name=schema_name, context_match=(ContextMatch(path="requestId", value=request_id),)),
    )
    for selector in selectors:
        page = await trail.records.list(selector, by=by, limit=1, oldest_first=True)
        if page.items:
            return page.items[0]
    return None


def _find_text(breadcrumb: Breadcrumb, *names: str) -> str | None:
    for name in names:
        if isinstance(value := breadcrumb.context.get(name), str) and value:
            return value
    return None
