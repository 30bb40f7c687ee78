"""Tools around one task: read it, claim that it is done, ask for a decision, hand it over."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.machines.team_state import TeamState
from clew.team.members.toolkit.member_deps import READS, SENDS, MemberDeps
from clew.team.messages.conversation import TeamConversation, get_conversation
from clew.team.messages.message_types import MessageType
from clew.team.messages.payloads import PipelineHandoff, TaskClaim, TeamQuestion
from clew.team.planning.plan import PlanNode
from clew.tools.tool import Tool, ToolContext, tool

_T = MessageType


class TaskBrief(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as its agent gets it."""

    pipeline: str
    task: str
    prompt: str
    files: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    upstream: dict[str, str] = {}
    handoff: str = ""
    findings: tuple[dict[str, Any], ...] = ()
    failures: tuple[dict[str, Any], ...] = ()


def task_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return the tools of agents that carry out a task."""

    @tool(name="execute_task", searchable=False, effects=READS)
    async def execute_task(ctx: ToolContext) -> TaskBrief:
        """Return your task: its prompt, the files that you may change, the commands that must pass, and the open
        findings and failures."""
        place = get_conversation(ctx.by.session)
        return brief_of(await deps.state_of(place.session), require_pipeline(place))

    @tool(name="engineer_signal_complete", searchable=False, effects=SENDS)
    async def signal_complete(result: str, ctx: ToolContext, files_modified: tuple[str, ...] = ()) -> str:
        """Claim that your task is done. Its commands are run again, so claim only what you have seen pass.

        Args:
            result: what you did, in a few sentences
            files_modified: the files that you changed
        """
        pipeline = require_pipeline(get_conversation(ctx.by.session))
        await deps.tell(_T.TASK_COMPLETE, TaskClaim(pipeline=pipeline, summary=result, files=files_modified), ctx)
        return "Noted. The inspector and the tester check it now. End your turn."

    @tool(name="engineer_request_help", searchable=False, effects=SENDS)
    async def request_help(question: str, ctx: ToolContext, context: str = "") -> str:
        """Ask for a decision. The question goes to the orchestrator, and from there to the architect and the user.

        Args:
            question: one question
            context: what you tried, and the choices that you see
        """
        pipeline = require_pipeline(get_conversation(ctx.by.session))
        text = f"{question}\n\n{context}" if context.strip() else question
        asked = TeamQuestion(question=text, pipeline=pipeline, origin=ctx.by.agent_id)
        await deps.tell(_T.TASK_HELP, asked, ctx)
        return "Asked. End your turn; the answer starts you again."

    return execute_task, signal_complete, request_help


def require_pipeline(place: TeamConversation) -> str:
    """The pipeline of a conversation. Raises InvalidInput outside of a task."""
    if not place.pipeline:
        raise InvalidInput("session", f"the {place.role} has no task here", hint="Only an agent of a task can do this")
    return place.pipeline


def brief_of(state: TeamState, pipeline: str) -> TaskBrief:
    """The task of a pipeline. Raises InvalidInput for an unknown one."""
    found = state.pipelines.get(pipeline)
    if found is None:
        hint = f"Pipelines are {', '.join(state.pipelines) or 'not started yet'}"
        raise InvalidInput("pipeline", f"{pipeline[:50]!r} does not exist", hint=hint)
    return _brief(found, state.find_node(found.task_id))


def handoff_of(place: TeamConversation, reason: str, engineer: dict[str, Any]) -> PipelineHandoff:
    """The request to hand a task over, with the notes of its engineer. The state machine adds the rest."""
    return PipelineHandoff(
        old_pipeline_id=require_pipeline(place),
        session_id=place.session,
        handoff_reason=reason,
        engineer_state=engineer,
    )


def _brief(pipeline: TaskPipeline, node: PlanNode | None) -> TaskBrief:
    inspection, tests, context = pipeline.inspector_result, pipeline.tester_result, pipeline.context
    issues = inspection.issues if inspection is not None and not inspection.passed else ()
    failures = tests.failures if tests is not None and not tests.passed else ()
    return TaskBrief(
        pipeline=pipeline.id,
        task=pipeline.task_id,
        prompt=context.task_prompt,
        files=node.files if node is not None else (),
        checks=node.checks if node is not None else (),
        criteria=context.compliance_criteria,
        constraints=context.task_constraints,
        upstream=context.upstream_outputs,
        handoff=context.handoff_notes,
        findings=tuple(msgspec.to_builtins(each) for each in issues),
        failures=tuple(msgspec.to_builtins(each) for each in failures),
    )
