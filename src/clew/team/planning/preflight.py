"""Preflight: whether one agent suffices for a plan, with an estimate for one agent and for a team.

Teams help if the parts of a plan are independent, and hurt if one part follows from another. A plan whose nodes form a
chain therefore runs as one pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from clew.team.planning.plan import NodeContext, Plan, PlanNode, check_plan

RUN_TOKENS = 6_000
"""Tokens of one run of an agent: instructions, tools, files that it reads, and its answers."""
REVIEW_TOKENS = 3_000
"""Tokens of the Inspector's judgement of one node."""
CHARACTERS_PER_TOKEN = 4
EXPECTED_RUNS = 1.5
"""Runs of a builder until its work passes."""
RUN_SECONDS = 60.0


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The expected cost of a way to carry out a plan."""

    agents: int
    tokens: int
    seconds: float


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """`plan` is the one to run. `exceeds_budget` says whether its estimate is above the budget."""

    plan: Plan
    one_agent: bool
    reason: str
    single: Estimate
    team: Estimate
    exceeds_budget: bool = False

    @property
    def chosen(self) -> Estimate:
        return self.single if self.one_agent else self.team


def preflight(plan: Plan, *, budget: int = 0, max_agents: int = 4) -> Preflight:
    """Choose between one agent and a team. `budget` limits tokens; 0 means without limit."""
    plan = check_plan(plan)
    width = max(len(layer) for layer in plan.execution_order)
    merged = merge_nodes(plan)
    at_once = min(width, max_agents, plan.policy.max_concurrency)
    single = Estimate(agents=1, tokens=_tokens(merged), seconds=RUN_SECONDS * EXPECTED_RUNS * len(plan.nodes))
    rounds = sum(-(-len(layer) // at_once) for layer in plan.execution_order)
    team = Estimate(agents=at_once, tokens=_tokens(plan), seconds=RUN_SECONDS * EXPECTED_RUNS * rounds)
    one_agent = width == 1
    chosen = single if one_agent else team
    return Preflight(
        plan=merged if one_agent else plan,
        one_agent=one_agent,
        reason=_reason(plan, width),
        single=single,
        team=team,
        exceeds_budget=bool(budget) and chosen.tokens > budget,
    )


def merge_nodes(plan: Plan) -> Plan:
    """The plan as one node, whose prompt lists the tasks in order."""
    if len(plan.nodes) == 1:
        return plan
    ordered = [plan.node(id) for layer in plan.execution_order for id in layer]
    tasks = "\n\n".join(f"{at}. {each.label}\n{each.prompt}" for at, each in enumerate(ordered, 1))
    is_open = any(not each.files for each in ordered)
    node = PlanNode(
        id="work",
        agent="engineer",
        title=plan.summary.strip().splitlines()[0][:80] if plan.summary.strip() else "",
        prompt=f"Do these tasks in order.\n\n{tasks}",
        context=NodeContext(
            relevant_files=_distinct(path for each in ordered for path in each.context.relevant_files),
            constraints=_distinct(text for each in ordered for text in each.context.constraints),
        ),
        files=() if is_open else _distinct(path for each in ordered for path in each.files),
        checks=_distinct(check for each in ordered for check in each.checks),
        criteria=_distinct(text for each in ordered for text in each.criteria),
    )
    return check_plan(msgspec.structs.replace(plan, nodes=(node,), execution_order=()))


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _tokens(plan: Plan) -> int:
    return round(sum(_node_tokens(each) for each in plan.nodes))


def _node_tokens(node: PlanNode) -> float:
    run = RUN_TOKENS + len(node.prompt) / CHARACTERS_PER_TOKEN
    return EXPECTED_RUNS * run + (REVIEW_TOKENS if node.criteria else 0)


def _reason(plan: Plan, width: int) -> str:
    if len(plan.nodes) == 1:
        return "The plan has one task."
    if width == 1:
        return "Each task depends on the one before it, so parallel agents would only wait."
    return f"{width} tasks are independent of each other."
