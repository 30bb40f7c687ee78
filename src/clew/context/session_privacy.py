"""Records that are private to another session: conversations of named sessions, and journal entries that were not
promoted."""

from __future__ import annotations

from clew.access import Principal
from clew.knowledge.history.entries import NO_SESSION, PROMOTED, Category
from clew.knowledge.nodes.node_store import SCHEMA as NODE
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

_SHARED = frozenset((Category.DECISION, Category.FAILURE, Category.TIMELINE))
"""Categories of entries that all sessions read."""


class SessionPrivacy:
    """Decides for one trigger which records of other sessions its context must not show. A conversation
    `<session>.<…>` is part of its session. Chats without a session record are not private."""

    def __init__(self, trail: Trail, flow: Flow, trigger: Breadcrumb, *, by: Principal) -> None:
        self._records = trail.records
        self._flow = flow
        self._own = _root(trigger.session)
        self._by = by
        self._named: dict[str, bool] = {}

    async def hides(self, found: Breadcrumb) -> bool:
        """Whether a record is private to another session."""
        session = _root(found.session)
        if session in ("", NO_SESSION, self._own):
            return False
        if found.schema_name == NODE:
            category = found.context.get("category")
            return category is not None and category not in _SHARED and PROMOTED not in found.tags
        return found.schema_name in (self._flow.message, self._flow.answer) and await self._is_named(session)

    async def _is_named(self, session: str) -> bool:
        """Whether a session has a record of its own."""
        if session not in self._named:
            selector = Selector(schema_name=self._flow.session, session=session)
            self._named[session] = bool((await self._records.list(selector, by=self._by, limit=1)).items)
        return self._named[session]


def _root(session: str | None) -> str:
    return (session or "").partition(".")[0]
