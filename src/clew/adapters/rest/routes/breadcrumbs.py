"""Routes of breadcrumbs: write, read, list, search, history."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.exceptions import HTTPException

from clew.adapters.rest.operation import EmptyReply, RequestHeader, RestAnswer, RestCall, RestOperation, reply
from clew.adapters.rest.parsing import parse_if_match, parse_text, parse_version
from clew.adapters.rest.selector_query import SelectorQuery
from clew.errors import AlreadyExists, Conflict
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, Ttl, View, check_key
from clew.trail.model.query import MAX_LIMIT, Ranking, SearchRequest, SearchResult
from clew.trail.store import VersionInfo
from clew.trail.work.correlation import own_tags, refuse_own_tags

Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="At most this many")]


class NewBreadcrumb(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A breadcrumb to write. `ttl` may be a time alone, which means that it ends then."""

    ttl: Ttl | datetime | None = None  # type: ignore[assignment]  # wider than a draft's; as_draft narrows it


class NewVersion(Change, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that the next version replaces; an absent field stays as it is."""

    ttl: Ttl | datetime | UnsetType = UNSET  # type: ignore[assignment]  # wider, as in NewBreadcrumb


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Breadcrumbs that are written in one transaction: all or none."""

    items: list[NewBreadcrumb]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The breadcrumbs that a batch wrote, in the order given."""

    items: list[Breadcrumb]


class VersionList(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that are kept, oldest first."""

    items: Sequence[VersionInfo]


class ListQuery(SelectorQuery, frozen=True, kw_only=True):
    limit: Limit = 50
    cursor: Annotated[str | None, Meta(description="The cursor from the previous page")] = None
    order: Literal["newest", "oldest"] = "newest"


class SearchQuery(SelectorQuery, frozen=True, kw_only=True):
    q: Annotated[str, Meta(description="The search text: plain words or an exact name")]
    limit: Limit = 10
    ranking: Ranking = "default"


class FullQuery(msgspec.Struct, frozen=True, kw_only=True):
    vector: Annotated[bool, Meta(description="Whether to include the embedding")] = False


async def create(call: RestCall) -> RestAnswer:
    draft = as_draft(call.body)
    _check_drafts(call, [draft])
    key = parse_text(call.headers, "idempotency-key")
    if key is not None:
        draft = msgspec.structs.replace(draft, idempotency_key=key)
    written = await call.trail.records.create(_with_own_key(call, draft), by=call.by)
    location = (b"location", b"/breadcrumbs/" + written.id.encode())
    return reply(written, status=201, headers=(location, etag(written.version)))


async def create_batch(call: RestCall) -> RestAnswer:
    drafts = [_with_own_key(call, as_draft(each)) for each in call.body.items]
    _check_drafts(call, drafts)
    return reply(Written(items=await call.trail.records.create_many(drafts, by=call.by)), status=201)


def _check_drafts(call: RestCall, drafts: Sequence[Draft]) -> None:
    """Raise AccessDenied for a chosen id if the caller may not choose ids, because Clew finds some of its own records
    by id. Raise InvalidInput for a tag that only Clew sets."""
    for draft in drafts:
        refuse_own_tags(draft.tags)
    if any(draft.id is not None for draft in drafts):
        call.by.require_id_choice()


def _with_own_key(call: RestCall, draft: Draft) -> Draft:
    """The draft with an idempotency key that only this agent can use. Clew and curators use their keys unchanged.
    Otherwise another caller could use one of their keys, or get the record behind it."""
    key = check_key(draft.idempotency_key)
    if key is None or call.by.may("administer"):
        return draft
    digest = hashlib.blake2b(f"{call.by.agent_id}\0{key}".encode(), digest_size=16).hexdigest()
    return msgspec.structs.replace(draft, idempotency_key=f"caller/{digest}")


async def list_page(call: RestCall) -> RestAnswer:
    asked: ListQuery = call.query
    page = await call.trail.records.list(
        asked.selector(),
        by=call.by,
        limit=asked.limit,
        cursor=asked.cursor,
        oldest_first=asked.order == "oldest",
    )
    return reply(page)


async def search_by_query(call: RestCall) -> RestAnswer:
    asked: SearchQuery = call.query
    request = SearchRequest(text=asked.q, selector=asked.selector(), limit=asked.limit, ranking=asked.ranking)
    return reply(await call.trail.index.search(request, by=call.by))


async def search(call: RestCall) -> RestAnswer:
    return reply(await call.trail.index.search(call.body, by=call.by))


async def read(call: RestCall) -> RestAnswer:
    view = await call.trail.records.read(call.path["id"], by=call.by)
    return reply(view, headers=(etag(view.version),))


async def get_full(call: RestCall) -> RestAnswer:
    found = await call.trail.records.get(call.path["id"], by=call.by, vector=call.query.vector)
    return reply(found, headers=(etag(found.version),))


async def get_history(call: RestCall) -> RestAnswer:
    return reply(VersionList(items=await call.trail.records.history(call.path["id"], by=call.by)))


async def get_version(call: RestCall) -> RestAnswer:
    version = parse_version(call.path["n"], call.path["id"])
    found = await call.trail.records.get(call.path["id"], by=call.by, version=version)
    return reply(found, headers=(etag(found.version),))


async def update(call: RestCall) -> RestAnswer:
    expect = parse_if_match(call.headers)
    if expect is None:
        raise HTTPException(428, "an update needs the header If-Match with the version that it changes")
    change: NewVersion = call.body
    if change.tags is not UNSET and (own := own_tags(change.tags)):
        before = await call.trail.records.get(call.path["id"], by=call.by)  # sent back unchanged, they may stay
        refuse_own_tags(set(own).difference(before.tags))
    if isinstance(change.ttl, datetime):
        change = msgspec.structs.replace(change, ttl=_ends_at(change.ttl))
    written = await call.trail.records.update(call.path["id"], change, expect=expect, by=call.by)
    return reply(written, headers=(etag(written.version),))


async def delete(call: RestCall) -> RestAnswer:
    await call.trail.records.delete(call.path["id"], by=call.by, expect=parse_if_match(call.headers))
    return EmptyReply()


def as_draft(body: NewBreadcrumb) -> Draft:
    """The draft that the body means."""
    if isinstance(body.ttl, datetime):
        return msgspec.structs.replace(body, ttl=_ends_at(body.ttl))
    return body


def etag(version: int) -> tuple[bytes, bytes]:
    return (b"etag", b'"%d"' % version)


def _ends_at(moment: datetime) -> Ttl:
    return Ttl(kind="datetime", expires_at=moment)


_IF_MATCH = RequestHeader(
    name="If-Match", description='The version that was read, in quotes: "5"', pattern='^"[0-9]{1,18}"$'
)
_IF_MATCH_REQUIRED = RequestHeader(
    name="If-Match", description=_IF_MATCH.description, pattern=_IF_MATCH.pattern, required=True
)
_IDEMPOTENCY = RequestHeader(
    name="Idempotency-Key",
    description="A repeated create with the same key returns the record that the first one wrote",
    pattern="^[!-~]{1,300}$",
)

OPERATIONS = (
    RestOperation(
        method="POST",
        path="/breadcrumbs",
        handler=create,
        summary="Write a breadcrumb; it is durable when this answers",
        group="breadcrumbs",
        verb="create",
        writes=True,
        body=NewBreadcrumb,
        answer=Breadcrumb,
        status=201,
        headers=(_IDEMPOTENCY,),
        raises=(AlreadyExists,),
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs",
        handler=list_page,
        summary="List breadcrumbs by tags, schema, session, time, path or context",
        group="breadcrumbs",
        verb="read",
        query=ListQuery,
        answer=Page,
    ),
    RestOperation(
        method="POST",
        path="/breadcrumbs/batch",
        handler=create_batch,
        summary="Write many breadcrumbs in one transaction",
        group="breadcrumbs",
        verb="create",
        writes=True,
        body=Batch,
        answer=Written,
        status=201,
        raises=(AlreadyExists,),
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/search",
        handler=search_by_query,
        summary="Search by text",
        group="search",
        verb="read",
        query=SearchQuery,
        answer=SearchResult,
    ),
    RestOperation(
        method="POST",
        path="/breadcrumbs/search",
        handler=search,
        summary="Search by text, vector or both, with filters, ranking and field weights",
        group="search",
        verb="read",
        body=SearchRequest,
        answer=SearchResult,
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/{id}",
        handler=read,
        summary="Read a breadcrumb as a model should see it, with its llm_hints applied",
        group="breadcrumbs",
        verb="read",
        writes=True,
        answer=View,
    ),
    RestOperation(
        method="PATCH",
        path="/breadcrumbs/{id}",
        handler=update,
        summary="Write the next version of a breadcrumb",
        group="breadcrumbs",
        verb="update",
        writes=True,
        body=NewVersion,
        answer=Breadcrumb,
        headers=(_IF_MATCH_REQUIRED,),
        raises=(Conflict,),
        refuses=(428,),
    ),
    RestOperation(
        method="DELETE",
        path="/breadcrumbs/{id}",
        handler=delete,
        summary="Delete a breadcrumb with its versions, vector and edges",
        group="breadcrumbs",
        verb="delete",
        writes=True,
        status=204,
        headers=(_IF_MATCH,),
        raises=(Conflict,),
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/{id}/full",
        handler=get_full,
        summary="Read a breadcrumb as it is stored",
        group="breadcrumbs",
        verb="read",
        query=FullQuery,
        answer=Breadcrumb,
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/{id}/history",
        handler=get_history,
        summary="List the versions of a breadcrumb",
        group="breadcrumbs",
        verb="read",
        answer=VersionList,
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/{id}/versions/{n}",
        handler=get_version,
        summary="Read one version of a breadcrumb as it was stored",
        group="breadcrumbs",
        verb="read",
        answer=Breadcrumb,
    ),
)
