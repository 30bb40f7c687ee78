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
"""Everybody who sends or receives a message. `runtime` stands for the runners of agents and tools."""
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


class MessageRoute(NamedTuple):
    """The payload of a type, and the members that send and receive it."""

    payload: type[msgspec.Struct]
    senders: tuple[str, ...]
    receivers: tuple[str, ...]


_T = MessageType
ROUTES: dict[MessageType, MessageRoute] = {
    _T.USER_INPUT: MessageRoute(p.TextPayload, (USER,), (GUIDE,)),
    _T.USER_RESPONSE: MessageRoute(p.TextPayload, (USER,), AGENTS),
    _T.SESSION_CREATE: MessageRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_SWITCH: MessageRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_SUSPEND: MessageRoute(p.SessionChange, (USER, RUNTIME), (GUIDE,)),
    _T.SESSION_RESUME: MessageRoute(p.SessionChange, (USER,), (GUIDE,)),
    _T.SESSION_COMPLETE: MessageRoute(p.SessionChange, (USER, RUNTIME), (GUIDE,)),
    _T.RESEARCH_REQUEST: MessageRoute(p.TeamQuery, (USER, *AGENTS), (ACADEMIC,)),
    _T.RESEARCH_RESPONSE: MessageRoute(p.TeamReply, (ACADEMIC, RUNTIME), (USER, *AGENTS)),
    _T.CONTEXT_REQUEST: MessageRoute(p.TeamQuery, (USER, *AGENTS), (LIBRARIAN,)),
    _T.CONTEXT_RESPONSE: MessageRoute(p.TeamReply, (LIBRARIAN, RUNTIME), (USER, *AGENTS)),
    _T.HISTORY_REQUEST: MessageRoute(p.TeamQuery, (USER, *AGENTS), (ARCHIVALIST,)),
    _T.HISTORY_RESPONSE: MessageRoute(p.TeamReply, (ARCHIVALIST, RUNTIME), (USER, *AGENTS)),
    _T.STORE_REQUEST: MessageRoute(p.StoreRequest, AGENTS, (ARCHIVALIST,)),
    _T.PLAN_REQUEST: MessageRoute(p.PlanRequest, (USER,), (ARCHITECT,)),
    _T.PLAN_RESPONSE: MessageRoute(p.PlanProposal, (ARCHITECT,), (USER,)),
    _T.PLAN_APPROVED: MessageRoute(p.PlanApproval, (USER, RUNTIME), (ARCHITECT,)),
    _T.PLAN_MODIFIED: MessageRoute(p.TextPayload, (USER,), (ARCHITECT,)),
    _T.DAG_EXECUTE: MessageRoute(p.PlanProposal, (ARCHITECT,), (ORCHESTRATOR,)),
    _T.DAG_STATUS: MessageRoute(p.DagProgress, (ORCHESTRATOR,), (ARCHITECT,)),
    _T.TASK_DISPATCH: MessageRoute(p.Dispatch, (ORCHESTRATOR,), BUILDERS),
    _T.TASK_COMPLETE: MessageRoute(p.TaskClaim, BUILDERS, (ORCHESTRATOR,)),
    _T.TASK_FAILED: MessageRoute(p.TaskFailure, (*BUILDERS, RUNTIME), (ORCHESTRATOR,)),
    _T.TASK_HELP: MessageRoute(p.TeamQuestion, BUILDERS, (ORCHESTRATOR,)),
    _T.CLARIFICATION_REQUEST: MessageRoute(p.TeamQuestion, (ARCHITECT, ORCHESTRATOR), (USER, ARCHITECT)),
    _T.CLARIFICATION_RESPONSE: MessageRoute(p.QuestionAnswer, (USER, ARCHITECT, ORCHESTRATOR), (ARCHITECT, *BUILDERS)),
    _T.VALIDATE_TASK: MessageRoute(p.TaskReference, (ORCHESTRATOR,), (INSPECTOR,)),
    _T.VALIDATION_RESULT: MessageRoute(p.Findings, (INSPECTOR,), (ORCHESTRATOR,)),
    _T.VALIDATION_FULL: MessageRoute(p.Findings, (INSPECTOR,), (USER,)),
    _T.VALIDATION_CORRECTIONS: MessageRoute(p.Findings, (INSPECTOR,), (ARCHITECT,)),
    _T.TEST_PLAN_REQUEST: MessageRoute(p.TextPayload, (ARCHITECT,), (TESTER,)),
    _T.TEST_PLAN_RESPONSE: MessageRoute(p.TextPayload, (TESTER,), (USER,)),
    _T.TEST_DAG_REQUEST: MessageRoute(p.TextPayload, (TESTER,), (ARCHITECT,)),
    _T.TESTS_READY: MessageRoute(p.TextPayload, (ORCHESTRATOR,), (TESTER,)),
    _T.TEST_RESULTS: MessageRoute(p.TestReport, (TESTER,), (USER, ARCHITECT)),
    _T.TEST_CORRECTIONS: MessageRoute(p.TestReport, (TESTER,), (ARCHITECT,)),
    _T.USER_OVERRIDE: MessageRoute(p.UserOverride, (USER,), (INSPECTOR, TESTER)),
    _T.USER_INTERRUPT: MessageRoute(p.UserInterrupt, (USER,), (ARCHITECT,)),
    _T.WORKFLOW_COMPLETE: MessageRoute(p.CompletionSummary, (ARCHITECT,), (USER,)),
    _T.PIPELINE_COMPLETE: MessageRoute(p.PipelineResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.PIPELINE_FAILED: MessageRoute(p.PipelineResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.INSPECTOR_FEEDBACK: MessageRoute(p.Findings, (INSPECTOR,), BUILDERS),
    _T.TESTER_FEEDBACK: MessageRoute(p.TestReport, (TESTER,), BUILDERS),
    _T.INSPECTION_REQUEST: MessageRoute(p.TextPayload, (ARCHITECT,), (INSPECTOR,)),
    _T.INSPECTION_RESULTS: MessageRoute(p.Findings, (INSPECTOR,), (ARCHITECT,)),
    _T.USER_TASK_PROMPT: MessageRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_TASK_QUERY: MessageRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_TASK_INTERRUPT: MessageRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_IGNORE_INSPECTOR: MessageRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.USER_IGNORE_TESTER: MessageRoute(p.TaskText, (USER,), (ORCHESTRATOR,)),
    _T.HANDOFF_REQUEST: MessageRoute(p.PipelineHandoff, (*BUILDERS, USER, RUNTIME), (ARCHITECT,)),
    _T.CREATE_PIPELINE_WITH_STATE: MessageRoute(p.PipelineTransfer, (ARCHITECT,), (ORCHESTRATOR,)),
    _T.HANDOFF_COMPLETE: MessageRoute(p.PipelineTransfer, (ORCHESTRATOR,), (ARCHITECT,)),
    _T.STORE_SUMMARY: MessageRoute(p.StoreRequest, (*AGENTS, RUNTIME), (ARCHIVALIST,)),
    _T.TOOL_DISCOVERY_REQUEST: MessageRoute(p.TeamQuery, (INSPECTOR, TESTER), (LIBRARIAN,)),
    _T.TOOL_DISCOVERY_RESPONSE: MessageRoute(p.TeamReply, (LIBRARIAN, RUNTIME), (INSPECTOR, TESTER)),
    _T.RUN_ENDED: MessageRoute(p.RunEnd, (RUNTIME,), (ORCHESTRATOR,)),
    _T.CALL_RESULT: MessageRoute(p.CallResult, (RUNTIME,), (ORCHESTRATOR,)),
    _T.TIMER_DUE: MessageRoute(p.TimerDue, (RUNTIME,), (ORCHESTRATOR,)),
    _T.TASK_ANSWER: MessageRoute(p.TaskText, (*BUILDERS, RUNTIME), (USER,)),
    _T.USER_CHOICE: MessageRoute(p.PipelineChoice, (USER,), (ORCHESTRATOR,)),
    _T.MESSAGE_REFUSED: MessageRoute(p.MessageRefusal, (GUIDE, RUNTIME), MEMBERS),
}


def read_payload(type: MessageType, payload: object) -> msgspec.Struct:
    """The payload of a message as its struct. Raises InvalidInput with the name of the field."""
    wanted = ROUTES[type].payload
    try:
        return msgspec.convert(payload, wanted)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, wanted, "payload") from None
