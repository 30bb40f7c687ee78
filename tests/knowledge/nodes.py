"""Sample nodes for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import Node

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CODE, HISTORY, ACADEMIC = NodeDomain.CODE, NodeDomain.HISTORY, NodeDomain.ACADEMIC
_FIRST_TYPE = {CODE: NodeType.FUNCTION, HISTORY: NodeType.HISTORY_ENTRY, ACADEMIC: NodeType.DOCUMENTATION}
_numbers = count(1)


def node(domain: NodeDomain, name: str = "a node", content: str = "", *, days: float = 0.0, **fields: Any) -> Node:
    """A node that is so many days old."""
    return Node(
        **{
            "id": f"n{next(_numbers)}",
            "name": name,
            "domain": domain,
            "node_type": _FIRST_TYPE[domain],
            "content": content,
            "created_at": NOW - timedelta(days=days),
            **fields,
        }
    )
