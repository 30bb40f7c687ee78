"""The snapshot of a suspended session: all that another process needs to continue it, and its record on the trail.

Every part is also on the trail elsewhere. The snapshot is the state at one moment in one record: it shows the pending
work, and a resumed session gets the private context of that moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.sessions import SESSION_TAG, SentMessage
from clew.errors import AlreadyExists, Conflict
from clew.team.sessions.session import Session
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.store import Trail

TeamStateOf = Callable[[str, Principal], Awaitable[Mapping[str, Any] | None]]
"""Returns the state of the team of a session as plain data, or None if it has no team."""


class ArchivalistState(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a session. Entries are written at once, so `pending_writes` is empty."""

    session_id: str
    agent_context: dict[str, Any] = {}
    resume_state: dict[str, Any] = {}
    local_entry_ids: tuple[str, ...] = ()
    pending_writes: tuple[str, ...] = ()


class GuideState(msgspec.Struct, frozen=True, kw_only=True):
    """`pending_requests` are the messages without an answer, `active_routes` the agents that they wait for."""

    session_id: str
    pending_requests: tuple[str, ...] = ()
    active_routes: dict[str, str] = {}


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the plan that is being carried out."""

    dag_id: str = ""
    current_layer: int = 0
    node_states: dict[str, str] = {}
    completed_results: dict[str, Any] = {}
    pending_nodes: tuple[str, ...] = ()


class SessionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session at `created_at`."""

    session: Session
    archivalist_state: ArchivalistState
    guide_state: GuideState
    dag_state: PlanProgress | None = None
    pending_messages: tuple[str, ...] = ()
    agent_states: dict[str, Any] = {}
    created_at: datetime


def build_snapshot(
    session: Session,
    pending: Sequence[SentMessage],
    entries: Sequence[str],
    team: Mapping[str, Any] | None,
    at: datetime,
) -> SessionSnapshot:
    """The snapshot of a session with its messages without an answer, its entries and the state of its team."""
    context = session.context
    parts = dict(team or {})
    dag = parts.get("dag_state")
    return SessionSnapshot(
        session=session,
        archivalist_state=ArchivalistState(
            session_id=session.id,
            agent_context=msgspec.to_builtins(context),
            resume_state={
                "current_task": context.current_task,
                "current_step": context.current_step,
                "next_steps": list(context.next_steps),
                "blockers": list(context.blockers),
            },
            local_entry_ids=tuple(entries),
        ),
        guide_state=GuideState(
            session_id=session.id,
            pending_requests=tuple(each.id for each in pending),
            active_routes={each.id: each.agent for each in pending},
        ),
        dag_state=msgspec.convert(dag, PlanProgress) if dag else None,
        pending_messages=(*(each.id for each in pending), *parts.get("pending_messages", ())),
        agent_states={**context.active_agents, **parts.get("agent_states", {})},
        created_at=at,
    )


class SessionSnapshots:
    """The newest snapshot of each session; the versions of its record are the earlier ones."""

    def __init__(self, trail: Trail, schema: str) -> None:
        self._records = trail.records
        self._schema = schema

    async def write(self, snapshot: SessionSnapshot, *, by: Principal) -> None:
        """Write a snapshot. Either of two concurrent writes may win."""
        session = snapshot.session
        id, context = _record_id(session.id, by), msgspec.to_builtins(snapshot)
        found = (await self._records.find_many([id], by=by)).get(id)
        try:
            if found is None:
                tags = (SESSION_TAG + session.id,)
                draft = Draft(
                    id=id, title="Snapshot", schema_name=self._schema, tags=tags, context=context, embed="never"
                )
                await self._records.create(draft, by=by)
            else:
                await self._records.update(id, Change(context=context, embed="never"), expect=found.version, by=by)
        except (AlreadyExists, Conflict):
            return

    async def read(self, session: str, *, by: Principal) -> SessionSnapshot | None:
        """The newest snapshot of a session, or None."""
        id = _record_id(session, by)
        found = (await self._records.find_many([id], by=by)).get(id)
        if found is None or found.schema_name != self._schema:
            return None
        return msgspec.convert(found.context, SessionSnapshot)


def _record_id(session: str, by: Principal) -> str:
    return str(uuid5(NAMESPACE_OID, f"clew/session-snapshot\n{by.owner_id}\n{session}"))
