"""Bridges from the runtime of agents to the team: the end of a run becomes RUN_ENDED, the response of a tool becomes
CALL_RESULT. Each run and each call ends only once, even if its end is seen several times.

`complete` adds these messages to the step that writes the answer or the response, in the same transaction. If an agent
cannot run, it adds them to the step that prompts it. The handlers create the messages for answers and responses that
were written in another way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import sent_message
from clew.agents.runs.requests import author_of
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, NotFound
from clew.team.guide import checked_message_draft
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ORCHESTRATOR, RUNTIME, MessageType
from clew.team.messages.payloads import MAX_TEXT, CallResult, RunEnd
from clew.team.runtime.effect_drafts import RUN_OF_TEAM, TEAM, TeamPrompt, call_of, derived_id, find_prompt, read_prompt
from clew.trail.model.breadcrumb import Breadcrumb, Draft, session_of
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow
from clew.trail.work.correlation import CONSUMER_TAG, RUN_TAG, find_request_id, run_tag
from clew.trail.work.handlers import Handler, HandlerFunction

RESPONSES, RUNS = "team/responses", "team/runs"
LOOK_EVERY = 5.0
"""Seconds between checks whether a run can still end."""
RETRY = RetryPolicy(attempts=100, backoff=0.5, backoff_limit=30.0)
MAX_CALLS = 1_000
"""Model calls of one run whose tokens are counted."""
_ADDRESS = CONSUMER_TAG + TEAM
_STATUS: dict[str, Literal["answered", "cancelled"]] = {"done": "answered", "cancelled": "cancelled"}
_CAUSES: dict[str, Literal["budget", "model"]] = {"budget": "budget", "error": "model"}

_log = logging.getLogger(__name__)


class RunResultForwarder:
    """The handlers of one owner."""

    def __init__(self, trail: Trail, conversations: Conversations, clock: Clock, *, by: Principal) -> None:
        self._trail = trail
        self._conversations = conversations
        self._flow = conversations.flow
        self._clock = clock
        self._by = by

    def handlers(self) -> list[Handler]:
        flow = self._flow
        responses = Selector(schema_name=flow.response, all_tags=(_ADDRESS,))
        runs = Selector(schema_name=flow.message, all_tags=(RUN_OF_TEAM,))
        return [
            _handler(RESPONSES, responses, self._on_response),
            _handler(RUNS, runs, self._on_prompt, delay=LOOK_EVERY),  # most runs have ended by then
        ]

    # -- in the step that ends a run or a call --------------------------------------------------------------

    async def complete(self, outputs: Sequence[Draft]) -> Sequence[Draft]:
        """The outputs of a step, with the messages to the team that they cause. If a message cannot be created, the
        outputs are returned unchanged and the handlers process them later."""
        relevant = (self._flow.answer, self._flow.response, self._flow.message)
        if not any(each.schema_name in relevant for each in outputs):
            return outputs
        try:
            return [more for each in outputs for more in await self._with_message(each, outputs)]
        except ClewError as error:
            _log.warning("the result of %s is reported to the team later: %s", outputs[0].title, error)
            return outputs

    async def _with_message(self, draft: Draft, outputs: Sequence[Draft]) -> Sequence[Draft]:
        session = session_of(tuple(draft.tags))
        if session and draft.schema_name == self._flow.response and _ADDRESS in draft.tags:
            id = draft.id or self._clock.new_id()
            tags = tuple(tag for tag in draft.tags if tag != _ADDRESS)  # it needs no further handling
            told = msgspec.structs.replace(draft, id=id, tags=tags, context={**draft.context, "requestedBy": TEAM})
            return told, self._result(session, id, draft.context)
        if draft.schema_name == self._flow.answer and find_conversation(session) is not None:
            run = next((tag.removeprefix(RUN_TAG) for tag in draft.tags if tag.startswith(RUN_TAG)), "")
            prompt = await self._prompt_of(run)
            if prompt is not None and author_of(draft.context) == prompt.role:  # called agents answer on the way
                stops = [each.context for each in outputs if each.schema_name == self._flow.stopped]
                return draft, await self._ended(run, draft.context, prompt, stops)
        if draft.schema_name == self._flow.message and RUN_OF_TEAM in draft.tags and draft.id:
            prompt = read_prompt(draft.context)
            if prompt is not None and (missing := await self._find_missing(prompt)):
                return draft, self._end(draft.id, prompt, status="failed", error=missing)
        return (draft,)

    # -- handlers of all that ended otherwise ---------------------------------------------------------------

    async def _on_response(self, event: Event, deps: Any) -> Sequence[Draft]:
        """The result of a tool that the team called."""
        record = event.breadcrumb
        request = None if record is None else find_request_id(record)
        if record is None or not record.session or request is None:
            return ()
        return (self._result(record.session, record.id, {**record.context, "request_id": request}),)

    async def _on_prompt(self, event: Event, deps: Any) -> Sequence[Draft]:
        """Watch a run until it ends. An abandoned run ends as failed. Raises NotNow while the run can still end."""
        message = event.breadcrumb
        prompt = None if message is None else find_prompt(message, self._flow, by=self._by)
        if message is None or prompt is None or await self._is_told(message.id):
            return ()
        if (answer := await self._find_answer(message.id, prompt.role)) is not None:
            return (await self._ended(message.id, answer.context, prompt, await self._stops(message.id)),)
        if why := await self._find_failure(message, prompt):
            return (self._end(message.id, prompt, status="failed", error=why),)
        raise NotNow(LOOK_EVERY)

    async def _is_told(self, run: str) -> bool:
        told = derived_id(self._by, run, 0)
        return told in await self._trail.records.find_many([told], by=self._by)

    async def _prompt_of(self, run: str) -> TeamPrompt | None:
        """The prompt that started a run, if the team wrote it."""
        try:
            return find_prompt(await self._trail.records.get(run, by=self._by), self._flow, by=self._by)
        except NotFound:
            return None

    async def _find_answer(self, run: str, role: str) -> Breadcrumb | None:
        selector = Selector(schema_name=self._flow.answer, all_tags=(run_tag(run),))
        page = await self._trail.records.list(selector, by=self._by, limit=50)
        return next((each for each in page.items if author_of(each.context) == role), None)

    async def _find_missing(self, prompt: TeamPrompt) -> str:
        """Why the agent of a prompt cannot run; empty if it can."""
        try:
            await self._conversations.find_agent(prompt.role, by=self._by)
        except NotFound:
            return f"no agent {prompt.role!r} is defined"
        except InvalidInput as error:
            return f"the agent {prompt.role!r} cannot run: {error}"
        return ""

    async def _find_failure(self, message: Breadcrumb, prompt: TeamPrompt) -> str:
        """The reason why a run will never end by itself; empty if it still can."""
        if missing := await self._find_missing(prompt):
            return missing
        failed = await self._conversations.find_failure(sent_message(message), 0, by=self._by)
        return failed.reason if failed is not None else ""

    def _result(self, session: str, id: str, response: Mapping[str, Any]) -> Draft:
        """The message about a response with this id and content."""
        output, error = response.get("output"), response.get("error")
        result = CallResult(
            call=call_of(str(response["request_id"])),
            tool=str(response.get("tool") or ""),
            status=_call_status(str(response.get("status") or "")),
            output=output if isinstance(output, dict) else {} if output is None else {"text": output},
            error="" if error is None else str(error),
        )
        return self._message(session, id, MessageType.CALL_RESULT, result, f"call/{id}")

    async def _ended(
        self, run: str, answer: Mapping[str, Any], prompt: TeamPrompt, stops: Sequence[Mapping[str, Any]]
    ) -> Draft:
        """The message about a run with this answer. `stops` say why it stopped early."""
        status = str(answer.get("status") or "done")
        is_stopped = status not in _STATUS and bool(stops)
        return self._end(
            run,
            prompt,
            status=_STATUS.get(status, "failed"),
            text=str(answer.get("message") or "")[:MAX_TEXT] if status == "done" else "",
            error="" if status == "done" else str(answer.get("reason") or "") or status,
            cause=_CAUSES.get(str(stops[0].get("why")), "") if is_stopped else "",
            tokens=await self._tokens(run),
        )

    def _end(self, run: str, prompt: TeamPrompt, **end: Any) -> Draft:
        session = prompt.conversation.partition(".")[0]
        ended = RunEnd(conversation=prompt.conversation, role=prompt.role, pipeline=prompt.pipeline, **end)
        return self._message(session, run, MessageType.RUN_ENDED, ended, f"run/{run}")

    async def _stops(self, run: str) -> Sequence[Mapping[str, Any]]:
        """The records that say why a run stopped."""
        selector = Selector(schema_name=self._flow.stopped, all_tags=(run_tag(run),))
        return [each.context for each in (await self._trail.records.list(selector, by=self._by, limit=1)).items]

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
        return checked_message_draft(message, key=f"team/{key}")


def _handler(name: str, selector: Selector, function: HandlerFunction, delay: float = 0.0) -> Handler:
    return Handler(
        name=name,
        selector=selector,
        function=function,
        retry=RETRY,
        types=("breadcrumb.created",),
        ordered=False,
        delay=delay,
    )


def _call_status(status: str) -> Literal["success", "error", "cancelled", "interrupted"]:
    known: dict[str, Literal["success", "cancelled", "interrupted"]] = {
        "success": "success",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
    }
    return known.get(status, "error")
