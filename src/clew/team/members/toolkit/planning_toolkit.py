"""Tools of the Architect: plans, questions, status, fixes and interruptions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.team.members.toolkit.member_deps import READS, SENDS, MemberDeps
from clew.team.messages.conversation import get_conversation
from clew.team.messages.message_types import ARCHITECT, USER, MessageType
from clew.team.messages.payloads import PlanProposal, TeamQuestion
from clew.team.planning.plan import read_plan
from clew.team.planning.plan_text import plan_text
from clew.tools.tool import Tool, ToolContext, tool

_T = MessageType
PlanFields = Annotated[
    dict[str, Any],
    msgspec.Meta(
        description="summary and nodes; a node has id and prompt, and where they apply agent (engineer or designer),"
        " title, files, checks, criteria, depends_on, context"
    ),
]


def planning_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return the tools of the Architect."""
    return (*_plan_tools(deps), *_talk_tools(deps))


def _plan_tools(deps: MemberDeps) -> tuple[Tool, ...]:
    async def propose(plan: dict[str, Any], note: str, ctx: ToolContext) -> str:
        place = get_conversation(ctx.by.session)
        checked = read_plan({**plan, "session_id": place.session})
        await deps.tell(_T.PLAN_RESPONSE, PlanProposal(plan=checked, note=note), ctx, target=USER)
        return f"The plan goes to the user:\n\n{plan_text(checked)}\n\nEnd your turn."

    @tool(name="plan", searchable=False, effects=SENDS)
    async def plan_(plan: PlanFields, ctx: ToolContext, request: str = "", constraints: tuple[str, ...] = ()) -> str:
        """Propose a plan for the request of the user. The plan is checked first: cycles, unknown ids, and files that
        two parallel tasks share are refused.

        Args:
            request: the request in your words
            constraints: sentences that hold for every task
        """
        return await propose(_with_constraints({**plan, "prompt": plan.get("prompt") or request}, constraints), "", ctx)

    @tool(name="modify_plan", searchable=False, effects=SENDS)
    async def modify_plan(plan: PlanFields, reason: str, ctx: ToolContext) -> str:
        """Replace the plan that the user saw.

        Args:
            reason: what changed and why, in a sentence
        """
        return await propose(plan, reason, ctx)

    @tool(name="create_fix_dag", searchable=False, effects=SENDS)
    async def create_fix_dag(plan: PlanFields, ctx: ToolContext, note: str = "") -> str:
        """Plan the repair of the findings and failures of the whole result: one small task for each cause."""
        return await propose(plan, note, ctx)

    @tool(name="approve_plan", searchable=False, effects=READS)
    async def approve_plan(ctx: ToolContext) -> str:
        """Show the plan that waits for the user. Only the user approves it."""
        state = await deps.state_of(get_conversation(ctx.by.session).session)
        if state.plan is None:
            raise InvalidInput("plan", "does not exist yet", hint="Propose one with plan")
        return f"{plan_text(state.plan)}\n\n{'It is approved.' if state.is_approved else 'It waits for the user.'}"

    return plan_, modify_plan, create_fix_dag, approve_plan


def _talk_tools(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="clarify", searchable=False, effects=SENDS)
    async def clarify(question: str, ctx: ToolContext, choices: tuple[str, ...] = ()) -> str:
        """Ask the user one question before you plan.

        Args:
            question: the question
            choices: the answers that you expect
        """
        lines = "\n".join(f"{at}. {each}" for at, each in enumerate(choices, 1))
        asked = TeamQuestion(question=f"{question}\n\n{lines}" if lines else question, origin=ARCHITECT)
        await deps.tell(_T.CLARIFICATION_REQUEST, asked, ctx, target=USER)
        return "Asked. End your turn; the answer starts you again."

    @tool(name="status_update", searchable=False, effects=READS)
    async def status_update(ctx: ToolContext) -> dict[str, Any]:
        """Return the phase of the work and the state of each task, for an answer to the user."""
        state = await deps.state_of(get_conversation(ctx.by.session).session)
        tasks = {id: each.status.value for id, each in state.dag.nodes.items()} if state.dag is not None else {}
        return {"phase": state.phase.value, "tasks": tasks, "outcome": state.outcome.value, "tokens": state.tokens}

    @tool(name="interrupt_handler", searchable=False, effects=READS)
    async def interrupt_handler(wish: Literal["pause", "resume", "stop", "replan"], ctx: ToolContext) -> str:
        """Return what an interruption means now, and what the user can do. Only the user halts and stops the work.

        Args:
            wish: what the user wants
        """
        state = await deps.state_of(get_conversation(ctx.by.session).session)
        running = [id for id, each in state.pipelines.items() if not each.is_over]
        held = "The work is halted." if state.is_halted else f"Phase {state.phase.value}; at work: {_listed(running)}."
        return f"{held} {_NEXT[wish]} Finished work is kept on {state.branch or 'its branch'}."

    return clarify, status_update, interrupt_handler


_NEXT = {
    "pause": "The user halts it with `clew team stop --pause`, or by the word halt.",
    "resume": "The user continues it with the word continue.",
    "stop": "The user stops it with `clew team stop`.",
    "replan": "Propose the new plan with modify_plan.",
}


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"


def _with_constraints(plan: dict[str, Any], constraints: tuple[str, ...]) -> dict[str, Any]:
    """The plan with these constraints on every node."""
    nodes = plan.get("nodes")
    if not constraints or not isinstance(nodes, list):
        return plan
    return {**plan, "nodes": [_constrained(each, constraints) if isinstance(each, dict) else each for each in nodes]}


def _constrained(node: dict[str, Any], constraints: tuple[str, ...]) -> dict[str, Any]:
    context = node.get("context") or {}
    if not isinstance(context, dict):
        return node
    return {**node, "context": {**context, "constraints": [*context.get("constraints", ()), *constraints]}}
