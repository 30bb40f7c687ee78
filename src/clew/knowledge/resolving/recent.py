"""What history tells where a question names no subject, such as `what was decided`: the newest of its kind."""

from __future__ import annotations

import re
from typing import Protocol, runtime_checkable

from clew.access import Principal
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import NodeFilter, NodeGraph, ScoredNode, to_selector
from clew.trail.store import Trail

LOOKED_AT = 200
"""So many of those that were written last are put into the order of when they happened."""

_FAILURES = re.compile(
    r"\b(?:brok(?:e|en)|breaks?|fail(?:ed|s|ures?)?|went wrong|go wrong|mistakes?|bugs?|crash\w*)\b", re.I
)
_COMMITS = re.compile(r"\bcommits?\b", re.I)
_DECISIONS = re.compile(r"\b(?:decid\w+|decisions?|chose|chosen|agreed)\b", re.I)


def types_in(question: str) -> tuple[NodeType, ...]:
    """The kinds of entries that a question wants; none in particular where it does not say."""
    if _FAILURES.search(question):
        return (NodeType.FAILURE,)
    return (NodeType.DECISION,) if _DECISIONS.search(question) else ()


@runtime_checkable
class Recorded(Protocol):
    """A shelf that also has what was done in order."""

    async def recent(self, limit: int) -> list[ScoredNode]:
        """The newest, newest first."""
        ...


async def find_recent(
    trail: Trail, shelf: Shelf | None, question: str, *, by: Principal, limit: int
) -> list[ScoredNode]:
    """The newest entries of the kind that is asked for, newest first; what was committed is of no kind."""
    types = types_in(question)
    done = await shelf.recent(limit) if isinstance(shelf, Recorded) and not types else list[ScoredNode]()
    if _COMMITS.search(question):
        return done[:limit]
    page = await trail.records.list(
        to_selector(NodeFilter(domain=NodeDomain.HISTORY, node_types=types)), by=by, limit=LOOKED_AT
    )
    noted = await NodeGraph(trail, by).as_nodes(list(page.items))
    found = [*done, *(ScoredNode(node=node, similarity=1.0) for node in noted)]
    return sorted(found, key=lambda each: each.node.at, reverse=True)[:limit]
