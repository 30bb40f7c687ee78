"""Pipelines for the CLI, REST and other interfaces: typed views of the state and the messages of a session. Nothing is
cached: a pipeline is a part of the folded state, and its private channel consists of the messages on the trail that
carry its id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.errors import IllegalState
from clew.team.machines.pipeline_state import PipelineStatus, TaskPipeline
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import MessageType
from clew.team.messages.payloads import Findings, TestReport
from clew.team.runtime.task_lookup import find_task
from clew.team.team import Team

FEEDBACK, DONE = 8, 1
"""How many feedback messages and end messages a channel shows. The trail keeps all of them."""
_FEEDBACK = frozenset({MessageType.INSPECTOR_FEEDBACK, MessageType.TESTER_FEEDBACK})
_DONE = frozenset({MessageType.PIPELINE_COMPLETE, MessageType.PIPELINE_FAILED})


class PipelineOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a pipeline that is over, with the results of its three agents. `duration` is in seconds."""

    pipeline_id: str
    success: bool
    engineer_result: str
    inspector_result: Findings | None
    tester_result: TestReport | None
    modified_files: tuple[str, ...]
    created_files: tuple[str, ...]
    loops_used: int
    duration: float
    reason: str = ""


class PipelineChannel(msgspec.Struct, frozen=True, kw_only=True):
    """The private channel of a pipeline: the newest feedback for its builder, and its end. A channel is closed when the
    pipeline is over. A closed channel takes no messages."""

    pipeline_id: str
    is_closed: bool
    feedback: Sequence[TeamMessage]
    done: Sequence[TeamMessage]


class TeamPipelines:
    """The pipelines of one owner's teams. Approving a plan creates and starts them; see `Team.approve`."""

    def __init__(self, team: Team) -> None:
        self._team = team

    async def get(self, session: str, which: str, *, by: Principal) -> TaskPipeline:
        """The pipeline of this id, or the newest one of a task. Raises NotFound, AccessDenied."""
        return find_task(await self._team.state(session, by=by), which)

    async def get_by_session(self, session: str, *, by: Principal) -> Sequence[TaskPipeline]:
        """All pipelines of a session, oldest first. Raises NotFound, AccessDenied."""
        return tuple((await self._team.state(session, by=by)).pipelines.values())

    async def get_by_dag(self, session: str, dag: str, *, by: Principal) -> Sequence[TaskPipeline]:
        """The pipelines of one plan of a session. Raises NotFound, AccessDenied."""
        return [each for each in await self.get_by_session(session, by=by) if each.dag_id == dag]

    async def get_active(self, *, by: Principal) -> Sequence[TaskPipeline]:
        """The pipelines of all sessions that are not over. Raises AccessDenied."""
        found: list[TaskPipeline] = []
        for status in await self._team.status(by=by):
            if not status.outcome:
                found += [each for each in await self.get_by_session(status.session_id, by=by) if not each.is_over]
        return found

    async def cancel(self, session: str, which: str, *, by: Principal, reason: str = "") -> TeamMessage:
        """End a pipeline as failed. Its runs are cancelled, and all waiting callers get its result. Raises
        IllegalState, NotFound."""
        reason = reason or "cancelled by the user"
        return await self._team.choose(session, "fail", by=by, task=which, reason=reason)

    async def get_result(self, session: str, which: str, *, by: Principal) -> PipelineOutcome:
        """The result of a pipeline that is over. Raises IllegalState, NotFound, AccessDenied."""
        found = await self.get(session, which, by=by)
        if not found.is_over or found.completed_at is None:
            raise IllegalState("read", f"the result of {found.id}", found.state, ("wait for its end", "cancel it"))
        return PipelineOutcome(
            pipeline_id=found.id,
            success=found.state is PipelineStatus.COMPLETED,
            engineer_result=found.engineer_result,
            inspector_result=found.inspector_result,
            tester_result=found.tester_result,
            modified_files=found.context.modified_files,
            created_files=found.context.created_files,
            loops_used=found.inspector_loops + found.tester_loops,
            duration=(found.completed_at - found.created_at).total_seconds(),
            reason=found.reason,
        )

    async def wait(self, session: str, which: str, *, by: Principal, seconds: float) -> PipelineOutcome:
        """The result of a pipeline, as soon as it is over. Raises TimeoutError, NotFound, AccessDenied."""
        async with asyncio.timeout(seconds):
            async for _ in self._team.follow(session, by=by):
                if (await self.get(session, which, by=by)).is_over:
                    break
        return await self.get_result(session, which, by=by)

    async def channel(self, session: str, which: str, *, by: Principal) -> PipelineChannel:
        """The private channel of a pipeline, read from the trail. Raises NotFound, AccessDenied."""
        found = await self.get(session, which, by=by)
        own = [each for each in await self._team.log(session, by=by) if each.payload.get("pipeline") == found.id]
        return PipelineChannel(
            pipeline_id=found.id,
            is_closed=found.is_over,
            feedback=[each for each in own if each.type in _FEEDBACK][-FEEDBACK:],
            done=[each for each in own if each.type in _DONE][-DONE:],
        )
