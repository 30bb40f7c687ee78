"""The use cases of the team for all interfaces: start a request, steer it, watch it and take its result. Every method
writes one message through the Guide or reads the trail; the work itself is done by a runtime, in this process or
another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.conversations.conversation import Conversations, inside
from clew.agents.conversations.steps import Step, shown_schemas, step_of
from clew.agents.runs.call_limits import CallLimits
from clew.clock import Clock
from clew.errors import AccessDenied, IllegalState, InvalidInput, NotFound
from clew.team.evidence.task_evidence import TaskEvidence, TaskVerification
from clew.team.guide import Guide, build_message, checked_message_draft
from clew.team.machines.pipeline import Gate
from clew.team.machines.team_state import Outcome, TeamState
from clew.team.messages import payloads as p
from clew.team.messages.message import SCHEMA, SESSION_TAG, TYPE_TAG, TeamMessage, read_message
from clew.team.messages.message_types import INSPECTOR, TESTER, USER, MessageType
from clew.team.runtime.file_locks import HEAD
from clew.team.runtime.request_limits import within_limits
from clew.team.runtime.resources import TeamResources
from clew.team.runtime.session_budgets import SessionBudgets
from clew.team.runtime.snapshot_parts import snapshot_parts
from clew.team.runtime.status_records import StatusRecords, TeamStatus
from clew.team.runtime.task_lookup import find_question, find_task, task_evidence
from clew.team.runtime.team_states import TeamStates, apply, session_selector
from clew.team.sessions.session import Session, SessionAction, SessionConfig, SessionStatus, label
from clew.team.sessions.session_manager import SessionManager
from clew.team.worktrees.checkout_merge import CheckoutMerge, merge_into_checkout
from clew.team.worktrees.removal import remove_worktrees
from clew.team.worktrees.team_tools import TeamFolder
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

Interrupt = Literal["halt", "add", "ask", "suspend", "stop"]
TaskAction = Literal["prompt", "query", "interrupt", "ignore_inspector", "ignore_tester"]
TASK_TYPES: dict[str, MessageType] = {
    "prompt": MessageType.USER_TASK_PROMPT,
    "query": MessageType.USER_TASK_QUERY,
    "interrupt": MessageType.USER_TASK_INTERRUPT,
    "ignore_inspector": MessageType.USER_IGNORE_INSPECTOR,
    "ignore_tester": MessageType.USER_IGNORE_TESTER,
}
"""The message of each action on a task."""
LOOK_EVERY = 30.0
_PAGE = 500


class TeamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a request. `budget` limits tokens, 0 means without limit; `approves_plan` starts the work without a
    question unless the estimate is over the budget. With `session`, the work begins in that existing session and within
    its limits. Without a `base` it starts from the base of that session, else from HEAD."""

    name: str = ""
    session: str = ""
    budget: int = 0
    max_agents: int = 4
    base: str = ""
    takes_changes: bool = False
    approves_plan: bool = False
    research: bool = False


class TeamEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened in a session: a message of the team, or a step of one of its agents. `conversation` is
    the conversation of the step."""

    seq: int
    message: TeamMessage | None = None
    step: Step | None = None
    conversation: str = ""


class Team:
    """The teams of one owner. Each call has the rights of a principal. `prepare` sets up the members before a request
    is sent, and raises an error if they cannot work. `folder` is the project with its work trees."""

    def __init__(
        self,
        trail: Trail,
        conversations: Conversations,
        clock: Clock,
        gate: Gate,
        *,
        me: Principal,
        prepare: Callable[[], Awaitable[None]] | None = None,
        folder: Callable[[], TeamFolder] | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        self._trail = trail
        self.resources = TeamResources(trail, clock, limits or CallLimits(), by=inside(me))
        self._folder = folder
        self._prepare = prepare
        self._flow = conversations.flow
        self._clock = clock
        self.guide = Guide(trail, conversations, clock, by=me)
        self._states = TeamStates(trail, gate, by=inside(me))
        self.sessions = SessionManager(trail, conversations, clock, self._snapshot)
        self._budgets = SessionBudgets(Budgets(trail, conversations.flow, clock), clock, by=me)
        self._status = StatusRecords(trail, clock, by=me)

    # -- the request -------------------------------------------------------------------------------------

    async def start(self, request: str, *, by: Principal, options: TeamOptions | None = None) -> Session:
        """Begin the work on a request, in a new session, or in the session without work that the options name. The
        Architect plans first. Raises InvalidInput, AccessDenied, AlreadyExists (an open session has that name),
        NotFound, IllegalState (the session has work already), ModelError (no model is configured), Busy (too many calls
        wait)."""
        chosen = options or TeamOptions()
        payload = _plan_request(request, chosen)
        checked_message_draft(self._message(MessageType.PLAN_REQUEST, payload, ""))
        if self._prepare is not None:
            await self._prepare()
        await self.resources.require_room()
        if chosen.session:
            session = await self.sessions.get(await self.sessions.find(chosen.session, by=by), by=by)
            payload = within_limits(payload, session, chosen.base)
            await self.require_base(payload.base)
        else:
            await self.require_base(payload.base)
            config = SessionConfig(max_concurrent_tasks=chosen.max_agents, max_engineers=chosen.max_agents)
            session = await self.sessions.create(chosen.name, by=by, config=config)
        if (await self.state(session.id, by=by)).request is not None:
            hint = 'Begin another session with `clew code "TEXT"`'
            raise IllegalState("start", f"session {label(session)}", "with work of its own", (), hint=hint)
        await self._budgets.open(session.id, chosen.budget)
        payload = msgspec.structs.replace(payload, branch=session.branch_name)
        await self._send(session.id, MessageType.PLAN_REQUEST, payload, by)
        return session

    async def require_base(self, base: str) -> None:
        """Raise InvalidInput for a base that the project does not have, before a session starts with it and fails."""
        if base not in ("", "HEAD") and self._folder is not None:
            await asyncio.to_thread(self._folder().require_base, base)

    async def approve(self, session: str, *, by: Principal, over_budget: bool = False) -> TeamMessage:
        """Approve the plan that was proposed last. Raises IllegalState if it cannot be approved now, or if it is over
        budget and `over_budget` is not set."""
        plan = (await self.state(session, by=by)).plan
        payload = p.PlanApproval(plan_id=plan.id if plan else "", over_budget=over_budget)
        return await self._send(session, MessageType.PLAN_APPROVED, payload, by)

    async def modify(self, session: str, text: str, *, by: Principal) -> TeamMessage:
        """Ask the Architect to change the plan. Raises IllegalState."""
        return await self._send(session, MessageType.PLAN_MODIFIED, p.TextPayload(text=_text(text)), by)

    async def reject(self, session: str, *, by: Principal, reason: str = "") -> TeamMessage:
        """Reject the plan, which ends the session's work. Raises IllegalState."""
        return await self.interrupt(session, "stop", reason or "the plan was rejected", by=by)

    async def answer(self, session: str, text: str, *, by: Principal, question: str = "") -> TeamMessage:
        """Answer an open question: the question with this id, or the only one. Raises NotFound, InvalidInput,
        IllegalState."""
        id = find_question(await self.state(session, by=by), question)
        asked = (await self.state(session, by=by)).questions[id]
        payload = p.QuestionAnswer(text=_text(text), request=id, pipeline=asked.pipeline)
        return await self._send(session, MessageType.CLARIFICATION_RESPONSE, payload, by)

    # -- steering ----------------------------------------------------------------------------------------

    async def interrupt(self, session: str, kind: Interrupt, text: str = "", *, by: Principal) -> TeamMessage:
        """Halt, add a requirement, ask, suspend or stop. Halted work starts nothing new. Raises IllegalState."""
        if kind in ("add", "ask"):
            _text(text)
        sent = await self._send(session, MessageType.USER_INTERRUPT, p.UserInterrupt(kind=kind, text=text), by)
        if kind == "suspend":
            await self.sessions.act(session, SessionAction.SUSPEND, by=by)
        return sent

    async def ask(self, session: str, text: str, *, by: Principal) -> TeamMessage:
        """Ask the Architect about the work. The answer comes as a message to the user."""
        return await self.interrupt(session, "ask", text, by=by)

    async def stop(self, session: str, *, by: Principal, reason: str = "") -> TeamMessage:
        """End the work. Everything that was committed stays on its branches. Raises IllegalState."""
        return await self.interrupt(session, "stop", reason, by=by)

    async def suspend(self, session: str, *, by: Principal) -> Session:
        """Suspend a session. Work under way is halted first, and its progress is part of the snapshot. Raises NotFound,
        IllegalState."""
        state = await self.state(session, by=by)
        if state.request is None or state.is_over:
            return await self.sessions.act(session, SessionAction.SUSPEND, by=by)
        await self.interrupt(session, "suspend", by=by)
        return await self.sessions.get(session, by=by)

    async def close(self, session: str, *, by: Principal, summary: str = "") -> Session:
        """Close a session. Work under way is stopped first, because it could no longer be steered. Raises NotFound,
        AccessDenied, IllegalState, TooLarge."""
        if not await self._stop_work(session, by):
            return await self.sessions.act(session, SessionAction.CLOSE, by=by, summary=summary)
        with suppress(IllegalState):  # the end of the work has closed it
            return await self.sessions.act(session, SessionAction.CLOSE, by=by, summary=summary)
        return await self.sessions.get(session, by=by)

    async def close_all(self, *, by: Principal, summary: str = "") -> Sequence[Session]:
        """Stop the work of all open sessions, and close those that the caller may close. Raises TooLarge."""
        for state in (SessionStatus.ACTIVE, SessionStatus.SUSPENDED):
            for each in await self.sessions.list(by=inside(by), state=state):
                with suppress(AccessDenied):  # somebody else began it
                    await self._stop_work(each.id, by)
        return await self.sessions.close_all(by=by, summary=summary)

    async def _stop_work(self, session: str, by: Principal) -> bool:
        """Stop the work of a session; return whether there was any."""
        state = await self.state(session, by=by)
        if state.request is None or state.is_over:
            return False
        if (await self.sessions.get(session, by=by)).state is SessionStatus.SUSPENDED:
            await self.sessions.act(session, SessionAction.RESUME, by=by)
        await self.stop(session, by=by, reason="its session was closed")
        return True

    async def switch(self, session: str, *, by: Principal) -> Session:
        """Focus a session. A suspended session is resumed, with its work. Raises NotFound, AccessDenied,
        IllegalState."""
        if (await self.sessions.get(session, by=by)).state is not SessionStatus.SUSPENDED:
            return await self.sessions.switch(session, by=by)
        await self.resume(session, by=by)
        return await self.sessions.get(session, by=by)

    async def _snapshot(self, session: str, by: Principal) -> dict[str, Any] | None:
        return snapshot_parts(await self._states.latest(session))

    async def resume(self, session: str, *, by: Principal) -> TeamState:
        """Continue work that was halted or suspended. Raises NotFound, IllegalState."""
        found = await self.sessions.get(session, by=by)
        if found.state is SessionStatus.SUSPENDED:
            await self.sessions.act(session, SessionAction.RESUME, by=by)
        if (await self.state(session, by=by)).is_halted:
            await self._send(session, MessageType.USER_INTERRUPT, p.UserInterrupt(kind="continue"), by)
        return await self.state(session, by=by)

    async def task(self, session: str, which: str, action: TaskAction, text: str = "", *, by: Principal) -> TeamMessage:
        """Act on one task, by its id, the id of its pipeline, or its number in the plan. Raises NotFound, InvalidInput,
        IllegalState."""
        if action not in TASK_TYPES:
            hint = f"Actions are {', '.join(TASK_TYPES)}"
            raise InvalidInput("action", f"{str(action)[:50]!r} is not an action on a task", hint=hint)
        if action in ("prompt", "query"):
            _text(text)
        pipeline = find_task(await self.state(session, by=by), which)
        return await self._send(session, TASK_TYPES[action], p.TaskText(pipeline=pipeline.id, text=text), by)

    async def choose(
        self,
        session: str,
        choice: Literal["ignore", "fail", "retry"],
        *,
        by: Principal,
        task: str = "",
        reason: str = "",
    ) -> TeamMessage:
        """Decide on a task that used all its rounds, or without a task on the findings of the whole session. Raises
        NotFound, IllegalState."""
        pipeline = find_task(await self.state(session, by=by), task).id if task else ""
        payload = p.PipelineChoice(pipeline=pipeline, choice=choice, reason=reason)
        return await self._send(session, MessageType.USER_CHOICE, payload, by)

    async def override(
        self, session: str, reason: str, *, by: Principal, what: Literal["inspection", "testing"] = "inspection"
    ) -> TeamMessage:
        """Accept the open findings of the session's inspection or tests. The summary lists the reason. Raises
        IllegalState."""
        payload = p.UserOverride(reason=_text(reason), what=what)
        target = INSPECTOR if what == "inspection" else TESTER
        return await self._send(session, MessageType.USER_OVERRIDE, payload, by, target)

    # -- reading -----------------------------------------------------------------------------------------

    async def state(self, session: str, *, by: Principal) -> TeamState:
        """The state of the work of a session. Raises NotFound, AccessDenied."""
        by.require("read")
        await self.sessions.get(session, by=by)
        state = await self._states.latest(session)
        await self._status.write(state)  # the coordinator may be behind, or stopped
        return state

    async def status(self, *, by: Principal, limit: int = 200) -> Sequence[TeamStatus]:
        """The work of all sessions in short, the newest first. Raises AccessDenied."""
        return await self._status.list(by=by, limit=limit)

    async def log(self, session: str, *, by: Principal, limit: int = 1_000) -> Sequence[TeamMessage]:
        """The newest messages of a session, oldest first. Raises NotFound, AccessDenied."""
        await self.sessions.get(session, by=by)
        found: list[TeamMessage] = []
        cursor = None
        while len(found) < limit:
            size = min(_PAGE, limit - len(found))
            page = await self._trail.records.list(session_selector(session), by=by, limit=size, cursor=cursor)
            found += [read_message(each) for each in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        return found[::-1]

    async def follow(self, session: str, *, by: Principal, after: int | None = None) -> AsyncGenerator[TeamEvent, None]:
        """The events of a session, from its beginning or `after` an event, until its work is over. Raises NotFound,
        AccessDenied."""
        by.require("subscribe")
        await self.sessions.get(session, by=by)
        seq = 0 if after is None else after
        schemas = (SCHEMA, *shown_schemas(self._flow))
        selector = Selector(schema_names=schemas, tag_prefix=SESSION_TAG + session)
        while True:
            is_over = await self.is_over(session, by=by)
            events, seq = await self._trail.log.read(seq, by=by, selector=selector)
            for found in filter(None, (self._event(each, session) for each in events)):
                yield found
            if not events and is_over:
                return
            if not events:
                await self._trail.log.wait(seq, LOOK_EVERY, selector=selector)

    async def is_over(self, session: str, *, by: Principal) -> bool:
        """Whether the work of a session has ended, with its summary on the trail."""
        if not (await self._states.latest(session)).is_over:
            return False
        tags = [TYPE_TAG + each for each in (MessageType.WORKFLOW_COMPLETE, MessageType.PLAN_REQUEST)]
        selector = Selector(schema_name=SCHEMA, session=session, any_tags=tags)
        newest = (await self._trail.records.list(selector, by=by, limit=1)).items
        return bool(newest) and read_message(newest[0]).type is MessageType.WORKFLOW_COMPLETE

    def _event(self, event: Event, session: str) -> TeamEvent | None:
        record = event.breadcrumb
        if record is None or event.type != "breadcrumb.created" or (record.session or "").partition(".")[0] != session:
            return None
        if record.schema_name == SCHEMA:
            return TeamEvent(seq=event.seq, message=read_message(record))
        step = step_of(event, self._flow)
        return None if step is None else TeamEvent(seq=event.seq, step=step, conversation=record.session or "")

    # -- the result --------------------------------------------------------------------------------------

    async def merge(self, session: str, *, by: Principal, ff_only: bool = False) -> CheckoutMerge:
        """Merge the branch of a session into the user's checkout. With `ff_only`, merge only if no merge commit is
        needed. During the merge, other sessions wait before they write one of these files. The work trees of its tasks
        are removed after the merge. Unmerged work stays on their branches. Raises IllegalState, AccessDenied, NotFound,
        InvalidInput, Busy."""
        by.require("administer")
        state = await self.state(session, by=by)
        if state.outcome is not Outcome.COMPLETED:
            allowed = ("wait for the end",) if not state.is_over else (f"look at the branch {state.branch}",)
            raise IllegalState(
                "merge", f"session {session[-8:]}", state.outcome or f"in the phase {state.phase}", allowed
            )
        trees = self._project().find(session)
        files = (*await asyncio.to_thread(trees.project_files), HEAD)
        async with self.resources.locks.hold("write", files, session=session, task="merge"):
            done = await asyncio.to_thread(merge_into_checkout, trees, self._clock, ff_only=ff_only)
        if done.merged:
            await asyncio.to_thread(remove_worktrees, trees, self._clock)
        return done

    async def why_done(self, session: str, which: str, *, by: Principal) -> TaskEvidence:
        """The evidence of a task: its claim, its receipts and the verdict. Raises NotFound."""
        return task_evidence(await self.state(session, by=by), which)

    async def verify(self, session: str, which: str, *, by: Principal) -> TaskVerification:
        """Run the commands of a task again on the tree that was originally checked. Raises NotFound, InvalidInput."""
        from clew.team.evidence.verification import verify  # loads the modules that run commands

        by.require("administer")
        evidence = task_evidence(await self.state(session, by=by), which)
        folder = self._project()
        return await verify(folder.find(session), evidence, folder.checks())

    def _project(self) -> TeamFolder:
        if self._folder is None:
            raise NotFound("project of this team", "", hint="Open the team with `App.team`")
        return self._folder()

    # -- messages ----------------------------------------------------------------------------------------

    def _message(self, type: MessageType, payload: msgspec.Struct, session: str, target: str = "") -> TeamMessage:
        content: dict[str, Any] = msgspec.to_builtins(payload)
        return build_message(type, content, source=USER, target=target, session_id=session, clock=self._clock)

    async def _send(
        self, session: str, type: MessageType, payload: msgspec.Struct, by: Principal, target: str = ""
    ) -> TeamMessage:
        """Send a message of the user. If the state does not allow the message, raises IllegalState, which lists the
        possible actions."""
        message = self._message(type, payload, session, target)
        tried = apply(await self.state(session, by=by), message, self._states.gate)
        if tried.refusal is not None:
            raise tried.refusal
        sent = await self.guide.send(message, by=by)
        await self._status.write(await self._states.latest(session))  # also if no runtime works now
        return sent


def _plan_request(request: str, chosen: TeamOptions) -> p.PlanRequest:
    return p.PlanRequest(
        request=request,
        base=chosen.base or "HEAD",
        takes_changes=chosen.takes_changes,
        approves_plan=chosen.approves_plan,
        research=chosen.research,
        budget=chosen.budget,
        max_agents=chosen.max_agents,
    )


def _text(text: str) -> str:
    if not text.strip():
        raise InvalidInput("text", "is empty", hint="Say in words what you want")
    return text
