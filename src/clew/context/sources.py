"""Sources of a context: the trigger, records that an agent always gets, records close in meaning, records that the
trigger points at, and the last turns of the session. The runners read their subscriptions through `fetch` as well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Protocol

import msgspec

from clew.access import Principal
from clew.context.definition import AlwaysSource, ContextSources, Fetch, SemanticSource, SessionSource
from clew.context.relevance import (
    LEAST_CLOSE,
    LEAST_SAID,
    SAME,
    ContextQuestion,
    find_closest,
    is_meant,
    question_of,
    similarity,
)
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.query import Hit
from clew.trail.model.readable import tag_kind
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

LIMITS = {"event_data": 1, "latest": 1, "recent": 10, "vector": 10, "all": 50}
"""Default limits by method."""
MAX_POINTERS = 8
TAGGED = 5
"""The number of newest records with a pointer of the trigger that become seeds."""
ALWAYS_COST, POINTER_COST, STEP_BACK = 1.0, 0.5, 0.1
"""The costs of starting a walk at an always source, at a record with a shared pointer, and per step back in a session.
Paths from the trigger itself cost less."""

SAID = 5
"""The number of messages and answers of other sessions that become seeds."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = timedelta(microseconds=1)


class SourceQuery(Protocol):
    """A source to read: a selector, and the way to read it. `Subscription` implements it."""

    @property
    def selector(self) -> Selector: ...

    @property
    def fetch(self) -> Fetch: ...


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb that a source found. `similarity` is from 0 to 1, None if it was not measured. `cost` is the cost of
    starting a walk there. `repeats` is the id of a breadcrumb with the same text, or empty."""

    breadcrumb: Breadcrumb
    origin: str
    reason: str
    similarity: float | None = None
    cost: float = 0.0
    section: str = ""
    repeats: str = ""


class MissingSource(msgspec.Struct, frozen=True, kw_only=True):
    """A required source without any record."""

    source: str
    reason: str


class _SourceRead(msgspec.Struct, frozen=True):
    selector: Selector
    fetch: Fetch


async def fetch(trail: Trail, wanted: SourceQuery, trigger: Breadcrumb, *, by: Principal) -> list[Breadcrumb]:
    """Read the breadcrumbs of a subscription by its method. `event_data` reads only the trigger, `latest` the newest
    match, `recent` the newest few (oldest first), `all` the oldest few in order, and `vector` the closest to the
    trigger, which is left out."""
    return [found for found, _ in await _fetch(trail, wanted, trigger, by)]


async def _fetch(
    trail: Trail, wanted: SourceQuery, trigger: Breadcrumb, by: Principal
) -> list[tuple[Breadcrumb, float | None]]:
    method, limit = wanted.fetch.method, wanted.fetch.limit or LIMITS[wanted.fetch.method]
    if method == "event_data":
        return [(trigger, None)]
    if method == "vector":
        hits = await find_closest(trail, wanted.selector, question_of(trigger), limit, without=trigger.id, by=by)
        return [(hit.breadcrumb, similarity(hit)) for hit in hits]
    count = 1 if method == "latest" else limit
    page = await trail.records.list(wanted.selector, by=by, limit=count, oldest_first=method == "all")
    items = page.items if method == "all" else reversed(page.items)
    return [(item, None) for item in items]


async def find_always(
    trail: Trail, sources: Sequence[AlwaysSource], trigger: Breadcrumb, *, by: Principal
) -> tuple[list[Seed], list[MissingSource]]:
    """Return the records of the sources, in order, and the required sources without records."""
    seeds: list[Seed] = []
    missing: list[MissingSource] = []
    for source in sources:
        name = source.schema_name if source.type == "schema" else source.tag
        wanted = _selector_of(source, trigger)
        fetched = _SourceRead(wanted, Fetch(method=source.method, limit=source.limit)) if wanted is not None else None
        found = await _fetch(trail, fetched, trigger, by) if fetched is not None else []
        if not found and not source.optional:
            missing.append(MissingSource(source=name, reason=f"the trail has no record of {source.type} {name}"))
        reason = f"{source.method} of {source.type} {name}, a fixed source of the agent"
        seeds += [
            Seed(
                breadcrumb=each,
                origin="always",
                reason=reason,
                similarity=1.0 if similarity is None else similarity,
                cost=ALWAYS_COST,
                section=source.section,
            )
            for each, similarity in found
        ]
    return seeds, missing


def _selector_of(source: AlwaysSource, trigger: Breadcrumb) -> Selector | None:
    """Return the selector of a source; None if it depends on tags that the trigger does not have. A tag that ends with
    `:*` means the tags of the trigger with that prefix."""
    session = trigger.session if source.session else None
    if source.session and session is None:
        return None
    if source.type == "schema":
        return Selector(schema_name=source.schema_name, session=session)
    if not source.tag.endswith(":*"):
        return Selector(all_tags=(source.tag,), session=session)
    own = tuple(tag for tag in trigger.tags if tag.startswith(source.tag[:-1]))
    return Selector(any_tags=own, session=session) if own else None


async def find_similar(
    trail: Trail,
    source: SemanticSource,
    trigger: Breadcrumb,
    machinery: Sequence[str],
    *,
    question: ContextQuestion,
    flow: Flow,
    by: Principal,
) -> list[Seed]:
    """Return the hits of hybrid search for the trigger, closest first. For a message, hits of other sessions follow,
    unless the source includes them. A question without content words has no hits."""
    if not source.enabled or not question.words:
        return []
    said = (flow.message, flow.answer)
    selector = Selector(schema_names=source.schemas, except_schemas=() if source.schemas else tuple(machinery))
    wanted = [(selector, source.limit)]
    elsewhere = Selector(schema_names=tuple(name for name in said if name not in source.schemas))
    if source.schemas and elsewhere.schema_names and trigger.schema_name == flow.message:
        wanted.append((elsewhere, SAID))
    hits = await asyncio.gather(
        *(find_closest(trail, each, question, limit, without=trigger.id, by=by) for each, limit in wanted)
    )
    return [
        _similar(hit, source, trigger, is_message=hit.breadcrumb.schema_name == flow.message)
        for hit in chain(*hits)
        if similarity(hit) >= (LEAST_SAID if hit.breadcrumb.schema_name in said else LEAST_CLOSE)
        and is_meant(hit, question)
    ]


def _similar(hit: Hit, source: SemanticSource, trigger: Breadcrumb, *, is_message: bool) -> Seed:
    close = similarity(hit)
    return Seed(
        breadcrumb=hit.breadcrumb,
        origin="semantic",
        reason=f"{close:.2f} close to the trigger in words and meaning",
        similarity=close,
        cost=1.0 - close,
        section=source.section,
        repeats=trigger.id if is_message and (hit.vector_score or 0.0) >= SAME else "",
    )


async def find_pointed(trail: Trail, trigger: Breadcrumb, machinery: Sequence[str], *, by: Principal) -> list[Seed]:
    """Return the breadcrumbs whose ids the trigger contains, and the newest ones with its pointer tags."""
    found = [
        Seed(breadcrumb=each, origin="pointer", reason=f"the trigger names it as {field}", similarity=1.0)
        for field, each in await find_named(trail, trigger, by=by)
        if each.schema_name not in machinery
    ]
    tags = tuple(tag for tag in trigger.tags if tag_kind(tag) == "pointer")
    if tags:
        selector = Selector(any_tags=tags, except_schemas=tuple(machinery), created_before=until(trigger.updated_at))
        page = await trail.records.list(selector, by=by, limit=TAGGED + 1)
        found += [_tagged(each, tags) for each in page.items if each.id != trigger.id]
    return found


def _tagged(breadcrumb: Breadcrumb, tags: Sequence[str]) -> Seed:
    shared = ", ".join(tag for tag in tags if tag in breadcrumb.tags)
    return Seed(breadcrumb=breadcrumb, origin="pointer", reason=f"shares the pointer {shared}", cost=POINTER_COST)


async def find_named(trail: Trail, breadcrumb: Breadcrumb, *more: str, by: Principal) -> list[tuple[str, Breadcrumb]]:
    """Return the breadcrumbs whose ids a context contains, each with the field that has the id, at most MAX_POINTERS.
    The breadcrumbs with the ids `more` follow, without a field."""
    named: dict[str, str] = {}
    for field, id in _ids_in(breadcrumb.context):
        if id != breadcrumb.id:
            named.setdefault(id, field)
    given = [id for id in more if id and id != breadcrumb.id and id not in named]
    known = await trail.records.find_many([*named, *given], by=by) if named or given else {}
    found = [(named[id], known[id]) for id in named if id in known][:MAX_POINTERS]
    return [*found, *(("", known[id]) for id in given if id in known)]


def _ids_in(context: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield fields whose value is an id, at the top level and one level below; at most 4 × MAX_POINTERS."""
    left = 4 * MAX_POINTERS
    for key, value in context.items():
        inner = value.items() if isinstance(value, dict) else ((None, value),)
        for name, each in inner:
            if isinstance(each, str) and _ID.fullmatch(each):
                yield (f"{key}.{name}" if name else key), each
                left -= 1
            if not left:
                return


async def find_session(
    trail: Trail, source: SessionSource, trigger: Breadcrumb, machinery: Sequence[str], flow: Flow, *, by: Principal
) -> list[Seed]:
    """Return the newest messages and tool results of the session before the trigger, oldest first. Intermediate answers
    of models are left out, because the final answer has their content."""
    if not source.enabled or trigger.session is None:
        return []
    selector = Selector(
        session=trigger.session,
        schema_names=source.schemas,
        except_schemas=() if source.schemas else tuple(each for each in machinery if each != flow.response),
        created_before=until(trigger.updated_at),
        context_match=(ContextMatch(path="tool", op="ne", value=flow.model_tool),),
    )
    page = await trail.records.list(selector, by=by, limit=source.limit + 1)
    found = [each for each in page.items if each.id != trigger.id][: source.limit]
    return [
        Seed(
            breadcrumb=each,
            origin="session",
            reason=f"said {back} before the trigger in its session",
            cost=STEP_BACK * back,
            section=source.section,
        )
        for back, each in reversed(list(enumerate(found, 1)))
    ]


def until(moment: datetime) -> datetime:
    """Return the first moment after this one, as an exclusive upper bound."""
    return moment + _INSTANT


async def find_seeds(
    trail: Trail,
    sources: ContextSources,
    trigger: Breadcrumb,
    machinery: Sequence[str],
    *,
    question: ContextQuestion,
    flow: Flow,
    by: Principal,
) -> tuple[list[Seed], list[MissingSource]]:
    """Return all seeds: the trigger, fixed sources, pointers, the session, similar breadcrumbs. The first duplicate in
    this order wins."""
    first = Seed(breadcrumb=trigger, origin="trigger", reason="it is the trigger", similarity=1.0)
    similar, (always, missing), pointed, said = await asyncio.gather(
        find_similar(trail, sources.semantic, trigger, machinery, question=question, flow=flow, by=by),
        find_always(trail, sources.always, trigger, by=by),
        find_pointed(trail, trigger, machinery, by=by),
        find_session(trail, sources.session, trigger, machinery, flow, by=by),
    )
    return [first, *always, *pointed, *said, *similar], missing
