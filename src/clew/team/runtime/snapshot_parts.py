"""The part of a session's snapshot that the team adds: the progress of the plan, and its agents."""

from __future__ import annotations

from typing import Any

from clew.team.machines.dag import NodeStatus
from clew.team.machines.team_state import TeamState


def snapshot_parts(state: TeamState) -> dict[str, Any] | None:
    """The progress of a team as plain data; None for a session without one."""
    if state.request is None:
        return None
    return {
        "dag_state": _dag(state),
        "pending_messages": list(state.questions),
        "agent_states": {each.id: str(each.state) for each in state.pipelines.values() if not each.is_over},
    }


def _dag(state: TeamState) -> dict[str, Any] | None:
    if state.dag is None:
        return None
    nodes, order = state.dag.nodes, state.dag.plan.execution_order
    is_open = [any(nodes[id].status is not NodeStatus.PASSED for id in layer) for layer in order]
    return {
        "dag_id": state.dag.plan.id,
        "current_layer": is_open.index(True) if any(is_open) else len(order),
        "node_states": {id: str(each.status) for id, each in nodes.items()},
        "completed_results": {id: each.output for id, each in nodes.items() if each.status is NodeStatus.PASSED},
        "pending_nodes": [id for id, each in nodes.items() if each.status is NodeStatus.PENDING],
    }
