"""Bridges from the runtime of agents to the team: the end of a run becomes RUN_ENDED, the response of a tool becomes
CALL_RESULT. Each run and each call ends once, however often its end is seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import sent_message
from clew.agents.runs.requests import find_author, read_response
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.team.guide import passed_draft
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ORCHESTRATOR, RUNTIME, MessageType
from clew.team.messages.payloads import MAX_TEXT, CallResult, RunEnd
from clew.team.runtime.effect_drafts import RUN_OF_TEAM, TEAM, TeamPrompt, call_of, derived_id, find_prompt
from clew.team.runtime.session_budgets import SessionBudgets
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow
from clew.trail.work.correlation import CONSUMER_TAG, find_run, run_tag
from clew.trail.work.handlers import Handler, HandlerFunction

ANSWERS, RESPONSES, RUNS = "team/answers", "team/responses", "team/runs"
LOOK_EVERY = 5.0
"""Seconds between two looks whether a run can still end."""
RETRY = RetryPolicy(attempts=100, backoff=0.5, backoff_limit=30.0)
MAX_CALLS = 1_000
"""Model calls of one run whose tokens are counted."""
_STATUS: dict[str, Literal["answered", "cancelled"]] = {"done": "answered", "cancelled": "cancelled"}
_CAUSES: dict[str, Literal["budget", "model"]] = {"budget": "budget", "error": "model"}


class TeamBridges:
    """The bridges of one owner."""

    def __init__(
        self, trail: Trail, conversations: Conversations, budgets: SessionBudgets, clock: Clock, *, by: Principal
    ) -> None:
        self._trail = trail
        self._budgets = budgets
        self._conversations = conversations
        self._flow = conversations.flow
        self._clock = clock
        self._by = by

    def handlers(self) -> list[Handler]:
        flow = self._flow
        responses = Selector(schema_name=flow.response, all_tags=(CONSUMER_TAG + TEAM,))
        runs = Selector(schema_name=flow.message, all_tags=(RUN_OF_TEAM,))
        return [
            _handler(ANSWERS, Selector(schema_name=flow.answer), self._on_answer),
            _handler(RESPONSES, responses, self._on_response),
            _handler(RUNS, runs, self._on_prompt),
        ]

    async def _on_answer(self, event: Event, deps: Any) -> Sequence[Draft]:
        """The end of a run of the team. Answers of agents that it called on the way are no end."""
        answer = event.breadcrumb
        if answer is None or find_conversation(answer.session) is None:
            return ()
        prompt = await self._prompt_of(find_run(answer) or "")
        if prompt is None or find_author(answer) != prompt.role:
            return ()
        await self._budgets.release(prompt.conversation, find_run(answer) or "")
        return (await self._ended(find_run(answer) or "", answer, prompt),)

    async def _on_response(self, event: Event, deps: Any) -> Sequence[Draft]:
        """The result of a tool that the team called."""
        record = event.breadcrumb
        if record is None or not record.session:
            return ()
        try:
            response = read_response(record)
        except InvalidInput:
            return ()
        output = response.output if isinstance(response.output, dict) else {"text": response.output}
        result = CallResult(
            call=call_of(response.request_id),
            tool=response.tool,
            status=_call_status(response.status),
            output=output if response.output is not None else {},
            error=response.error,
        )
        return (self._message(record.session, record.id, MessageType.CALL_RESULT, result, f"call/{record.id}"),)

    async def _on_prompt(self, event: Event, deps: Any) -> Sequence[Draft]:
        """Watch a run until it ends. A run that nobody works on any more ends as failed. Raises NotNow."""
        message = event.breadcrumb
        prompt = None if message is None else find_prompt(message, self._flow, by=self._by)
        if message is None or prompt is None or await self._find_answer(message.id, prompt.role) is not None:
            return ()
        if why := await self._find_failure(message, prompt):
            await self._budgets.release(prompt.conversation, message.id)
            return (self._end(message.id, prompt, status="failed", error=why),)
        raise NotNow(LOOK_EVERY)

    async def _prompt_of(self, run: str) -> TeamPrompt | None:
        """The prompt that started a run, if the team wrote it."""
        try:
            return find_prompt(await self._trail.records.get(run, by=self._by), self._flow, by=self._by)
        except NotFound:
            return None

    async def _find_answer(self, run: str, role: str) -> Breadcrumb | None:
        selector = Selector(schema_name=self._flow.answer, all_tags=(run_tag(run),))
        page = await self._trail.records.list(selector, by=self._by, limit=50)
        return next((each for each in page.items if find_author(each) == role), None)

    async def _find_failure(self, message: Breadcrumb, prompt: TeamPrompt) -> str:
        """Why a run can never end; empty while it can."""
        try:
            await self._conversations.find_agent(prompt.role, by=self._by)
        except NotFound:
            return f"no agent {prompt.role!r} is defined"
        except InvalidInput as error:
            return f"the agent {prompt.role!r} cannot run: {error}"
        failed = await self._conversations.find_failure(sent_message(message), 0, by=self._by)
        return failed.reason if failed is not None else ""

    async def _ended(self, run: str, answer: Breadcrumb, prompt: TeamPrompt) -> Draft:
        status = str(answer.context.get("status") or "done")
        text = str(answer.context.get("message") or "")[:MAX_TEXT]
        reason = str(answer.context.get("reason") or "")
        return self._end(
            run,
            prompt,
            status=_STATUS.get(status, "failed"),
            text=text if status == "done" else "",
            error="" if status == "done" else reason or status,
            cause=await self._cause(run) if status not in _STATUS else "",
            tokens=await self._tokens(run),
        )

    def _end(self, run: str, prompt: TeamPrompt, **end: Any) -> Draft:
        session = prompt.conversation.partition(".")[0]
        ended = RunEnd(conversation=prompt.conversation, role=prompt.role, pipeline=prompt.pipeline, **end)
        return self._message(session, run, MessageType.RUN_ENDED, ended, f"run/{run}")

    async def _cause(self, run: str) -> Literal["", "budget", "model"]:
        """Why a run stopped, in one word."""
        selector = Selector(schema_name=self._flow.stopped, all_tags=(run_tag(run),))
        page = await self._trail.records.list(selector, by=self._by, limit=1)
        return _CAUSES.get(str(page.items[0].context.get("why")), "") if page.items else ""

    async def _tokens(self, run: str) -> int:
        """The tokens that a run took."""
        selector = Selector(schema_name=self._flow.usage, all_tags=(run_tag(run),))
        page = await self._trail.records.list(selector, by=self._by, limit=MAX_CALLS)
        counts = [each.context.get(name) for each in page.items for name in ("input_tokens", "output_tokens")]
        return sum(count for count in counts if isinstance(count, int))

    def _message(self, session: str, cause: str, type: MessageType, payload: msgspec.Struct, key: str) -> Draft:
        message = TeamMessage(
            id=derived_id(self._by, cause, 0),
            parent_id=cause,
            session_id=session,
            source=RUNTIME,
            target=ORCHESTRATOR,
            type=type,
            payload=msgspec.to_builtins(payload),
            timestamp=self._clock.now(),
        )
        return passed_draft(message, key=f"team/{key}")


def _handler(name: str, selector: Selector, function: HandlerFunction) -> Handler:
    return Handler(
        name=name,
        selector=selector,
        function=function,
        retry=RETRY,
        types=("breadcrumb.created",),
        ordered=False,
    )


def _call_status(status: str) -> Literal["success", "error", "cancelled", "interrupted"]:
    known: dict[str, Literal["success", "cancelled", "interrupted"]] = {
        "success": "success",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
    }
    return known.get(status, "error")
