"""The agent runner. From a context it makes a model request, from the model's answer tool requests, from their
responses the next model request, and at the end an answer. Each step handles one event; the state of an agent is on the
trail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import PromptData
from clew.agents.permissions.lasting_permissions import TRIGGER_TAG, trigger_tags
from clew.agents.runs.callers import find_caller
from clew.agents.runs.cancellation import cancel_called
from clew.agents.runs.compaction import RunCompaction
from clew.agents.runs.executor import Gather, Gathered, UniversalExecutor, inherit
from clew.agents.runs.loop_detection import find_loop
from clew.agents.runs.model_messages import gathered_message, turn_fingerprint, turn_messages
from clew.agents.runs.prompts import PromptSnapshot, keep_snapshot, model_input, source_of
from clew.agents.runs.requests import TURN_TAG, ToolResponse, read_response, request_draft, response_draft
from clew.agents.runs.run_limits import is_early_end
from clew.agents.runs.run_records import RunRecords
from clew.agents.runs.run_state import ModelTurn, RunState, calls_of, read_state
from clew.agents.runs.stop_records import Stop, stop_for_budget, stop_for_loop, stop_for_turns, stopped_draft
from clew.clock import Clock
from clew.context.definition import AgentDefinition, Subscription
from clew.errors import BudgetExceeded, ClewError, StorageError
from clew.llm.messages import Message, ToolSpec
from clew.tools.hook_chain import HookChain
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, RUN_TAG, find_run, run_tag

MAX_TURNS = 50
"""How many model requests one run may make by default."""
MAX_CALLS = 32
"""How many tools one answer of a model may call."""

_AGAIN = "The next message of this session continues from here"
_DELETED = Stop(why="error", detail="an answer of the model was deleted before the run ended", how_to_go_on=_AGAIN)

ToolSpecs = Callable[[AgentDefinition], Awaitable[tuple[ToolSpec, ...]]]
BudgetOf = Callable[[AgentDefinition, Breadcrumb], Awaitable[str | None]]
"""The name of the budget that pays for the calls of an agent; None without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDeps:
    """The dependencies of agents."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    specs: ToolSpecs
    hooks: HookChain
    budget_of: BudgetOf
    runs: RunRecords
    gather: Gather | None = None
    compaction: RunCompaction | None = None


def agent_executor(definition: AgentDefinition, deps: AgentDeps) -> UniversalExecutor:
    """The executor of one agent: for contexts and responses that are addressed to it, and for its own triggers."""
    flow = deps.flow
    addressed = Subscription(
        schema_names=(flow.context, flow.response, flow.cancel), all_tags=(CONSUMER_TAG + definition.agent_id,)
    )
    own = [each for each in definition.subscriptions.selectors if not _is_addressed(each, addressed)]
    runner = AgentRunner(definition, deps)
    return UniversalExecutor([addressed, *own], runner.execute, deps.gather, runner.on_gone)


def _is_addressed(subscription: Subscription, addressed: Subscription) -> bool:
    """Whether a subscription is redundant, because these schemas trigger every agent."""
    schemas = set(subscription.schemas)
    return subscription.role == "trigger" and bool(schemas) and schemas <= set(addressed.schema_names)


class AgentRunner:
    """Works for one agent, one event at a time."""

    def __init__(self, definition: AgentDefinition, deps: AgentDeps) -> None:
        self._agent = definition
        self._deps = deps
        self._flow = deps.flow

    async def execute(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        run = find_run(trigger) or trigger.id
        state = read_state(self._flow, await self._deps.runs.read(run), self._agent.agent_id)
        if trigger.schema_name == self._flow.response and trigger.id not in state.records:
            return await self.on_gone(event)  # deleted since this event was read
        drafts = () if state.is_ended else await self._step(trigger, gathered, state)
        if state.is_ended or any(each.schema_name == self._flow.answer for each in drafts):
            self._deps.runs.forget(run)
        return [_with_run(draft, run) for draft in drafts]

    async def on_gone(self, event: Event) -> Sequence[Draft]:
        """Go on without a response that was deleted before this agent saw it. Without the answer of the model, the run
        stops."""
        run = next((tag.removeprefix(RUN_TAG) for tag in event.tags if tag.startswith(RUN_TAG)), None)
        if run is None or event.schema_name != self._flow.response:
            return ()
        self._deps.runs.forget(run)  # a copy that was updated from the log lacks the response
        state = read_state(self._flow, await self._deps.runs.read(run), self._agent.agent_id)
        response = state.records.get(event.breadcrumb_id)
        if response is not None:
            return [inherit(draft, response) for draft in await self.execute(response, {}, event)]
        asked = state.find_unanswered(event.tags)
        if asked is None or state.is_ended:
            return ()
        return [inherit(_with_run(draft, run), asked) for draft in await self._stop(_DELETED)]

    async def _step(self, trigger: Breadcrumb, gathered: Gathered, state: RunState) -> Sequence[Draft]:
        if trigger.schema_name == self._flow.cancel:
            return await self._cancel(trigger)
        if trigger.schema_name == self._flow.context:
            text = Message(role="user", source=source_of(trigger, "formatted_context"))
            began = str(trigger.context.get("trigger_event_id") or trigger.id)
            return () if state.model_requests else await self._ask(trigger, [text], state, began)
        if trigger.schema_name == self._flow.response:
            return await self._on_response(trigger, state)
        is_addressed = CONSUMER_TAG + self._agent.agent_id in trigger.tags
        if state.model_requests or (is_early_end(trigger, self._flow) and not is_addressed):
            return ()
        return await self._ask(trigger, [gathered_message(gathered)], state, trigger.id)

    # -- responses ----------------------------------------------------------------------------------------

    async def _on_response(self, response: Breadcrumb, state: RunState) -> Sequence[Draft]:
        """Only the first response to a request of this agent counts."""
        if not state.is_awaited(response):
            return ()
        if (turn := state.find_turn(response)) is not None:
            return await self._on_result(turn, state)
        parsed = read_response(response)
        if parsed.tool != self._flow.model_tool:
            is_of_turn = any(tag.startswith(TURN_TAG) for tag in response.tags)
            return await self._stop(_DELETED) if is_of_turn else ()
        if parsed.status != "success":
            return await self._stop(_model_failed(response, parsed))
        return await self._on_model(response, state)

    async def _on_model(self, response: Breadcrumb, state: RunState) -> Sequence[Draft]:
        output = response.context.get("output") or {}
        data = PromptData(
            agent_id=self._agent.agent_id,
            session=response.session or "",
            run=find_run(response) or "",
            response=response,
            text=str(output.get("content") or ""),
        )
        data = await self._deps.hooks.run("post_prompt", data)
        calls = calls_of(response)
        if not calls:
            ended = await self._answer(data.text, status="done", asked=state)
            return [*data.drafts, *ended]
        if len(calls) > MAX_CALLS:
            detail = f"the model asked for {len(calls)} tools at once, more than {MAX_CALLS}"
            return [*data.drafts, *await self._stop(Stop(why="refused", detail=detail, how_to_go_on=_AGAIN))]
        requests = [
            request_draft(
                self._flow,
                call.name,
                call.arguments,
                request_id=f"{response.id}.{at}",
                requested_by=self._agent.agent_id,
                tags=(TURN_TAG + response.id, *trigger_tags(state.model_requests[0])),
            )
            for at, call in enumerate(calls)
        ]
        return [*data.drafts, *requests]

    async def _on_result(self, turn: ModelTurn, state: RunState) -> Sequence[Draft]:
        """Continue the run when a turn is complete: return the next model request, or stop at a loop or at the turn
        limit. Earlier results of a turn return nothing."""
        if not turn.is_complete or not state.is_newest(turn.answer):
            return ()
        if len(state.model_requests) != len(state.turns):
            return await self._stop(_DELETED)
        if loop := find_loop([turn_fingerprint(each) for each in state.turns]):
            return await self._stop(stop_for_loop(loop))
        most = self._agent.capabilities.max_turns or MAX_TURNS
        if len(state.turns) >= most:
            return await self._stop(stop_for_turns(most))
        compacted = await self._deps.compaction.shorten(self._agent.agent_id, state) if self._deps.compaction else None
        if compacted is not None:
            asked = await self._ask(turn.answer, compacted.messages, state, restarts=True)
            return [compacted.record, *asked]
        return await self._ask(turn.answer, turn_messages(turn), state)

    # -- requests -----------------------------------------------------------------------------------------

    async def _ask(
        self,
        trigger: Breadcrumb,
        messages: Sequence[Message],
        state: RunState,
        began: str = "",
        *,
        restarts: bool = False,
    ) -> Sequence[Draft]:
        """The next model request, or the end of the run if a hook refuses or answers the prompt. The first request
        names the record that `began` the run. With `restarts`, `messages` are the whole conversation and earlier
        requests are left out."""
        specs = await self._deps.specs(self._agent)
        data = PromptData(
            agent_id=self._agent.agent_id,
            session=trigger.session or "",
            run=find_run(trigger) or trigger.id,
            budget=await self._deps.budget_of(self._agent, trigger),
            system=self._agent.system_prompt,
            messages=tuple(messages),
            tools=specs,
            turn=len(state.turns),
        )
        try:
            data = await self._deps.hooks.run("pre_prompt", data)
        except StorageError:  # a later attempt may do better
            raise
        except ClewError as error:
            return await self._stop(_refused(error))
        if data.cached_result is not None:
            return [*data.drafts, *await self._answer(data.cached_result, status="done", asked=state)]
        snapshot = await keep_snapshot(
            self._deps.trail, self._flow, PromptSnapshot(system=data.system, tools=data.tools), by=self._deps.by
        )
        last = state.last_request if not restarts else None
        input = model_input(
            data.messages,
            after=last.id if last else None,
            snapshot=snapshot,
            model=self._agent.model or "",
        )
        request = request_draft(
            self._flow,
            self._flow.model_tool,
            input,
            request_id=self._deps.clock.new_id(),
            requested_by=self._agent.agent_id,
            config_id=self._agent.llm_config_id,
            tags=(TRIGGER_TAG + began,) if began else (),
        )
        return [*data.drafts, request]

    # -- the end ------------------------------------------------------------------------------------------

    async def _cancel(self, trigger: Breadcrumb) -> Sequence[Draft]:
        """End the run, and the runs of the agents that it called."""
        reason = str(trigger.context.get("reason") or "cancelled")
        further = await cancel_called(self._deps.trail, self._flow, trigger, by=self._deps.by)
        return [*further, *await self._answer("", status="cancelled", reason=reason)]

    async def _answer(
        self, text: str, *, status: str, reason: str = "", asked: RunState | None = None
    ) -> Sequence[Draft]:
        """The answer, and for a called agent the response to its caller."""
        context: dict[str, Any] = {
            "message": text,
            "creator": {"type": "agent", "agent_id": self._agent.agent_id},
            "tool_requests": [record.id for turn in asked.turns for record in turn.requests] if asked else [],
            "status": status,
        }
        if reason:
            context["reason"] = reason
        answer = Draft(
            title=f"Answer of {self._agent.agent_id}"[:200],
            schema_name=self._flow.answer,
            tags=("agent:response", "chat:output", f"agent:{self._agent.agent_id}"),
            context=context,
        )
        return [answer, *await self._reply(text, status, reason)]

    async def _reply(self, text: str, status: str, reason: str) -> list[Draft]:
        caller = find_caller(self._agent.metadata)
        if caller is None:
            return []
        request = await self._deps.trail.records.get(caller.request, by=self._deps.by)
        tool = str(request.context.get("tool") or "")
        if status == "done":
            return [response_draft(self._flow, request, tool, "success", output=text)]
        return [response_draft(self._flow, request, tool, "error", error=reason or status)]

    async def _stop(self, stop: Stop) -> Sequence[Draft]:
        """End the run early, and say why and how to continue."""
        message = f"I stopped: {stop.detail.rstrip('.')}. {stop.how_to_go_on}"
        stopped = stopped_draft(self._flow, stop, agent=self._agent.agent_id)
        return [stopped, *await self._answer(message, status="stopped", reason=stop.detail)]


def _refused(error: ClewError) -> Stop:
    """The reason to stop a run whose prompt a hook refused."""
    if isinstance(error, BudgetExceeded):
        return stop_for_budget(error)
    return Stop(why="refused", detail=error.message, how_to_go_on=error.hint or _AGAIN)


def _model_failed(response: Breadcrumb, parsed: ToolResponse) -> Stop:
    """The reason to stop a run whose model call failed."""
    is_budget = response.context.get("error_type") == "budget"
    return Stop(why="budget" if is_budget else "error", detail=parsed.error or parsed.status, how_to_go_on=_AGAIN)


def _with_run(draft: Draft, run: str) -> Draft:
    if any(tag.startswith(RUN_TAG) for tag in draft.tags):
        return draft
    return msgspec.structs.replace(draft, tags=(*draft.tags, run_tag(run)))
