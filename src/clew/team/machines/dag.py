"""The state machine of a plan's execution: which nodes run, wait, passed or failed. A node starts when its own
dependencies have passed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from clew.team.messages.message_types import ENGINEER
from clew.team.planning.plan import Plan, RetryLimits, ancestors_of, check_plan
from clew.trail.graphs.relations import Status

MAX_CONFLICTS = 3
"""How often a node is done again because its change conflicts with another one."""


class NodeStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    MERGING = "merging"
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"


SHOWN: dict[NodeStatus, Status] = {
    NodeStatus.PENDING: "pending",
    NodeStatus.RUNNING: "in_progress",
    NodeStatus.WAITING: "in_progress",
    NodeStatus.MERGING: "in_progress",
    NodeStatus.PASSED: "done",
    NodeStatus.FAILED: "failed",
    NodeStatus.CANCELLED: "failed",
}
"""The status of a node as the tree of the plan shows it."""
_OVER = (NodeStatus.PASSED, NodeStatus.FAILED, NodeStatus.CANCELLED)


class NodeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. `attempts` counts its pipelines, `errors` those that ended with an error. `note` is added to the prompt
    of the next attempt."""

    status: NodeStatus = NodeStatus.PENDING
    pipeline: str = ""
    attempts: int = 0
    errors: int = 0
    conflicts: int = 0
    output: str = ""
    note: str = ""
    reason: str = ""


class DagState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The execution of one plan."""

    plan: Plan
    nodes: dict[str, NodeState]

    @property
    def is_over(self) -> bool:
        return all(each.status in _OVER for each in self.nodes.values())

    @property
    def has_passed(self) -> bool:
        return all(each.status is NodeStatus.PASSED for each in self.nodes.values())

    @property
    def passed(self) -> int:
        return sum(each.status is NodeStatus.PASSED for each in self.nodes.values())

    def statuses(self) -> dict[str, Status]:
        """The status of each node, for the tree of the plan."""
        return {id: SHOWN[each.status] for id, each in self.nodes.items()}


def begin(plan: Plan) -> DagState:
    """The initial state of a plan. Raises InvalidInput for a plan that cannot be executed."""
    plan = check_plan(plan)
    return DagState(plan=plan, nodes={each.id: NodeState() for each in plan.nodes})


def extend(dag: DagState, plan: Plan) -> DagState:
    """The state with the nodes of another plan added. A node replaces a node with the same id that has not started.
    Other nodes, the policy and the limits that the user approved stay unchanged. Raises InvalidInput."""
    nodes = {each.id: each for each in dag.plan.nodes}
    nodes |= {each.id: each for each in plan.nodes if dag.nodes.get(each.id, NodeState()) == NodeState()}
    plan = check_plan(msgspec.structs.replace(dag.plan, nodes=tuple(nodes.values()), execution_order=()))
    return DagState(plan=plan, nodes={each.id: dag.nodes.get(each.id, NodeState()) for each in plan.nodes})


def startable(dag: DagState, limit: int, engineers: int = 0) -> list[str]:
    """The nodes that can start now, in the order of the plan. At most `limit` nodes run at a time, and no more than the
    concurrency of the plan. At most `engineers` of them are built by an Engineer; 0 means no limit."""
    most = min(limit, dag.plan.policy.max_concurrency)
    running = sum(each.status is NodeStatus.RUNNING for each in dag.nodes.values())
    ready = [
        node.id
        for node in dag.plan.nodes
        if dag.nodes[node.id].status is NodeStatus.PENDING
        and all(dag.nodes[each].status is NodeStatus.PASSED for each in node.depends_on)
    ]
    if engineers:
        builds = {each.id for each in dag.plan.nodes if each.agent == ENGINEER}
        active = sum(dag.nodes[id].status is NodeStatus.RUNNING for id in builds)
        first = [id for id in ready if id in builds][: max(0, engineers - active)]
        ready = [id for id in ready if id not in builds or id in first]
    return ready[: max(0, most - running)]


def mark(dag: DagState, id: str, status: NodeStatus, **changes: Any) -> DagState:
    """The state with one node changed."""
    node = msgspec.structs.replace(dag.nodes[id], status=status, **changes)
    return msgspec.structs.replace(dag, nodes={**dag.nodes, id: node})


def fail_node(dag: DagState, id: str, reason: str) -> tuple[DagState, tuple[str, ...]]:
    """The state after the final failure of a node, and the running pipelines to cancel: all others if the plan fails
    fast, else none. Nodes that can no longer start are cancelled."""
    dag = mark(dag, id, NodeStatus.FAILED, reason=reason)
    before = ancestors_of({each.id: frozenset(each.depends_on) for each in dag.plan.nodes})
    after = {each for each, earlier in before.items() if id in earlier}
    gone = [each for each in dag.nodes if dag.plan.policy.fail_fast or each in after]
    return cancel(dag, gone, f"{id} failed")


def cancel(dag: DagState, ids: Iterable[str], reason: str) -> tuple[DagState, tuple[str, ...]]:
    """The state with these nodes cancelled unless they have ended, and the pipelines that still run for them."""
    pipelines = []
    for id in ids:
        node = dag.nodes[id]
        if node.status in _OVER:
            continue
        if node.status in (NodeStatus.RUNNING, NodeStatus.MERGING):
            pipelines.append(node.pipeline)
        dag = mark(dag, id, NodeStatus.CANCELLED, reason=reason)
    return dag, tuple(pipelines)


def retry_pause(dag: DagState, id: str) -> float | None:
    """The seconds before a node is tried again after an error; None if it has used its retries."""
    limits = _retry(dag, id)
    errors = dag.nodes[id].errors
    return None if errors > limits.max else limits.backoff_ms / 1_000 * 2 ** (errors - 1)


def upstream_outputs(dag: DagState, id: str) -> dict[str, str]:
    """The results of the nodes that a node depends on."""
    return {each: dag.nodes[each].output for each in dag.plan.node(id).depends_on}


def _retry(dag: DagState, id: str) -> RetryLimits:
    return dag.plan.node(id).metadata.retry or dag.plan.policy.default_retry
