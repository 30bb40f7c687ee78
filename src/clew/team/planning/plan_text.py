"""A plan as a tree of text, with the status of each node."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from clew.team.planning.plan import Plan
from clew.trail.graphs.relation_text import STEP, format_plan
from clew.trail.graphs.relations import RelationNode, RelationStore, Status

PLAN = "plan"
_UNNAMED = "#1"
"""The placeholder id of a plan without an id. No node can have this id."""
_START = datetime(2000, 1, 1, tzinfo=UTC)


def plan_relations(plan: Plan, statuses: Mapping[str, Status] | None = None) -> RelationStore:
    """The plan as relations: the plan is the root, its nodes are steps below their dependencies."""
    known = statuses or {}
    root = plan.id or _UNNAMED
    nodes = [_relation(root, (), PLAN, plan.summary or plan.prompt or "plan", None)]
    for layer in plan.execution_order:
        for id in layer:
            node = plan.node(id)
            nodes.append(_relation(id, node.depends_on or (root,), STEP, node.label, known.get(id, "pending")))
    return RelationStore(nodes)


def plan_text(plan: Plan, statuses: Mapping[str, Status] | None = None) -> str:
    """The plan as an indented tree."""
    return format_plan(plan_relations(plan, statuses), plan.id or _UNNAMED)


def _relation(id: str, parents: tuple[str, ...], kind: str, text: str, status: Status | None) -> RelationNode:
    context = {"description": text, **({"status": status} if status else {})}
    return RelationNode(id=id, parents=parents, edge_type=kind, context=context, created_at=_START)
