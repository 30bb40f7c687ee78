"""Tools on the journal: entries of all categories, their scopes, promotion, and the summary of a session. They belong
to the domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.domains.code import OpenKnowledge
from clew.knowledge.domains.method_tool import method_tool
from clew.knowledge.domains.node_lines import WIDTH
from clew.knowledge.history.brief import entry_text, summarise_session
from clew.knowledge.history.entries import NO_SESSION, ArchiveQuery, Category, Moment, place_of_entry
from clew.knowledge.history.journal import Chronicle
from clew.knowledge.history.links import Limit
from clew.knowledge.nodes.node_store import Node
from clew.tools import Effects, Tool

WRITES = Effects(reaches_out=False)
MARKS = Effects(repeats_safely=True, reaches_out=False)
Scope = Literal["own_and_promoted", "current_only", "cross_session"]
Search = Annotated[str, msgspec.Meta(description="a text to search for; empty: the newest")]


def journal_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that write, find, share and sum up entries."""
    made = partial(method_tool, known, lambda knowledge, by: knowledge.chronicle(by, by.session or NO_SESSION))
    return (
        made(Chronicle.store, lambda entry: f"Stored as {entry.id} ({entry.category}).", effects=WRITES),
        made(query, entry_lines),
        made(cross_session_query, entry_lines),
        made(summarise_session, lambda brief: brief.text, name="session_summary"),
        made(Chronicle.promote_pattern, _promotion, effects=MARKS),
        made(Chronicle.promote, _promotion, effects=MARKS),
        made(Chronicle.take_back, _promotion, effects=MARKS),
    )


async def query(
    chronicle: Chronicle,
    search: Search = "",
    category: Category | None = None,
    scope: Annotated[
        Scope, msgspec.Meta(description="own entries and promoted ones of any session; only own ones; or all")
    ] = "own_and_promoted",
    promoted_only: bool = False,
    sources: Annotated[Sequence[str], msgspec.Meta(description="only of these writers")] = (),
    since: Moment = None,
    until: Moment = None,
    limit: Limit = 10,
) -> list[Node]:
    """List entries of the journal: best first with a search text, else newest first."""
    wanted = ArchiveQuery(
        search_text=search,
        categories=(category,) if category else (),
        current_only=scope == "current_only",
        cross_session=scope == "cross_session",
        promoted_only=promoted_only,
        sources=sources,
        since=since,
        until=until,
        limit=limit,
    )
    return await chronicle.query(wanted)


async def cross_session_query(
    chronicle: Chronicle,
    search: Search = "",
    session_ids: Annotated[Sequence[str], msgspec.Meta(description="only of these sessions; empty: of all")] = (),
    exclude_current: Annotated[bool, msgspec.Meta(description="leave out the own session")] = False,
    category: Category | None = None,
    limit: Limit = 10,
) -> list[Node]:
    """List entries of other sessions."""
    wanted = ArchiveQuery(
        search_text=search,
        categories=(category,) if category else (),
        session_ids=session_ids,
        exclude_sessions=(chronicle.session_id,) if exclude_current else (),
        cross_session=True,
        limit=limit,
    )
    return await chronicle.query(wanted)


def _promotion(entry: Node) -> str:
    mark = entry.metadata.get("promoted")
    return (
        f"{entry.id} is promoted for all sessions, by {mark['by']}." if mark else f"{entry.id} is no longer promoted."
    )


def entry_lines(found: Sequence[Node]) -> str:
    """Entries of the journal, a line each."""
    return "\n".join(map(_line, found)) or "No entry fits."


def _line(entry: Node) -> str:
    promoted = ", promoted" if entry.metadata.get("promoted") else ""
    where = f"session {inline(entry.session_id or NO_SESSION, WIDTH)}{promoted}, {place_of_entry(entry)}"
    return f"- {entry.at:%Y-%m-%d %H:%M} {entry.category}: {entry_text(entry, WIDTH)} ({where})"
