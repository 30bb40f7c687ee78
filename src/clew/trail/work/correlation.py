"""Matches responses to requests. The ids live in the records, so that a restart loses none.

`request_id` and `requested_by` are the names; `requestId` and `requestedBy` are understood as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.access import Principal
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, check_tags
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

REQUEST_TAG = "request:"
CONSUMER_TAG = "consumer:"
RUN_TAG = "run:"
"""The run that a record belongs to, named by the id of the record that triggered it."""
HOP_TAG = "hop:"
"""The number of runs between a run and the first run of its chain; 0 for a run that no other run started."""
ROOT_TAG = "root:"
"""The first run of the chain of runs."""
LANE_TAG = "lane:"
"""The lane of a run in the queues of calls. A run without this tag is in the lane of the user."""

PLACE_TAG = "worker-place:"
"""The place whose workers call the tools of a run. Without this tag, any worker may call them. Only Clew sets this
tag."""
TRACE_TAG = "traceparent:"
"""The trace that a run belongs to, as a W3C `traceparent`. A run without one has a trace of its own."""

_LASTING = ("session:", LANE_TAG, PLACE_TAG, TRACE_TAG)
_INHERITED = (*_LASTING, RUN_TAG, HOP_TAG, ROOT_TAG)


def find_request_id(breadcrumb: Breadcrumb) -> str | None:
    """The id that a request and its responses share: from the context, else from a `request:` tag."""
    return _find_text(breadcrumb, "request_id", "requestId") or next(
        (tag.removeprefix(REQUEST_TAG) for tag in breadcrumb.tags if tag.startswith(REQUEST_TAG)), None
    )


def find_requester(breadcrumb: Breadcrumb) -> str | None:
    """The requester, as the request names it."""
    return _find_text(breadcrumb, "requested_by", "requestedBy")


def run_tag(trigger_id: str) -> str:
    """The tag of the run that a breadcrumb started."""
    return RUN_TAG + trigger_id


def find_run(breadcrumb: Breadcrumb) -> str | None:
    """The id of the run that a breadcrumb is part of."""
    return next((tag.removeprefix(RUN_TAG) for tag in breadcrumb.tags if tag.startswith(RUN_TAG)), None)


def inherited_tags(breadcrumb: Breadcrumb) -> tuple[str, ...]:
    """The tags that all records which follow from a breadcrumb inherit: its session, its run, the origin of the run,
    its lane, its place and its trace."""
    return tuple(tag for tag in breadcrumb.tags if tag.startswith(_INHERITED))


def lasting_tags(breadcrumb: Breadcrumb) -> tuple[str, ...]:
    """The inherited tags that a run which the breadcrumb starts inherits too: all except those of the breadcrumb's own
    run."""
    return tuple(tag for tag in breadcrumb.tags if tag.startswith(_LASTING))


def find_hop(breadcrumb: Breadcrumb) -> int:
    """The number of runs before the run of a breadcrumb."""
    numbers = [tag.removeprefix(HOP_TAG) for tag in breadcrumb.tags if tag.startswith(HOP_TAG)]
    return max((int(each) for each in numbers if each.isdecimal() and len(each) < 10), default=0)


def find_root(breadcrumb: Breadcrumb) -> str:
    """The first run in the chain of runs that led to a breadcrumb. This is its own id if it starts the chain."""
    named = next((tag.removeprefix(ROOT_TAG) for tag in breadcrumb.tags if tag.startswith(ROOT_TAG)), "")
    return named or find_run(breadcrumb) or breadcrumb.id


def is_of_another_run(trigger: Breadcrumb) -> bool:
    """Whether a breadcrumb that starts a run was itself produced by another run."""
    return find_run(trigger) not in (None, trigger.id)


def next_hop(trigger: Breadcrumb) -> int:
    """The hop of the run that a breadcrumb would begin."""
    return find_hop(trigger) + is_of_another_run(trigger)


def hop_tags(trigger: Breadcrumb) -> tuple[str, ...]:
    """The additional tags of all records of a run that another run started. Empty for other runs."""
    hop = next_hop(trigger)
    return (f"{HOP_TAG}{hop}", ROOT_TAG + find_root(trigger)) if hop else ()


def reply_tags(request: Breadcrumb) -> tuple[str, ...]:
    """The tags that route a response back: the session, the run, the request and the requester. A name that cannot be a
    tag is left out."""
    request_id, requester = find_request_id(request), find_requester(request)
    back = (
        *((REQUEST_TAG + request_id,) if request_id else ()),
        *((CONSUMER_TAG + requester,) if requester else ()),
    )
    return (*inherited_tags(request), *(tag for tag in back if is_tag(tag)))


def own_tags(tags: Iterable[str]) -> list[str]:
    """The tags among these that only Clew sets."""
    return [tag for tag in tags if tag.startswith(PLACE_TAG)]


def refuse_own_tags(tags: Iterable[str]) -> None:
    """Raise InvalidInput for the tag that only Clew may set, because it decides where tools run. Interfaces for users
    call this."""
    if own_tags(tags):
        hint = "Name the place of a conversation when you send the message"
        raise InvalidInput("tags", f"{PLACE_TAG} is set by Clew only", hint=hint)


def is_tag(text: str) -> bool:
    """Whether a text can be a tag."""
    try:
        check_tags((text,))
    except InvalidInput:
        return False
    return True


async def find_request(
    trail: Trail, request_id: str, *, by: Principal, schema_name: str = "tool.request.v1"
) -> Breadcrumb | None:
    """The oldest request of a schema with that id, as tag or in its context."""
    return next(iter(await find_requests(trail, request_id, by=by, schema_name=schema_name)), None)


async def find_requests(trail: Trail, request_id: str, *, by: Principal, schema_name: str) -> list[Breadcrumb]:
    """Return the oldest request that has an id as its tag, and the oldest for each spelling in the context. All are
    found through an index."""
    selectors = (
        Selector(schema_name=schema_name, all_tags=(REQUEST_TAG + request_id,)),
        Selector(schema_name=schema_name, context_match=(ContextMatch(path="request_id", value=request_id),)),
        Selector(schema_name=schema_name, context_match=(ContextMatch(path="requestId", value=request_id),)),
    )
    pages = [await trail.records.list(each, by=by, limit=1, oldest_first=True) for each in selectors]
    return [record for page in pages for record in page.items]


def _find_text(breadcrumb: Breadcrumb, *names: str) -> str | None:
    for name in names:
        if isinstance(value := breadcrumb.context.get(name), str) and value:
            return value
    return None
