"""Tasks of the team over REST: list them, act on one, decide on a stuck one, and prove one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.adapters.rest.routes.plans import open_team
from clew.errors import AccessDenied, IllegalState, InvalidInput, NotFound
from clew.team.evidence.task_evidence import TaskEvidence, TaskVerification
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.messages.message import TeamMessage
from clew.team.pipelines import PipelineChannel, PipelineOutcome, TeamPipelines
from clew.team.team import TaskAction


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one task."""

    id: str
    task: str
    agent: str
    state: str
    stage: str
    inspector_loops: int
    tester_loops: int
    files: Sequence[str]
    commit: str
    reason: str
    tokens: int
    created_at: datetime
    completed_at: datetime | None


class TeamTasks(msgspec.Struct, frozen=True, kw_only=True):
    items: Sequence[TaskView]


class TaskMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: TaskAction
    text: str = ""


class TaskChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    choice: Literal["ignore", "fail", "retry"]
    reason: str = ""


async def list_tasks(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    state = await team.state(call.path["session"], by=call.by)
    return reply(TeamTasks(items=[_view(each) for each in state.pipelines.values()]))


async def act_on_task(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body
    session, task = call.path["session"], call.path["task"]
    return reply(await team.task(session, task, asked.action, asked.text, by=call.by))


async def choose_for_task(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body
    session, task = call.path["session"], call.path["task"]
    return reply(await team.choose(session, asked.choice, by=call.by, task=task, reason=asked.reason))


async def get_evidence(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(await team.why_done(call.path["session"], call.path["task"], by=call.by))


async def verify_task(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(await team.verify(call.path["session"], call.path["task"], by=call.by))


async def list_active(call: RestCall) -> RestAnswer:
    pipelines = TeamPipelines(await open_team(call))
    return reply(TeamTasks(items=[_view(each) for each in await pipelines.get_active(by=call.by)]))


async def get_result(call: RestCall) -> RestAnswer:
    pipelines = TeamPipelines(await open_team(call))
    return reply(await pipelines.get_result(call.path["session"], call.path["task"], by=call.by))


async def get_channel(call: RestCall) -> RestAnswer:
    pipelines = TeamPipelines(await open_team(call))
    return reply(await pipelines.channel(call.path["session"], call.path["task"], by=call.by))


async def cancel_task(call: RestCall) -> RestAnswer:
    pipelines = TeamPipelines(await open_team(call))
    return reply(await pipelines.cancel(call.path["session"], call.path["task"], by=call.by))


def _view(pipeline: TaskPipeline) -> TaskView:
    context = pipeline.context
    return TaskView(
        id=pipeline.id,
        task=pipeline.task_id,
        agent=pipeline.builder,
        state=pipeline.state,
        stage=pipeline.stage,
        inspector_loops=pipeline.inspector_loops,
        tester_loops=pipeline.tester_loops,
        files=sorted({*context.modified_files, *context.created_files, *context.deleted_files}),
        commit=pipeline.commit,
        reason=pipeline.reason,
        tokens=pipeline.tokens,
        created_at=pipeline.created_at,
        completed_at=pipeline.completed_at,
    )


_ONE = "/tasks/{session}/{task}"

OPERATIONS = (
    RestOperation(
        method="GET",
        path="/tasks",
        handler=list_active,
        summary="The tasks of all sessions that are under way",
        group="team",
        verb="read",
        answer=TeamTasks,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="GET",
        path=f"{_ONE}/result",
        handler=get_result,
        summary="The result of a task that is over: its agents' results, files, rounds and duration",
        group="team",
        verb="read",
        answer=PipelineOutcome,
        raises=(AccessDenied, IllegalState, NotFound),
    ),
    RestOperation(
        method="GET",
        path=f"{_ONE}/channel",
        handler=get_channel,
        summary="The private channel of a task: feedback for its Engineer, and its end",
        group="team",
        verb="read",
        answer=PipelineChannel,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="POST",
        path=f"{_ONE}/cancel",
        handler=cancel_task,
        summary="Let a task fail; its runs are cancelled, and its work stays on its branch",
        group="team",
        verb="create",
        writes=True,
        answer=TeamMessage,
        raises=(AccessDenied, IllegalState, InvalidInput, NotFound),
    ),
    RestOperation(
        method="GET",
        path="/tasks/{session}",
        handler=list_tasks,
        summary="The tasks of a session that have started, each with its state",
        group="team",
        verb="read",
        answer=TeamTasks,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="POST",
        path=_ONE,
        handler=act_on_task,
        summary="Prompt, ask or interrupt a task, or ignore its Inspector or Tester",
        group="team",
        verb="create",
        writes=True,
        body=TaskMessage,
        answer=TeamMessage,
        raises=(AccessDenied, IllegalState, InvalidInput, NotFound),
    ),
    RestOperation(
        method="POST",
        path=f"{_ONE}/choice",
        handler=choose_for_task,
        summary="Decide on a task that used all its rounds: ignore, retry or fail",
        group="team",
        verb="create",
        writes=True,
        body=TaskChoice,
        answer=TeamMessage,
        raises=(AccessDenied, IllegalState, InvalidInput, NotFound),
    ),
    RestOperation(
        method="GET",
        path=f"{_ONE}/evidence",
        handler=get_evidence,
        summary="Why a task counts as done: its claim, receipts and verdict",
        group="team",
        verb="read",
        answer=TaskEvidence,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="POST",
        path=f"{_ONE}/verify",
        handler=verify_task,
        summary="Run the checks of a task again on the same tree",
        group="team",
        verb="administer",
        writes=True,
        answer=TaskVerification,
        raises=(AccessDenied, InvalidInput, NotFound),
    ),
)
