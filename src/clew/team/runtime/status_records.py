"""The status of each team in one small record, so that a list of sessions reads no messages. The status is derived
data: the work never depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.sessions import title_of
from clew.background_tasks import log_failure
from clew.clock import Clock
from clew.errors import AlreadyExists, Conflict, StorageError
from clew.skills.lru_cache import LruCache
from clew.team.machines.dag import NodeStatus
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import SESSION_TAG
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

STATUS = "team.status.v1"
MAX_LISTED = 1_000
DELAY = 0.25
"""Seconds before the status of running work is written, so that quick successive changes cost only one write."""
_RETRIES = 10
_NAMESPACE = UUID("0b6c3f6e-86a1-5a37-8f0b-3d8f3c2e5a11")
_ACTIVE = (NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.MERGING)


class TeamStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The work of one session in short. `waits_for_user` says whether it needs an answer or a decision of the user to
    continue."""

    session_id: str
    request: str = ""
    phase: str
    stage: str = ""
    outcome: str = ""
    reason: str = ""
    tasks: int = 0
    passed: int = 0
    running: int = 0
    failed: int = 0
    questions: int = 0
    tokens: int = 0
    budget: int = 0
    branch: str = ""
    waits_for_user: bool = False
    is_halted: bool = False
    messages: int = 0
    """The number of messages that this status includes. An older status never replaces a newer one."""
    updated_at: datetime | None = None


class StatusRecords:
    """Writes and reads the statuses of one owner."""

    def __init__(self, trail: Trail, clock: Clock, *, by: Principal) -> None:
        self._records = trail.records
        self._clock = clock
        self._by = by
        self._written: LruCache[str, TeamStatus] = LruCache(1_000)
        self._waiting: dict[str, TeamStatus] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def write(self, state: TeamState) -> None:
        """Write the status of a state if it has changed and no newer one is stored."""
        self._waiting.pop(state.session, None)
        await self._write(status_of(state))

    async def note(self, state: TeamState) -> None:
        """Like `write`, but while the work continues by itself, the status is written after a short delay, and only the
        newest one. After a crash, the next message updates the status."""
        status = status_of(state)
        is_known = self._written.find(state.session) is not None or state.session in self._waiting
        if state.is_over or status.waits_for_user or not is_known:
            await self.write(state)
            return
        if state.session not in self._waiting:
            asyncio.get_running_loop().call_later(DELAY, self._begin, state.session)
        self._waiting[state.session] = status

    async def flush(self) -> None:
        """Write all delayed statuses before the process ends."""
        for session in tuple(self._waiting):
            self._begin(session)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _begin(self, session: str) -> None:
        if (status := self._waiting.pop(session, None)) is not None:
            task = asyncio.create_task(self._write_late(status))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(log_failure)

    async def _write_late(self, status: TeamStatus) -> None:
        with suppress(StorageError):  # the trail may be closed by now; the next message writes it
            await self._write(status)

    async def _write(self, status: TeamStatus) -> None:
        if self._written.find(status.session_id) == _content(status):
            return
        for _ in range(_RETRIES):
            try:
                await self._replace(status)
                break
            except (Conflict, AlreadyExists):  # another process wrote one; it may be older
                continue
        self._written.keep(status.session_id, _content(status))

    async def _replace(self, status: TeamStatus) -> None:
        id = str(uuid5(_NAMESPACE, f"{self._by.owner_id}\n{status.session_id}"))
        context = msgspec.to_builtins(msgspec.structs.replace(status, updated_at=self._clock.now()))
        found = (await self._records.find_many([id], by=self._by)).get(id)
        if found is None:
            tags = (SESSION_TAG + status.session_id,)
            draft = Draft(id=id, title="Team", schema_name=STATUS, tags=tags, context=context, embed="never")
            await self._records.create(draft, by=self._by)
        elif found.context.get("messages", 0) < status.messages:
            change = Change(context=context, embed="never")
            await self._records.update(id, change, expect=found.version, by=self._by)

    async def list(self, *, by: Principal, limit: int = 200) -> Sequence[TeamStatus]:
        """The newest teams first. Raises AccessDenied."""
        page = await self._records.list(Selector(schema_name=STATUS), by=by, limit=min(max(limit, 1), MAX_LISTED))
        found = (msgspec.convert(each.context, TeamStatus) for each in page.items)
        return sorted(found, key=_moment, reverse=True)


def status_of(state: TeamState) -> TeamStatus:
    """The status of a state, without the time."""
    nodes = [] if state.dag is None else [each.status for each in state.dag.nodes.values()]
    return TeamStatus(
        session_id=state.session,
        request=title_of(state.request.request) if state.request else "",
        phase=state.phase,
        stage=state.stage,
        outcome=state.outcome,
        reason=state.reason,
        tasks=len(nodes),
        passed=nodes.count(NodeStatus.PASSED),
        running=sum(each in _ACTIVE for each in nodes),
        failed=nodes.count(NodeStatus.FAILED),
        questions=len(state.questions),
        tokens=state.tokens,
        budget=state.request.budget if state.request else 0,
        branch=state.branch,
        waits_for_user=waits_for_user(state),
        is_halted=state.is_halted,
        messages=state.messages,
    )


def waits_for_user(state: TeamState) -> bool:
    """Whether the work needs input of the user to continue."""
    if state.is_over:
        return False
    stages = (state.stage.name, *(each.stage.name for each in state.pipelines.values() if not each.is_over))
    return bool(state.questions) or state.is_halted or bool({"APPROVAL", "CHOICE", "PAUSED"} & set(stages))


def _content(status: TeamStatus) -> TeamStatus:
    """The part of a status that people see."""
    return msgspec.structs.replace(status, messages=0)


def _moment(status: TeamStatus) -> str:
    return status.updated_at.isoformat() if status.updated_at else ""
