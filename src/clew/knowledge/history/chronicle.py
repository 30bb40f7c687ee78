"""The chronicle: entries written in a session, read with what other sessions promoted. Nothing here needs a model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.history.entries import (
    EVERY_ENTRY,
    NO_SESSION,
    NODE_TYPES,
    PROMOTED,
    ArchiveQuery,
    Category,
    Entry,
    PromotedBecause,
    build_selector,
    check_category,
    to_entry,
)
from clew.knowledge.neighbours import link_in_order
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Breadcrumb, Change
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import DEFAULT_TRUST, NodeFields, NodeGraph
from clew.trail.query import SearchRequest
from clew.trail.selector import Selector
from clew.trail.store import Trail

MAX_NAME = 120
_PAGE = 200
_LOOKED_BACK = 100
"""So many entries that were written at the same time are looked through for the one before."""


class Chronicle:
    """What one principal writes and reads in one session. Calls raise what the trail raises."""

    def __init__(
        self, trail: Trail, by: Principal, session_id: str, clock: Clock, firewall: Firewall | None = None
    ) -> None:
        if not session_id.strip():
            raise InvalidInput("session_id", "is empty", hint="Every entry belongs to a session")
        self._trail, self._by, self._clock, self._firewall = trail, by, clock, firewall
        self.session_id = session_id

    async def store(
        self,
        content: str,
        category: str,
        title: str = "",
        *,
        source: str = "",
        tags: Sequence[str] = (),
        trust: int = DEFAULT_TRUST,
        said_by: SourceKind = SourceKind.LLM_INFERENCE,
    ) -> Entry:
        """Write an entry of this session. What looks like a key is masked. Raises InvalidInput for a category that
        there is not, and for an entry without content. Behind a firewall its check decides the trust."""
        entry = NewEntry(
            content=content,
            category=check_category(category),
            session_id=self.session_id,
            title=title,
            source=source,
            metadata={"tags": list(tags)},
            trust=trust,
            said_by=said_by,
        )
        return await write_entry(self._trail, self._by, entry, self._firewall)

    async def query(self, query: ArchiveQuery = EVERY_ENTRY) -> list[Entry]:
        """Entries that are meant: best first where there is a text to search for, else newest first."""
        selector = build_selector(query, self.session_id)
        if query.search_text.strip():
            request = SearchRequest(text=query.search_text, selector=selector, limit=query.limit)
            return [to_entry(hit.breadcrumb) for hit in (await self._trail.index.search(request, by=self._by)).hits]
        return [to_entry(found) for found in await list_all(self._trail, selector, self._by, query.limit)]

    async def cross_session_query(
        self,
        search: str = "",
        *,
        session_ids: Sequence[str] = (),
        exclude_current: bool = False,
        category: str = "all",
        limit: int = 50,
    ) -> list[Entry]:
        """Entries of all sessions, or of those that are named, without the own one where asked."""
        return await self.query(
            ArchiveQuery(
                search_text=search,
                categories=() if category == "all" else (check_category(category),),
                session_ids=session_ids,
                exclude_sessions=(self.session_id,) if exclude_current else (),
                cross_session=True,
                limit=limit,
            )
        )

    async def promote_pattern(self, id: str) -> Entry:
        """Let all sessions read a pattern of one. Raises InvalidInput for an entry of another category."""
        entry = to_entry(await self._get(id))
        if entry.category is not Category.PATTERN:
            raise InvalidInput("id", f"{id} is a {entry.category}, not a pattern", hint="Promote it with `promote`")
        return await self.promote(id)

    async def promote(self, id: str, because: PromotedBecause = "user") -> Entry:
        """Let all sessions read an entry; who did it, when and why stays with it. Doing it again changes nothing."""
        found = await self._get(id)
        if PROMOTED in found.tags:
            return to_entry(found)
        mark = {"by": self._by.agent_id, "at": self._clock.now().isoformat(), "because": because}
        return await self._mark(found, mark, (*found.tags, PROMOTED))

    async def take_back(self, id: str) -> Entry:
        """Undo a promotion: the entry is read by its own session only."""
        found = await self._get(id)
        return await self._mark(found, None, tuple(tag for tag in found.tags if tag != PROMOTED))

    async def _mark(self, found: Breadcrumb, mark: dict[str, Any] | None, tags: Sequence[str]) -> Entry:
        metadata = {**found.context["metadata"], "promoted": mark}
        change = Change(context={**found.context, "metadata": metadata}, tags=tags)
        return to_entry(await self._trail.records.update(found.id, change, expect=found.version, by=self._by))

    async def _get(self, id: str) -> Breadcrumb:
        found = await self._trail.records.get(id, by=self._by)
        if "category" not in found.context:
            raise NotFound("entry", id)
        return found


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to be written. `said_by` is who claims it, `files` are paths that it names; a firewall looks at both."""

    content: str
    category: Category
    session_id: str
    title: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = {}
    trust: int = DEFAULT_TRUST
    said_by: SourceKind = SourceKind.LLM_INFERENCE
    files: Sequence[str] = ()


async def write_entry(trail: Trail, by: Principal, entry: NewEntry, firewall: Firewall | None = None) -> Entry:
    """Write one entry with its vector, through the firewall where there is one, and link it to the one before it in
    its session. The title is the beginning of the content where none is given. Raises InvalidInput for an entry without
    content or session."""
    if not entry.content.strip():
        raise InvalidInput("content", "is empty")
    if not entry.session_id.strip():
        raise InvalidInput("session_id", "is empty", hint="Every entry belongs to a session")
    content = mask_keys(entry.content)
    name = inline(mask_keys(entry.title) or content, MAX_NAME) or entry.category.value
    node_type = NODE_TYPES.get(entry.category, NodeType.HISTORY_ENTRY)
    fields: NodeFields = {
        "session_id": entry.session_id,
        "category": entry.category.value,
        "source": entry.source or by.agent_id,
        "metadata": {**entry.metadata, "session": entry.session_id},
        "trust": entry.trust,
    }
    if firewall is None:
        node = await NodeGraph(trail, by).add_node(name, NodeDomain.HISTORY, node_type, content, **fields)
    else:
        node, _ = await firewall.store(
            name, content, files=entry.files, said_by=entry.said_by, node_type=node_type, **fields
        )
    await _follow(trail, node.id, entry.session_id, by)
    return to_entry(await trail.records.get(node.id, by=by))


async def _follow(trail: Trail, id: str, session_id: str, by: Principal) -> None:
    """Link an entry to the one that was written before it in its session. Who is in no session follows nobody."""
    before = await _entry_before(trail, id, session_id, by) if session_id != NO_SESSION else None
    if before is not None:
        with contextlib.suppress(NotFound):  # it was removed meanwhile
            await link_in_order(trail, [before, id], by=by)


async def _entry_before(trail: Trail, id: str, session_id: str, by: Principal) -> str | None:
    """The entry right before this one, whatever others write meanwhile."""
    selector = build_selector(ArchiveQuery(current_only=True), session_id)
    cursor, is_passed = None, False
    for _ in range(_LOOKED_BACK):
        page = await trail.records.list(selector, by=by, limit=2, cursor=cursor)
        for each in page.items:
            if is_passed:
                return each.id
            is_passed = each.id == id
        cursor = page.cursor
        if cursor is None:
            break
    return None


async def list_all(
    trail: Trail, selector: Selector, by: Principal, limit: int, *, oldest_first: bool = False
) -> list[Breadcrumb]:
    """Up to `limit` breadcrumbs, page by page, in order of creation."""
    found: list[Breadcrumb] = []
    cursor: str | None = None
    while len(found) < limit:
        size = min(_PAGE, limit - len(found))
        page = await trail.records.list(selector, by=by, limit=size, cursor=cursor, oldest_first=oldest_first)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    return found
