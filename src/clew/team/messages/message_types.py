"""The types of team messages. Each has a payload, senders and receivers; `ROUTES` is the table."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from clew.decode_errors import in_plain_words
from clew.team.messages import payloads as p

USER, GUIDE, ACADEMIC, ARCHITECT, ORCHESTRATOR = "user", "guide", "academic", "architect", "orchestrator"
ENGINEER, DESIGNER, LIBRARIAN, ARCHIVALIST = "engineer", "designer", "librarian", "archivalist"
INSPECTOR, TESTER, RUNTIME = "inspector", "tester", "runtime"
AGENTS = (
    ACADEMIC,
    ARCHITECT,
    ORCHESTRATOR,
    ENGINEER,
    DESIGNER,
    LIBRARIAN,
    ARCHIVALIST,
    INSPECTOR,
    TESTER,
    GUIDE,
)
"""The ten agents."""
MEMBERS = (*AGENTS, USER, RUNTIME)
"""All senders and receivers of messages. `runtime` is the name of the runners of agents and tools."""
BUILDERS = (ENGINEER, DESIGNER)
"""The agents that change files."""


class MessageType(StrEnum):
    USER_INPUT = "USER_INPUT"
    USER_RESPONSE = "USER_RESPONSE"
    SESSION_CREATE = "SESSION_CREATE"
    SESSION_SWITCH = "SESSION_SWITCH"
    SESSION_SUSPEND = "SESSION_SUSPEND"
    SESSION_RESUME = "SESSION_RESUME"
    SESSION_COMPLETE = "SESSION_COMPLETE"
    RESEARCH_REQUEST = "RESEARCH_REQUEST"
    RESEARCH_RESPONSE = "RESEARCH_RESPONSE"
    CONTEXT_REQUEST = "CONTEXT_REQUEST"
    CONTEXT_RESPONSE = "CONTEXT_RESPONSE"
    HISTORY_REQUEST = "HISTORY_REQUEST"
    HISTORY_RESPONSE = "HISTORY_RESPONSE"
    STORE_REQUEST = "STORE_REQUEST"
    PLAN_REQUEST = "PLAN_REQUEST"
    PLAN_RESPONSE = "PLAN_RESPONSE"
    PLAN_APPROVED = "PLAN_APPROVED"
    PLAN_MODIFIED = "PLAN_MODIFIED"
    DAG_EXECUTE = "DAG_EXECUTE"
    DAG_STATUS = "DAG_STATUS"
    TASK_DISPATCH = "TASK_DISPATCH"
    TASK_COMPLETE = "TASK_COMPLETE"
    TASK_FAILED = "TASK_FAILED"
    TASK_HELP = "TASK_HELP"
    CLARIFICATION_REQUEST = "CLARIFICATION_REQUEST"
    CLARIFICATION_RESPONSE = "CLARIFICATION_RESPONSE"
    VALIDATE_TASK = "VALIDATE_TASK"
    VALIDATION_RESULT = "VALIDATION_RESULT"
    VALIDATION_FULL = "VALIDATION_FULL"
    VALIDATION_CORRECTIONS = "VALIDATION_CORRECTIONS"
    TEST_PLAN_REQUEST = "TEST_PLAN_REQUEST"
    TEST_PLAN_RESPONSE = "TEST_PLAN_RESPONSE"
    TEST_DAG_REQUEST = "TEST_DAG_REQUEST"
    TESTS_READY = "TESTS_READY"
    TEST_RESULTS = "TEST_RESULTS"
    TEST_CORRECTIONS = "TEST_CORRECTIONS"
    USER_OVERRIDE = "USER_OVERRIDE"
    USER_INTERRUPT = "USER_INTERRUPT"
    WORKFLOW_COMPLETE = "WORKFLOW_COMPLETE"
    # pipelines
    PIPELINE_COMPLETE = "PIPELINE_COMPLETE"
    PIPELINE_FAILED = "PIPELINE_FAILED"
    INSPECTOR_FEEDBACK = "INSPECTOR_FEEDBACK"
    TESTER_FEEDBACK = "TESTER_FEEDBACK"
    INSPECTION_REQUEST = "INSPECTION_REQUEST"
    INSPECTION_RESULTS = "INSPECTION_RESULTS"
    USER_TASK_PROMPT = "USER_TASK_PROMPT"
    USER_TASK_QUERY = "USER_TASK_QUERY"
    USER_TASK_INTERRUPT = "USER_TASK_INTERRUPT"
    USER_IGNORE_INSPECTOR = "USER_IGNORE_INSPECTOR"
    USER_IGNORE_TESTER = "USER_IGNORE_TESTER"
    HANDOFF_REQUEST = "HANDOFF_REQUEST"
    CREATE_PIPELINE_WITH_STATE = "CREATE_PIPELINE_WITH_STATE"
    HANDOFF_COMPLETE = "HANDOFF_COMPLETE"
    STORE_SUMMARY = "STORE_SUMMARY"
    TOOL_DISCOVERY_REQUEST = "TOOL_DISCOVERY_REQUEST"
    TOOL_DISCOVERY_RESPONSE = "TOOL_DISCOVERY_RESPONSE"
    # the runtime
    RUN_ENDED = "RUN_ENDED"
    CALL_RESULT = "CALL_RESULT"
    TIMER_DUE = "TIMER_DUE"
    TASK_ANSWER = "TASK_ANSWER"
    USER_CHOICE = "USER_CHOICE"
    MESSAGE_REFUSED = "MESSAGE_REFUSED"


class TypeRoute(NamedTuple):
    """The payload of a type, and the members that send and receive it."""

    payload: type[msgspec.Struct]
    senders: tuple[str, ...]
    receivers: tuple[str, ...]


_T = MessageType
ROUTES: dict[MessageType, TypeRoute] = {
    _T.USER_INPUT: TypeRoute(p.TextPayload, (USER,), (GUIDE,)),
    _T.USER_RESPONSE: TypeRoute(p.TextPayload, (USER,), AGENTS),
    _T.SESSION_CREATE: TypeRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_SWITCH: TypeRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_SUSPEND: TypeRoute(p.SessionChange, (USER, RUNTIME), (GUIDE,)),
    _T.SESSION_RESUME: TypeRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_COMPLETE: TypeRoute(p.SessionChange, (USER, RUNTIME), (GUIDE,)),
    _T.RESEARCH_REQUEST: TypeRoute(p.TeamQuery, (USER, *AGENTS), (ACADEMIC,)),
    _T.RESEARCH_RESPONSE: TypeRoute(p.TeamReply, (ACADEMIC, RUNTIME), (USER, *AGENTS)),
    _T.CONTEXT_REQUEST: TypeRoute(p.TeamQuery, (USER, *AGENTS), (LIBRARIAN,)),
    _T.CONTEXT_RESPONSE: TypeRoute(p.TeamReply, (LIBRARIAN, RUNTIME), (USER, *AGENTS)),
    _T.HISTORY_REQUEST: TypeRoute(p.TeamQuery, (USER, *AGENTS), (ARCHIVALIST,)),
    _T.HISTORY_RESPONSE: TypeRoute(p.TeamReply, (ARCHIVALIST, RUNTIME), (USER, *AGENTS)),
    _T.STORE_REQUEST: TypeRoute(p.StoreRequest, AGENTS, (ARCHIVALIST,)),
    _T.PLAN_REQUEST: TypeRoute(p.PlanRequest, (USER,), (ARCHITECT,)),
    _T.PLAN_RESPONSE: TypeRoute(p.PlanProposal, (ARCHITECT,), (USER,)),
    _T.PLAN_APPROVED: TypeRoute(p.PlanApproval, (USER, RUNTIME), (ARCHITECT,)),
    _T.PLAN_MODIFIED: TypeRoute(p.TextPayload, (USER,), (ARCHITECT,)),
    _T.DAG_EXECUTE: TypeRoute(p.PlanProposal, (ARCHITECT,), (ORCHESTRATOR,)),
    _T.DAG_STATUS: TypeRoute(p.DagProgress, (ORCHESTRATOR,), (ARCHITECT,)),
    _T.TASK_DISPATCH: TypeRoute(p.Dispatch, (ORCHESTRATOR,), BUILDERS),
    _T.TASK_COMPLETE: TypeRoute(p.TaskClaim, BUILDERS, (ORCHESTRATOR,)),
    _T.TASK_FAILED: TypeRoute(p.TaskFailure, (*BUILDERS, RUNTIME), (ORCHESTRATOR,)),
    _T.TASK_HELP: TypeRoute(p.TeamQuestion, BUILDERS, (ORCHESTRATOR,)),
    _T.CLARIFICATION_REQUEST: TypeRoute(p.TeamQuestion, (ARCHITECT, ORCHESTRATOR), (USER, ARCHITECT)),
    _T.CLARIFICATION_RESPONSE: TypeRoute(p.QuestionAnswer, (USER, ARCHITECT, ORCHESTRATOR), (ARCHITECT, *BUILDERS)),
    _T.VALIDATE_TASK: TypeRoute(p.TaskReference, (ORCHESTRATOR,), (INSPECTOR,)),
    _T.VALIDATION_RESULT: TypeRoute(p.Findings, (INSPECTOR,), (ORCHESTRATOR,)),
    _T.VALIDATION_FULL: TypeRoute(p.Findings, (INSPECTOR,), (USER,)),
    _T.VALIDATION_CORRECTIONS: TypeRoute(p.Findings, (INSPECTOR,), (ARCHITECT,)),
    _T.TEST_PLAN_REQUEST: TypeRoute(p.TextPayload, (ARCHITECT,), (TESTER,)),
    _T.TEST_PLAN_RESPONSE: TypeRoute(p.TextPayload, (TESTER,), (USER,)),
    _T.TEST_DAG_REQUEST: TypeRoute(p.TextPayload, (TESTER,), (ARCHITECT,)),
    _T.TESTS_READY: TypeRoute(p.TaskReference, (ORCHESTRATOR,), (TESTER,)),
    _T.TEST_RESULTS: TypeRoute(p.TestReport, (TESTER,), (USER, ARCHITECT)),
    _T.TEST_CORRECTIONS: TypeRoute(p.TestReport, (TESTER,), (ARCHITECT,)),
    _T.USER_OVERRIDE: TypeRoute(p.UserOverride, (USER,), (INSPECTOR, TESTER)),
    _T.USER_INTERRUPT: TypeRoute(p.UserInterrupt, (USER,), (ARCHITECT,)),
    _T.WORKFLOW_COMPLETE: TypeRoute(p.CompletionSummary, (ARCHITECT,), (USER,)),
    _T.PIPELINE_COMPLETE: TypeRoute(p.PipelineResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.PIPELINE_FAILED: TypeRoute(p.PipelineResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.INSPECTOR_FEEDBACK: TypeRoute(p.Findings, (INSPECTOR,), BUILDERS),
    _T.TESTER_FEEDBACK: TypeRoute(p.TestReport, (TESTER,), BUILDERS),
    _T.INSPECTION_REQUEST: TypeRoute(p.TextPayload, (ARCHITECT,), (INSPECTOR,)),
    _T.INSPECTION_RESULTS: TypeRoute(p.Findings, (INSPECTOR,), (ARCHITECT,)),
    _T.USER_TASK_PROMPT: TypeRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_TASK_QUERY: TypeRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_TASK_INTERRUPT: TypeRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_IGNORE_INSPECTOR: TypeRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_IGNORE_TESTER: TypeRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.HANDOFF_REQUEST: TypeRoute(p.PipelineHandoff, (*BUILDERS, USER, RUNTIME), (ARCHITECT,)),
    _T.CREATE_PIPELINE_WITH_STATE: TypeRoute(p.PipelineTransfer, (ARCHITECT,), (ORCHESTRATOR,)),
    _T.HANDOFF_COMPLETE: TypeRoute(p.PipelineTransfer, (ORCHESTRATOR,), (ARCHITECT,)),
    _T.STORE_SUMMARY: TypeRoute(p.StoreRequest, (*AGENTS, RUNTIME), (ARCHIVALIST,)),
    _T.TOOL_DISCOVERY_REQUEST: TypeRoute(p.TeamQuery, (INSPECTOR, TESTER), (LIBRARIAN,)),
    _T.TOOL_DISCOVERY_RESPONSE: TypeRoute(p.TeamReply, (LIBRARIAN, RUNTIME), (INSPECTOR, TESTER)),
    _T.RUN_ENDED: TypeRoute(p.RunEnd, (RUNTIME,), (ORCHESTRATOR,)),
    _T.CALL_RESULT: TypeRoute(p.CallResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.TIMER_DUE: TypeRoute(p.TimerDue, (RUNTIME,), (ORCHESTRATOR,)),
    _T.TASK_ANSWER: TypeRoute(p.TaskText, (*BUILDERS, RUNTIME), (USER,)),
    _T.USER_CHOICE: TypeRoute(p.PipelineChoice, (USER,), (ORCHESTRATOR,)),
    _T.MESSAGE_REFUSED: TypeRoute(p.MessageRefusal, (GUIDE, RUNTIME), MEMBERS),
}

FOR_THE_RECORD = frozenset(
    (
        _T.DAG_STATUS,
        _T.TASK_DISPATCH,
        _T.TASK_ANSWER,
        _T.VALIDATE_TASK,
        _T.VALIDATION_FULL,
        _T.VALIDATION_CORRECTIONS,
        _T.TESTS_READY,
        _T.TEST_RESULTS,
        _T.TEST_CORRECTIONS,
        _T.INSPECTOR_FEEDBACK,
        _T.TESTER_FEEDBACK,
        _T.HANDOFF_COMPLETE,
        _T.WORKFLOW_COMPLETE,
        _T.MESSAGE_REFUSED,
    )
)
"""Types of messages that only report an event. They change no state and have no effects, so no handler subscribes to
them."""


def read_payload(type: MessageType, payload: object) -> msgspec.Struct:
    """The payload of a message as its struct. Raises InvalidInput with the name of the field."""
    wanted = ROUTES[type].payload
    try:
        return msgspec.convert(payload, wanted)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, wanted, "payload") from None
