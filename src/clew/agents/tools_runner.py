"""The tools runner: one request, one call, one response. It knows no tool by name but the one that asks a model.

A call that may not be repeated leaves a mark before it begins. Where the mark is there and no response, the process
ended in between: that is told, and the call is not made again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.agent_runner import BudgetOf
from clew.agents.cancelling import Cancelling, RunCancelled
from clew.agents.executor import Gathered, UniversalExecutor
from clew.agents.failures import FailedTool, Failure, is_retryable
from clew.agents.guard import Guard
from clew.agents.hooks import HookChain, ToolData
from clew.agents.model_calls import ModelCalls
from clew.agents.repairs import RepairDesk
from clew.agents.requests import MODEL_TOOL, TOOLS, ToolRequest, read_request, response_draft
from clew.agents.spawning import Deferred
from clew.agents.toolbox import Found, Toolbox, may_call
from clew.clock import Clock
from clew.context.definition import AgentDefinition, Subscription
from clew.errors import BudgetExceeded, InvalidInput, NotFound, ToolFailure
from clew.tools.content import GuidedContent, Valued
from clew.tools.tool import Effects, ToolContext
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.correlation import find_run, inherited_tags
from clew.trail.event import Event, RetryPolicy
from clew.trail.flow import Flow
from clew.trail.handlers import Handler
from clew.trail.selector import Selector
from clew.trail.store import Trail

ATTEMPTS = 3
"""How often a call that failed for a passing reason is made in all."""
PATIENCE = RetryPolicy(attempts=20, backoff=0.5, backoff_limit=30.0)
"""Beyond the attempts at a call: deaths of the process."""

FindAgent = Callable[[str], Awaitable[AgentDefinition | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDeps:
    """What tools need of the world."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    toolbox: Toolbox
    models: ModelCalls
    hooks: HookChain
    cancelling: Cancelling
    guard: Guard
    find_agent: FindAgent
    budget_of: BudgetOf
    desk: RepairDesk


def tools_handlers(deps: ToolDeps) -> list[Handler]:
    """What handles requests, side by side, and the answers of users to what they were asked."""
    runner = ToolsRunner(deps)
    requests = UniversalExecutor(
        [Subscription(schema_name=deps.flow.request, all_tags=(TOOLS,))], runner.on_request
    ).handlers("tools-runner", ordered=False, retry=PATIENCE)
    answers = UniversalExecutor([Subscription(schema_name=deps.flow.permission_answer)], runner.on_permission).handlers(
        "tools-runner/permissions", ordered=False, retry=PATIENCE
    )
    return [*requests, *answers]


class ToolsRunner:
    """Runs tools, one event at a time."""

    def __init__(self, deps: ToolDeps) -> None:
        self._deps = deps
        self._flow = deps.flow

    async def on_request(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        return await self._respond(trigger, event, permitted=None)

    async def on_permission(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        """Go on with a request that waited for its user. An answer to anything else brings nothing."""
        request = await self._waiting_request(trigger)
        if request is None:
            return ()
        return await self._respond(request, event, permitted=str(trigger.context.get("answer") or "deny"))

    async def _waiting_request(self, answer: Breadcrumb) -> Breadcrumb | None:
        """The request that an answer is for, if its user was asked, said nothing else before, and it has no response
        yet. Of several records that claim to be the request the first is: that one was asked about."""
        flow = self._flow
        schemas = (flow.request, flow.permission_request, flow.permission_answer, flow.response)
        tags = (f"request:{answer.context.get('request_id') or ''}",)
        selector = Selector(schema_names=schemas, all_tags=tags)
        page = await self._deps.trail.records.list(selector, by=self._deps.by, limit=100, oldest_first=True)
        first: dict[str | None, Breadcrumb] = {}
        for each in page.items:
            if each.schema_name != flow.permission_answer or flow.permission_request in first:
                first.setdefault(each.schema_name, each)
        counted = first.get(flow.permission_answer)
        if counted is None or counted.id != answer.id or flow.response in first:
            return None
        return first.get(flow.request)

    async def _respond(self, record: Breadcrumb, event: Event, permitted: str | None) -> Sequence[Draft]:
        """All that is written for a request. Raises only where a later attempt may do better."""
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
            if event.attempt < ATTEMPTS and is_retryable(error) and not await self._has_begun(request):
                raise
            return await self._failed(record, error, request, event, began)

    async def _run(
        self, request: ToolRequest, record: Breadcrumb, event: Event, permitted: str | None, began: float
    ) -> Sequence[Draft]:
        agent = await self._deps.find_agent(request.requested_by) if request.requested_by else None
        config = await self._config(request)
        run = find_run(record) or record.id
        if request.tool == MODEL_TOOL:
            budget = await self._deps.budget_of(agent, record) if agent is not None else None
            output, extra = await self._guarded(
                f"{MODEL_TOOL}:{request.requested_by}",
                run,
                lambda: self._deps.models.call(request, record, config, budget=budget, key=event.key),
            )
            return [self._success(record, request, output, began), *extra]
        found = await self._find(request, agent, config)
        data = ToolData(
            tool=found.tool,
            arguments=request.input,
            agent=agent,
            request=record,
            permitted=permitted,
            by=self._principal(request, record),
        )
        data = await self._deps.hooks.run("pre_tool", data)
        if data.is_waiting:
            return data.drafts
        if await self._was_interrupted(found.tool.effects, request, record):
            why = f"{request.tool} was under way when the process ended, and may or may not have been done"
            lost = response_draft(self._flow, record, request.tool, "interrupted", error=why)
            return [*data.drafts, lost]
        content = await self._guarded(found.guarded_as, run, lambda: self._call(found, data, event, run))
        if isinstance(content, Deferred):
            return [*data.drafts, *content.drafts]
        output = _output(content, found.tool.limits.characters)
        data = msgspec.structs.replace(data, result=output, seconds=time.monotonic() - began)
        data = await self._deps.hooks.run("post_tool", data)
        return [self._success(record, request, data.result, began, data.tags), *data.drafts]

    # -- one call -----------------------------------------------------------------------------------------

    async def _call(self, found: Found, data: ToolData, event: Event, run: str) -> GuidedContent:
        agreed = data.permitted is not None  # a no has ended the call before
        context = ToolContext(by=data.by, key=event.key, run=run, route=data.request.id, permitted=agreed)
        async with asyncio.timeout(found.tool.limits.seconds):
            return await found.tool.call(dict(data.arguments), context)

    async def _guarded(self, name: str, run: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The guard is within: that a run was called off says nothing ill of what it called."""
        return await self._deps.cancelling.work(run, lambda: self._deps.guard.run(name, call))

    async def _was_interrupted(self, effects: Effects, request: ToolRequest, record: Breadcrumb) -> bool:
        """Whether a call that must not be repeated had begun. Where it had not, it is marked as begun."""
        if effects.reads_only or effects.repeats_safely or effects.keyed:
            return False
        if await self._has_begun(request):
            return True
        mark = Draft(
            title=f"{request.tool} begins"[:200],
            schema_name=self._flow.started,
            tags=(f"request:{request.request_id}", *inherited_tags(record)),
            context={"request_id": request.request_id, "tool": request.tool},
            embed="never",
        )
        await self._deps.trail.records.create(mark, by=self._deps.by)
        return False

    async def _has_begun(self, request: ToolRequest) -> bool:
        """Whether there is the mark of a call that must not be repeated."""
        selector = Selector(schema_name=self._flow.started, all_tags=(f"request:{request.request_id}",))
        return bool((await self._deps.trail.records.list(selector, by=self._deps.by, limit=1)).items)

    async def _find(self, request: ToolRequest, agent: AgentDefinition | None, config: dict[str, Any]) -> Found:
        """Raises InvalidInput that tells the names there are, ToolFailure where the agent may not."""
        found = await self._deps.toolbox.find(request.tool, by=self._deps.by, config=config)
        if found is None:
            names = await self._deps.toolbox.names(by=self._deps.by)
            own = [name for name in names if agent is None or may_call(agent, name)]
            raise InvalidInput("tool", f"there is no {request.tool!r}", hint=f"Tools are {', '.join(own)}")
        if agent is not None and not may_call(agent, request.tool, named_only=not found.tool.searchable):
            hint = "capabilities.tools of its definition names what it has"
            raise ToolFailure("permission", f"{agent.agent_id} may not call {request.tool}", hint=hint)
        return found

    async def _config(self, request: ToolRequest) -> dict[str, Any]:
        """The configuration that a request names, or the newest one for its tool."""
        records = self._deps.trail.records
        if request.config_id is not None:
            try:
                return dict((await records.get(request.config_id, by=self._deps.by)).context)
            except NotFound:
                hint = "Write one, or leave config_id out"
                raise InvalidInput("config_id", f"there is no {request.config_id}", hint=hint) from None
        selector = Selector(schema_name=self._flow.tool_config, all_tags=(f"tool:{request.tool}",))
        page = await records.list(selector, by=self._deps.by, limit=1)
        return dict(page.items[0].context) if page.items else {}

    def _principal(self, request: ToolRequest, record: Breadcrumb) -> Principal:
        """Who a tool works for. It cannot answer in the place of a person."""
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
        """The response, and the record of the error; a tool that comes with the program is known by its name alone."""
        failure = Failure(
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


def _output(content: GuidedContent, most: int) -> Any:
    """What a response holds: a value as it is, where it is not too long, and else text."""
    if isinstance(content, Valued) and len(content.content) <= most:
        return content.value
    return _within(content, most)


def _within(content: GuidedContent, most: int) -> str:
    """What a tool gave back as text, no longer than its limit."""
    text = content.content
    steps = "\n".join(f"- {step.route}: {step.prose}" for step in content.guidance)
    text = f"{text}\n\nNext steps:\n{steps}" if steps else text
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were left out]"


def _milliseconds(began: float) -> float:
    return (time.monotonic() - began) * 1000
