"""The tools runner: one request, one call, one response. The only tool that it knows by name is the model.

A call that must not be repeated is marked before it begins. If there is a marker and no response, the process died
during the call: the response says `interrupted`, and the call is not repeated.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import ToolData
from clew.agents.permissions.questions import (
    CHANGED,
    deleted_question_handler,
    find_open_question,
    find_subject,
    is_id_taken,
)
from clew.agents.repairs.failures import CallFailure, FailedTool, is_retryable
from clew.agents.repairs.guard import Guard
from clew.agents.repairs.policy import RepairPolicy
from clew.agents.runs.agent_runner import BudgetOf
from clew.agents.runs.call_limits import MODELS, RUNNER, CallLimits
from clew.agents.runs.called_agents import Deferred, may_caller_call
from clew.agents.runs.cancellation import RunCancellation, RunCancelled
from clew.agents.runs.executor import Gathered, UniversalExecutor, inherit
from clew.agents.runs.model_calls import ModelCalls
from clew.agents.runs.requests import TOOLS, ToolRequest, read_request, response_draft, with_own_id
from clew.agents.runs.run_limits import begun, require_hop
from clew.agents.tools.tool_calls import CallMarkers, find_config, response_output
from clew.agents.tools.toolbox import SPAWN, FoundTool, Toolbox, may_call
from clew.agents.workers.placement import NEWEST, find_place, is_queued, queue_of, refusal
from clew.clock import Clock
from clew.context.definition import AgentDefinition, Subscription
from clew.errors import BudgetExceeded, ClewError, InvalidInput, ToolFailure, Unreachable
from clew.tools.content import GuidedContent
from clew.tools.hook_chain import HookChain
from clew.tools.permissions.policy import Policy
from clew.tools.tool import ToolContext
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import ClaimLimits, Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.claims import printable
from clew.trail.work.correlation import PLACE_TAG, REQUEST_TAG, find_request_id, find_root, find_run, inherited_tags
from clew.trail.work.handlers import Handler

UNAPPROVED_TIME_LIMIT = 60.0
"""Time limit in seconds of a tool that is defined by a breadcrumb and runs without asking the user."""
ATTEMPTS = 3
"""The total number of attempts at a call that fails with a transient error, unless the database server is away."""
PATIENCE = RetryPolicy(attempts=20, backoff=0.5, backoff_limit=30.0)
"""The retry policy of the handlers. It covers failures of the storage, in addition to the attempts at a call."""

MAX_WHY = 500

_log = logging.getLogger(__name__)

FindAgent = Callable[[str], Awaitable[AgentDefinition | None]]
PolicyOf = Callable[[AgentDefinition | None], Awaitable[Policy]]
"""The policy of an agent, narrowed by those of its callers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDeps:
    """The dependencies of tools."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    toolbox: Toolbox
    models: ModelCalls
    hooks: HookChain
    cancelling: RunCancellation
    guard: Guard
    find_agent: FindAgent
    budget_of: BudgetOf
    policy_of: PolicyOf
    desk: RepairPolicy
    limits: CallLimits
    places: Sequence[str] = ()
    """The places that this process announces."""


def model_handlers(deps: ToolDeps) -> list[Handler]:
    """The handlers of requests to models."""
    return _request_handlers(MODELS, deps, "eq", ToolsRunner(deps), deps.limits.of_models)


def tools_handlers(deps: ToolDeps) -> list[Handler]:
    """The handlers of tool requests and of the user's answers to questions for permission. Each place of this process
    has its own queue."""
    withdrawn = deleted_question_handler(f"{RUNNER}/withdrawn", deps.trail, deps.flow, by=deps.by, retry=PATIENCE)
    placed = [each for place in deps.places for each in _tools_handlers(queue_of(place), deps, place)]
    return [*_tools_handlers(RUNNER, deps, None), withdrawn, *placed]


def _tools_handlers(name: str, deps: ToolDeps, place: str | None) -> list[Handler]:
    runner = ToolsRunner(deps, place)
    answers = UniversalExecutor([Subscription(schema_name=deps.flow.permission_answer)], runner.on_permission).handlers(
        f"{name}/permissions", after=_start_of(place), ordered=False, retry=PATIENCE
    )
    requests = _request_handlers(name, deps, "ne", runner, deps.limits.of_tools)
    return [*requests, *(replace(each, given_up=runner.on_given_up) for each in answers)]


def _request_handlers(
    name: str, deps: ToolDeps, op: Literal["eq", "ne"], runner: ToolsRunner, limits: ClaimLimits
) -> list[Handler]:
    executor = UniversalExecutor([_requests(deps.flow, op, runner.place)], runner.on_request)
    handlers = executor.handlers(name, after=_start_of(runner.place), ordered=False, retry=PATIENCE)
    return [replace(each, refused=runner.on_refused, given_up=runner.on_given_up, limits=limits) for each in handlers]


def _start_of(place: str | None) -> int | None:
    """The start of a queue. The start of a place's queue is stored, because `is_queued` needs it."""
    return None if place is None else NEWEST


def _requests(flow: Flow, op: Literal["eq", "ne"], place: str | None) -> Subscription:
    """The subscription to model requests (`op` is "eq") or to all other requests ("ne"). With a `place`, only to the
    requests of that place."""
    match = ContextMatch(path="tool", op=op, value=flow.model_tool)
    tags = (TOOLS,) if place is None else (TOOLS, PLACE_TAG + place)
    return Subscription(schema_name=flow.request, all_tags=tags, context_match=(match,))


class ToolsRunner:
    """Runs tool calls, one event at a time: the calls of one place, or the calls without a place."""

    def __init__(self, deps: ToolDeps, place: str | None = None) -> None:
        self.place = place
        self._deps = deps
        self._flow = deps.flow
        self._begun = CallMarkers(deps.trail, deps.flow, by=deps.by)

    async def on_request(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        """Handle a request. The limits of the queue bound the number of requests that are handled at a time."""
        if self._is_elsewhere(trigger):
            return await self._leave(trigger, event)
        return await self._respond(trigger, event, permitted=None)

    def on_refused(self, event: Event, error: ClewError) -> Sequence[Draft]:
        """The error response for a result that cannot be stored. The call is not repeated."""
        record = event.breadcrumb
        if record is None:
            return ()
        tool = str(record.context.get("tool") or "unknown")
        why = f"its result cannot be stored: {error}"[:MAX_WHY]
        return [inherit(response_draft(self._flow, record, tool, "error", error=why), record)]

    async def on_given_up(self, event: Event, reason: str) -> Sequence[Draft]:
        """The error response to a call that failed too often or with which too many workers died. The run continues
        with this response."""
        record = await self._find_call(event)
        if record is None:
            return ()
        is_request = record.schema_name == self._flow.request
        if is_request and await is_id_taken(self._deps.trail, self._flow, record, by=self._deps.by):
            record = with_own_id(record)
        if await self._has_response(record):
            return ()
        if self._is_elsewhere(record):
            return await self._leave(record, event)
        return [self._refusal(record, f"it was given up: {reason}"[:MAX_WHY], "given_up")]

    async def on_permission(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        """Continue with a request after the answer of the user. An answer without an open question does nothing, and a
        request that was changed after the question is not run."""
        question = await find_open_question(self._deps.trail, self._flow, trigger, by=self._deps.by)
        if question is not None and find_place(question) != self.place:
            return ()  # the workers of that place receive the answer too
        if question is None:
            _log.warning("the answer %s to %s is ignored: it has no open question", trigger.id, _about(trigger))
            return ()
        request = await find_subject(self._deps.trail, question, by=self._deps.by)
        if request is None:
            tool = str(question.context.get("tool") or "unknown")
            return [response_draft(self._flow, question, tool, "error", error=f"{tool} was not run: {CHANGED}")]
        return await self._respond(request, event, permitted=str(trigger.context.get("answer") or "deny"))

    def _is_elsewhere(self, record: Breadcrumb) -> bool:
        """Whether a request belongs to the workers of another place. Model calls have no place."""
        is_model = record.context.get("tool") == self._flow.model_tool
        return not is_model and find_place(record) != self.place

    async def _leave(self, record: Breadcrumb, event: Event) -> Sequence[Draft]:
        """Leave a request to the queue of its place. If the place had no queue when the request was made, refuse the
        request."""
        place = find_place(record)
        if place is None or self.place is not None:
            return ()
        if await is_queued(self._deps.trail, place, event, by=self._deps.by):
            return ()
        return await self.refuse(event, place, refusal(place))

    async def refuse(self, event: Event, place: str, why: str) -> Sequence[Draft]:
        """The error response to a call that no worker can make. `event` is the request of the call, or the user's
        answer to the question about it."""
        record = await self._find_call(event)
        if record is None or find_place(record) != place or await self._has_response(record):
            return ()
        return [self._refusal(record, why, "placement")]

    async def _find_call(self, event: Event) -> Breadcrumb | None:
        """The request of an event. If the event is an answer, this is the request of its open question, or the question
        itself if the request was changed."""
        record = event.breadcrumb
        if record is None or record.schema_name != self._flow.permission_answer:
            return record
        question = await find_open_question(self._deps.trail, self._flow, record, by=self._deps.by)
        if question is None:
            return None
        return await find_subject(self._deps.trail, question, by=self._deps.by) or question

    def _refusal(self, record: Breadcrumb, why: str, error_type: str) -> Draft:
        """The error response to a request that is not run, or not again."""
        tool = str(record.context.get("tool") or "unknown")
        return inherit(
            response_draft(self._flow, record, tool, "error", error=why, extra={"error_type": error_type}), record
        )

    async def _has_response(self, record: Breadcrumb) -> bool:
        tag = REQUEST_TAG + (find_request_id(record) or record.id)
        selector = Selector(schema_name=self._flow.response, all_tags=(tag,))
        return bool((await self._deps.trail.records.list(selector, by=self._deps.by, limit=1)).items)

    async def _respond(self, record: Breadcrumb, event: Event, permitted: str | None) -> Sequence[Draft]:
        """Run a request and return the records to write. Raises only if a retry may help."""
        began = time.monotonic()
        try:
            request = read_request(record)
        except InvalidInput as error:
            tool = str(record.context.get("tool") or "unknown")
            return [response_draft(self._flow, record, tool, "error", error=str(error))]
        try:
            return await self._run(request, record, event, permitted, began)
        except RunCancelled:
            return [response_draft(self._flow, record, request.tool, "cancelled", error="cancelled")]
        except BudgetExceeded as error:
            why = {"error_type": "budget"}
            return [response_draft(self._flow, record, request.tool, "error", error=str(error), extra=why)]
        except Exception as error:
            most = PATIENCE.attempts if isinstance(error, Unreachable) else ATTEMPTS
            if event.attempt < most and is_retryable(error) and not await self._begun.has_begun(request):
                raise
            return await self._failed(record, error, request, event, began)

    async def _run(
        self, request: ToolRequest, record: Breadcrumb, event: Event, permitted: str | None, began: float
    ) -> Sequence[Draft]:
        agent = await self._deps.find_agent(request.requested_by) if request.requested_by else None
        config = await find_config(self._deps.trail, self._flow, request, by=self._deps.by)
        if request.tool == self._flow.model_tool:
            output, further = await self._ask_model(request, record, event, agent, config)
            return [*further, self._success(record, request, output, began)]  # the last piece of the text comes first
        run = find_run(record) or record.id
        found = await self._find(request, agent, config)
        if request.tool == SPAWN:
            require_hop(record)
        data = ToolData(
            tool=found.tool,
            arguments=request.input,
            agent=agent,
            record=found.record,
            request=record,
            permitted=permitted,
            by=self._principal(request, record),
        )
        data = await self._deps.hooks.run("pre_tool", data)
        if data.is_waiting:
            return data.drafts
        if await self._begun.was_interrupted(found.tool.effects, request, record):
            why = f"the process died during {request.tool}, which may or may not have been done"
            lost = response_draft(self._flow, record, request.tool, "interrupted", error=why)
            return [*data.drafts, lost]
        content = await self._guarded(found.guarded_as, run, lambda: self._call(found, data, event, run))
        if isinstance(content, Deferred):
            return [*data.drafts, *begun(list(content.drafts), record)]
        output = response_output(content, found.tool.limits.characters)
        data = msgspec.structs.replace(data, result=output, seconds=time.monotonic() - began)
        data = await self._deps.hooks.run("post_tool", data)
        return [self._success(record, request, data.result, began, data.tags), *data.drafts]

    # -- one call -----------------------------------------------------------------------------------------

    async def _ask_model(
        self,
        request: ToolRequest,
        record: Breadcrumb,
        event: Event,
        agent: AgentDefinition | None,
        config: dict[str, Any],
    ) -> tuple[Any, Sequence[Draft]]:
        """The answer of a model, and further records about the call."""
        budget = await self._deps.budget_of(agent, record) if agent is not None else None
        asked: tuple[Any, Sequence[Draft]] = await self._guarded(
            f"{request.tool}:{request.requested_by}",
            find_run(record) or record.id,
            lambda: self._deps.models.call(request, record, config, budget=budget, key=event.key),
        )
        return asked

    async def _call(self, found: FoundTool, data: ToolData, event: Event, run: str) -> GuidedContent:
        agreed = data.permitted is not None  # a denial has ended the call before
        context = ToolContext(
            by=data.by,
            key=event.key,
            run=run,
            root=find_root(data.request),
            lineage=inherited_tags(data.request),
            route=data.request.id,
            permitted=agreed,
            policy=await self._deps.policy_of(data.agent),
        )
        most = UNAPPROVED_TIME_LIMIT if found.record is not None and not agreed else math.inf
        async with asyncio.timeout(min(found.tool.limits.seconds, most)):
            return await found.tool.call(dict(data.arguments), context)

    async def _guarded(self, name: str, run: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run a call, guarded and cancellable. The guard is inside, so a cancellation does not count as a failure of
        the tool."""
        return await self._deps.cancelling.work(run, lambda: self._deps.guard.run(name, call))

    async def _find(self, request: ToolRequest, agent: AgentDefinition | None, config: dict[str, Any]) -> FoundTool:
        """The tool of a request. Raises InvalidInput with the known names for an unknown tool, and ToolFailure if the
        agent or its caller may not call the tool."""
        found = await self._deps.toolbox.find(request.tool, by=self._deps.by, config=config)
        if found is None:
            box, by = self._deps.toolbox, self._deps.by
            own = [each.name for each in await box.specs(agent, by=by)] if agent else await box.names(by=by)
            raise InvalidInput("tool", f"{request.tool!r} does not exist", hint=f"Tools are {', '.join(own) or 'none'}")
        if agent is not None and not may_call(agent, request.tool, named_only=not found.tool.searchable):
            hint = "Add it to capabilities.tools of the definition"
            raise ToolFailure("permission", f"{agent.agent_id} may not call {request.tool}", hint=hint)
        if agent is not None and not await may_caller_call(agent, found.tool, self._deps.find_agent):
            hint = "A called agent may use only tools of its caller"
            raise ToolFailure("permission", f"the caller of {agent.agent_id} may not call {request.tool}", hint=hint)
        return found

    def _principal(self, request: ToolRequest, record: Breadcrumb) -> Principal:
        """The principal of a tool call. It cannot answer questions for permission."""
        return msgspec.structs.replace(
            self._deps.by,
            agent_id=request.requested_by or self._deps.by.agent_id,
            session=record.session,
            steers=False,
        )

    # -- responses ----------------------------------------------------------------------------------------

    def _success(
        self, record: Breadcrumb, request: ToolRequest, output: Any, began: float, tags: tuple[str, ...] = ()
    ) -> Draft:
        draft = response_draft(
            self._flow, record, request.tool, "success", output=output, milliseconds=_milliseconds(began)
        )
        return msgspec.structs.replace(draft, tags=(*draft.tags, *tags)) if tags else draft

    async def _failed(
        self, record: Breadcrumb, error: Exception, request: ToolRequest, event: Event, began: float
    ) -> Sequence[Draft]:
        """The response, and the record of the error. A built-in tool is recorded by its name only. If another request
        has the same id, the response uses the record id, so that the other request's questions stay open."""
        if await is_id_taken(self._deps.trail, self._flow, record, by=self._deps.by):
            record = with_own_id(record)
        failure = CallFailure(
            error=error,
            failed_at=self._deps.clock.now(),
            attempt=max(1, event.attempt),
            seconds=time.monotonic() - began,
        )
        made_of = await self._deps.toolbox.find_record(request.tool, by=self._deps.by)
        if made_of is None:
            return await self._deps.desk.drafts(record, failure, FailedTool(name=request.tool), None)
        limits = made_of.context.get("limits")
        tool = FailedTool(
            name=request.tool,
            id=made_of.id,
            version=made_of.version,
            limits=limits if isinstance(limits, dict) else {},
        )
        return await self._deps.desk.drafts(record, failure, tool, made_of)


def _about(answer: Breadcrumb) -> str:
    """The request id of an answer, printable for a log."""
    return printable(find_request_id(answer) or "no request", 100)


def _milliseconds(began: float) -> float:
    return (time.monotonic() - began) * 1000
