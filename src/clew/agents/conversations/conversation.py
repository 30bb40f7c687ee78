"""Conversations with agents on the trail: messages, their steps, answers to questions for permission, cancellation.

A session belongs to its owner. A curator of that owner, and the user who started the session, may cancel its runs; only
a curator may allow a tool.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import msgspec

from clew.access import ROLES, Principal
from clew.agents.conversations.sessions import SESSION_TAG, SentMessage, Sessions, message_draft, sent_message
from clew.agents.conversations.steps import (
    ENDS,
    Answered,
    Choice,
    PermissionAsked,
    RunAbandoned,
    Step,
    read_step,
    shown_schemas,
    step_of,
    without_old_pieces,
)
from clew.agents.folder.registry import read_agent
from clew.agents.permissions.questions import read_answered_questions, show_whole
from clew.agents.workers.placement import require_place
from clew.clock import Clock
from clew.config import AgentConfig
from clew.context.definition import AgentDefinition
from clew.errors import AccessDenied, AlreadyExists, InvalidInput, NotFound, TooLarge
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Draft, check_key
from clew.trail.model.flow import Flow, read_flow, shipped_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, REQUEST_TAG, run_tag
from clew.trail.work.trace_context import trace_tags

DEFAULT_AGENT = AgentConfig().name
MAX_MESSAGE = 1_000_000
"""Characters of one message."""
LOOK_EVERY = 2.0
"""Seconds without an event after which `follow` checks whether an event of the run became a dead letter."""
MAX_LETTERS = 1_000
_NAME = 200
DENY: Choice = "deny"


class Conversations:
    """The conversations of a trail. Each call uses the rights of its principal. A message gets the scopes that are in
    `scopes` and that its writer has."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock, *, scopes: frozenset[str] = frozenset()) -> None:
        self._scopes = scopes
        self._trail = trail
        self.flow = flow
        self._clock = clock
        self.sessions = Sessions(trail, flow)

    async def send(
        self,
        text: str,
        *,
        by: Principal,
        session: str | None = None,
        default_session: str | None = None,
        agent: str = DEFAULT_AGENT,
        source: str = "chat",
        key: str | None = None,
        place: str = "",
    ) -> SentMessage:
        """Write a message for an agent, in the named session, else in the default one, else in a new one. Calls with
        the same `key`, agent and owner write only one message, in the session of the first call. With a `place`, only
        workers that have this place run the tools of the run.

        Raises InvalidInput (also for a place that no live worker has), TooLarge, AccessDenied, NotFound (unknown
        session or agent), AlreadyExists (the key was used for another message).
        """
        by.require("create")
        check_message(text)
        await self.find_agent(agent, by=inside(by))
        chosen = session or default_session
        if chosen is not None:
            require_session_control(await self.sessions.first(chosen, by=inside(by)), by)
        if place:
            await require_place(self._trail, self._clock, place, by=inside(by))
        after, id = await self._trail.log.head(), self._clock.new_id()
        chosen = chosen or self._clock.new_id()
        message = message_draft(self.flow, text, id=id, session=chosen, agent=agent, source=source, place=place)
        draft = msgspec.structs.replace(
            message,
            tags=(*message.tags, *trace_tags()),
            scopes=tuple(sorted(self._scopes & by.scopes)),
            idempotency_key=None if key is None else _key_of(key, agent),
        )
        written = await self._trail.records.create(draft, by=by)
        is_same = written.context.get("message") == text and session in (None, written.session)
        if written.schema_name != self.flow.message or not is_same:
            raise AlreadyExists("idempotency key", repr(key))
        return sent_message(written, after if written.id == id else 0)

    async def find_agent(self, name: str, *, by: Principal) -> AgentDefinition:
        """The newest definition of that name. Raises NotFound, InvalidInput for an invalid one."""
        named = ContextMatch(path="agent_id", value=name[:_NAME])
        selector = Selector(schema_name=self.flow.agent, context_match=(named,))
        page = await self._trail.records.list(selector, by=by, limit=1)
        if not page.items:
            raise NotFound("agent", name[:_NAME])
        return read_agent(page.items[0])

    async def follow(self, sent: SentMessage, *, by: Principal) -> AsyncGenerator[Step, None]:
        """The steps of a run as they happen, up to its end. The run continues if the caller stops reading. Raises
        AccessDenied."""
        by.require("subscribe")
        selector = run_selector(sent.session, sent.run, shown_schemas(self.flow))
        after, is_over, failed = sent.after, False, None
        while not is_over:
            events, after = await self._trail.log.read(after, by=by, selector=selector)
            for step in filter(None, (step_of(each, self.flow) for each in events)):
                yield await self.whole(step, by=by)
                if is_end(step, sent):
                    return
            if not events and not await self._trail.log.wait(after, LOOK_EVERY, selector=selector):
                failed = await self.find_failure(sent, after, by=by)
                is_over = failed is not None
        if failed is not None:
            yield failed

    async def whole(self, step: Step, *, by: Principal) -> Step:
        """The step as a person sees it: a question for permission gets its complete, unmasked input; other steps are
        returned unchanged."""
        return await show_whole(self._trail, step, by=inside(by)) if isinstance(step, PermissionAsked) else step

    async def resume(self, sent: SentMessage, *, by: Principal) -> AsyncGenerator[Step, None]:
        """Like `follow`, for a reader that comes back to a run: leaves out the pieces of an abandoned answer."""
        head = await self._trail.log.head()
        async with aclosing(self.follow(sent, by=by)) as steps:
            async for step in without_old_pieces(steps, head):
                yield step

    async def cancel(self, session: str, *, by: Principal, reason: str, run: str | None = None) -> tuple[str, ...]:
        """Cancel all runs of a session that have no answer yet, or only `run`. Return the ids of the cancelled runs.
        Raises NotFound, AccessDenied."""
        first = await self.sessions.first(session, by=inside(by))
        require_session_control(first, by)
        runs = await self.sessions.open_runs(session, by=inside(by))
        wanted = [each for each in runs if run is None or each.run == run]
        drafts = [
            Draft(
                title="Cancel a run",
                schema_name=self.flow.cancel,
                tags=(SESSION_TAG + session, run_tag(each.run), CONSUMER_TAG + each.agent),
                context={"reason": reason[:_NAME]},
                embed="never",
            )
            for each in wanted
        ]
        if drafts:
            await self._trail.records.create_many(drafts, by=inside(by))
        return tuple(each.run for each in wanted)

    async def permission(self, request_id: str, *, by: Principal, question: str | None = None) -> PermissionAsked:
        """The question about a request, or the one with the id `question`. Raises NotFound, and InvalidInput if the
        request id has several questions and `question` is None."""
        asking = Selector(schema_name=self.flow.permission_request, all_tags=(REQUEST_TAG + request_id[:_NAME],))
        page = await self._trail.records.list(asking, by=by, limit=_NAME)
        found = [each for each in page.items if question is None or each.id == question]
        if len(found) > 1:
            hint = "Pass the id of the question"
            raise InvalidInput("request_id", f"is the id of {len(found)} questions", hint=hint)
        asked = read_step(found[0], self.flow) if found else None
        if not isinstance(asked, PermissionAsked):
            raise NotFound("permission", request_id[:_NAME])
        return await show_whole(self._trail, asked, by=inside(by))

    async def answer_permission(
        self, request_id: str, answer: Choice, *, by: Principal, question: str | None = None
    ) -> None:
        """Answer the `question` whether a tool may run. The first answer counts; the same answer again is accepted.

        Raises NotFound, AccessDenied, InvalidInput (not one of the choices), AlreadyExists (another answer came first,
        or the question is no longer pending).
        """
        asked = await self.permission(request_id, by=inside(by), question=question)
        if not by.may("administer"):
            require_session_control(await self.sessions.first(asked.session, by=inside(by)), by)
            if answer != DENY:
                raise AccessDenied("allow a tool, which works with the rights of the owner", ["curator"])
        if answer not in asked.choices:
            raise InvalidInput("answer", f"{answer[:40]!r} is not offered", hint=f"Say {', '.join(asked.choices)}")
        tags = (*((SESSION_TAG + asked.session,) if asked.session else ()), REQUEST_TAG + asked.request_id)
        standing = await read_answered_questions(self._trail, self.flow, [asked.request_id], by=inside(by))
        given = standing.answers.get(asked.id)
        if given is None and asked.request_id in standing.responded:
            raise AlreadyExists("a response to request", request_id[:_NAME])
        draft = Draft(
            title=f"Permission for {asked.tool}: {answer}"[:_NAME],
            schema_name=self.flow.permission_answer,
            tags=(*tags, *((run_tag(asked.run),) if asked.run else ()), "permission:answered"),
            context={"request_id": asked.request_id, "question": asked.id, "answer": answer, "by": by.agent_id},
            embed="never",
            idempotency_key=f"permission/{asked.id}",
        )
        given = given or await self._trail.records.create(draft, by=inside(by))
        if given.schema_name != self.flow.permission_answer or given.context.get("answer") != answer:
            raise AlreadyExists("an answer to permission", request_id[:_NAME])

    async def find_failure(self, sent: SentMessage, after: int, *, by: Principal) -> RunAbandoned | None:
        """The step that ends an abandoned run, with the reason; None while a worker may still handle its events."""
        for letter in await self._trail.dead_letters.list(by=inside(by), limit=MAX_LETTERS):
            if _is_needed(letter.consumer, sent.agent) and run_tag(sent.run) in letter.event.tags:
                reason = f"{letter.consumer} gave up after {_attempts(letter.attempts)}: {letter.reason}"
                return RunAbandoned(seq=after, session=sent.session, run=sent.run, id=sent.id, reason=reason)
        return None


async def open_conversations(
    trail: Trail, clock: Clock, *, by: Principal, scopes: frozenset[str] = frozenset()
) -> Conversations:
    """The conversations of an owner. If the trail defines no flow, the schema names that ship with Clew are used."""
    try:
        flow = await read_flow(trail, by=inside(by))
    except NotFound:
        flow = shipped_flow(read_pieces())
    return Conversations(trail, flow, clock, scopes=scopes)


def check_message(text: str) -> None:
    """Raises InvalidInput or TooLarge."""
    if not text.strip():
        raise InvalidInput("message", "is empty")
    if len(text) > MAX_MESSAGE:
        raise TooLarge("message", len(text), MAX_MESSAGE, "characters")


def run_selector(session: str, run: str, schemas: Iterable[str] = ()) -> Selector:
    """The records of one run."""
    return Selector(schema_names=tuple(schemas), session=session, all_tags=(run_tag(run),))


def is_end(step: Step, sent: SentMessage) -> bool:
    """Whether a step ends a run. The answer of an agent that another agent called does not end it."""
    return isinstance(step, ENDS) and not (isinstance(step, Answered) and step.agent not in ("", sent.agent))


def _key_of(key: str, agent: str) -> str:
    """The key of a message on the trail. It is unique per agent and cannot equal the key of another kind of record.
    Raises InvalidInput."""
    check_key(key)
    digest = hashlib.blake2b(f"{agent}\0{key}".encode(), digest_size=16).hexdigest()
    return f"message/{digest}"


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number:,} attempts"


def _is_needed(consumer: str, agent: str) -> bool:
    """Whether a run cannot continue without this consumer. Other consumers only listen."""
    return consumer.startswith(("agent/", "tools-runner", "models-runner")) or consumer == f"context/{agent}"


def require_session_control(first: Breadcrumb, by: Principal) -> None:
    """Raise AccessDenied unless the caller is a curator or wrote the first message of the session."""
    by.require("create")
    if not by.may("administer") and (not by.agent_id or first.created_by != by.agent_id):
        raise AccessDenied("steer a session that another user began", ["curator"])


def inside(by: Principal) -> Principal:
    """The caller with the roles that the rules of a conversation need."""
    return msgspec.structs.replace(by, roles=ROLES)
