"""Work of the team over REST: start a request, read its plan, approve, change, steer, resume and merge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.errors import AccessDenied, AlreadyExists, IllegalState, InvalidInput, ModelError, NotFound
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.payloads import CompletionSummary, TeamQuestion
from clew.team.planning.plan import Plan
from clew.team.planning.preflight import Estimate
from clew.team.runtime.file_locks import LockState
from clew.team.runtime.resources import PoolQueue
from clew.team.runtime.status_records import MAX_LISTED, TeamStatus, waits_for_user
from clew.team.sessions.session import Session
from clew.team.team import Interrupt, Team, TeamOptions
from clew.team.worktrees.checkout_merge import CheckoutMerge


class NewPlan(TeamOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to the team. `approves_plan` starts the work without a question unless it is over the budget."""

    request: Annotated[str, Meta(min_length=1, max_length=1_000_000)]


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a session. `nodes` has the status of each task; `single` and `team` are the estimates for one agent
    and for a team."""

    session: str
    phase: str
    stage: str
    outcome: str
    reason: str
    is_halted: bool
    waits_for_user: bool
    plan: Plan | None
    nodes: Mapping[str, str]
    single: Estimate | None
    team: Estimate | None
    questions: Mapping[str, TeamQuestion]
    branch: str
    head: str
    tokens: int
    notes: Sequence[str]
    summary: CompletionSummary | None


class PlansQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED, description="At most this many")] = 200


class PlanList(msgspec.Struct, frozen=True, kw_only=True):
    """The work of all sessions in short, the newest first; the queues of the worker pool, and the locks on files of the
    checkout in the order of their queue."""

    items: Sequence[TeamStatus]
    pool: Sequence[PoolQueue] = ()
    locks: Sequence[LockState] = ()


class ApprovePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`over_budget` also accepts an estimate above the budget."""

    over_budget: bool = False


class PlanText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=1_000_000)]


class AnswerText(PlanText, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`question` is the id of an open question; it may be left out if there is only one."""

    question: str = ""


class InterruptBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Interrupt
    text: str = ""


async def open_team(call: RestCall) -> Team:
    """The team of this server. Raises AccessDenied for another owner, NotFound if no team runs."""
    if call.services.team is None:
        raise NotFound("team on this server", "", hint="Start it with `clew up` in a project")
    if call.by.owner_id != call.services.operator:
        raise AccessDenied("use the team of another owner", ["the owner of this server"])
    return await call.services.team()


async def start_plan(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body
    options = msgspec.convert(msgspec.to_builtins(asked), TeamOptions)
    return reply(await team.start(asked.request, by=call.by, options=options), status=201)


async def list_plans(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    items, shared = await team.status(by=call.by, limit=call.query.limit), await team.resources.state()
    return reply(PlanList(items=items, pool=shared.pool, locks=shared.locks))


async def get_plan(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(view_of(await team.state(call.path["session"], by=call.by)))


async def approve_plan(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body or ApprovePlan()
    return reply(await team.approve(call.path["session"], by=call.by, over_budget=asked.over_budget))


async def modify_plan(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(await team.modify(call.path["session"], call.body.text, by=call.by))


async def answer_question(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body
    return reply(await team.answer(call.path["session"], asked.text, by=call.by, question=asked.question))


async def interrupt_plan(call: RestCall) -> RestAnswer:
    team, asked = await open_team(call), call.body
    return reply(await team.interrupt(call.path["session"], asked.kind, asked.text, by=call.by))


async def resume_plan(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(view_of(await team.resume(call.path["session"], by=call.by)))


async def merge_plan(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(await team.merge(call.path["session"], by=call.by))


def view_of(state: TeamState) -> PlanView:
    """The work of a session as the route shows it."""
    found = state.preflight
    return PlanView(
        session=state.session,
        phase=state.phase,
        stage=state.stage,
        outcome=state.outcome,
        reason=state.reason,
        is_halted=state.is_halted,
        waits_for_user=waits_for_user(state),
        plan=state.plan,
        nodes={id: str(each.status) for id, each in state.dag.nodes.items()} if state.dag else {},
        single=found.single if found else None,
        team=found.team if found else None,
        questions=state.questions,
        branch=state.branch,
        head=state.head,
        tokens=state.tokens,
        notes=state.notes,
        summary=state.summary,
    )


_STEERED = (AccessDenied, IllegalState, InvalidInput, NotFound)


def _steer(name: str, summary: str, handler: object, body: type | None, *, is_needed: bool = True) -> RestOperation:
    """A route that sends one message of the user."""
    return RestOperation(
        method="POST",
        path=f"/plans/{{session}}/{name}",
        handler=handler,  # type: ignore[arg-type]
        summary=summary,
        group="team",
        verb="create",
        writes=True,
        body=body,
        is_body_needed=is_needed,
        answer=TeamMessage,
        raises=_STEERED,
    )


OPERATIONS = (
    RestOperation(
        method="GET",
        path="/plans",
        handler=list_plans,
        summary="The work of all sessions in short, the newest first",
        group="team",
        verb="read",
        query=PlansQuery,
        answer=PlanList,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="POST",
        path="/plans",
        handler=start_plan,
        summary="Begin a session for a request; the Architect plans first",
        group="team",
        verb="create",
        writes=True,
        body=NewPlan,
        answer=Session,
        status=201,
        raises=(AccessDenied, AlreadyExists, InvalidInput, ModelError, NotFound),
    ),
    RestOperation(
        method="GET",
        path="/plans/{session}",
        handler=get_plan,
        summary="The plan of a session, its progress, open questions and result",
        group="team",
        verb="read",
        answer=PlanView,
        raises=(AccessDenied, NotFound),
    ),
    _steer("approve", "Approve the plan that was proposed last", approve_plan, ApprovePlan, is_needed=False),
    _steer("modify", "Ask the Architect to change the plan", modify_plan, PlanText),
    _steer("answer", "Answer an open question of the Architect", answer_question, AnswerText),
    _steer("interrupt", "Halt, add a requirement, ask, suspend or stop", interrupt_plan, InterruptBody),
    RestOperation(
        method="POST",
        path="/plans/{session}/resume",
        handler=resume_plan,
        summary="Continue work that was halted or suspended",
        group="team",
        verb="create",
        writes=True,
        answer=PlanView,
        raises=_STEERED,
    ),
    RestOperation(
        method="POST",
        path="/plans/{session}/merge",
        handler=merge_plan,
        summary="Merge the branch of a completed session into the checkout",
        group="team",
        verb="administer",
        writes=True,
        answer=CheckoutMerge,
        raises=_STEERED,
    ),
)
