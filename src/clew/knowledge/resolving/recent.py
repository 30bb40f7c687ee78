"""What history tells where a question names no subject, such as `what was decided`: the newest of its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from clew.access import Principal
from clew.knowledge.history.changelog import CHANGELOG, happened_at, is_unreleased, newest_first
from clew.knowledge.history.entries import list_all
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, NodeFilter, NodeGraph, ScoredNode, to_selector
from clew.trail.store import Trail

LOOKED_AT = 1_000
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


def wants_commits_only(question: str) -> bool:
    return _COMMITS.search(question) is not None


@runtime_checkable
class Recorded(Protocol):
    """A shelf that also has what was done in order."""

    async def recent(self, limit: int) -> list[ScoredNode]:
        """The newest, newest first."""
        ...


async def find_recent(
    trail: Trail, shelf: Shelf | None, question: str, *, by: Principal, limit: int, session: str | None = None
) -> list[ScoredNode]:
    """The newest entries of the kind that is asked for, newest first; what was committed is of no kind. What one
    session noted comes before all else."""
    types = types_in(question)
    done = await shelf.recent(limit) if isinstance(shelf, Recorded) and not types else list[ScoredNode]()
    if wants_commits_only(question):
        return done[:limit]
    noted = await list_noted(trail, types, by=by)
    own = [node for node in noted if session is not None and node.session_id == session]
    others = [*(each.node for each in done), *(node for node in noted if node not in own)]
    newest = [*_newest(own, limit), *_newest(others, limit)]
    return [ScoredNode(node=node, similarity=1.0) for node in newest[:limit]]


async def list_noted(trail: Trail, types: Sequence[NodeType] = (), *, by: Principal) -> list[Node]:
    """What was noted and what files tell of, of some kinds or of all: the LOOKED_AT that were written last."""
    wanted = to_selector(NodeFilter(domain=NodeDomain.HISTORY, node_types=types))
    return await NodeGraph(trail, by).as_nodes(await list_all(trail, wanted, by, LOOKED_AT))


def _newest(nodes: Sequence[Node], limit: int) -> list[Node]:
    """What has a day, then what no version has yet, which gets up to half of the room, then records without a day. Of
    versions without a day nobody can tell that they are recent: only where there is nothing else, the highest of them
    is shown."""
    ordered = newest_first(nodes)
    waiting = [node for node in ordered if is_unreleased(node)][: limit // 2]
    dated = [node for node in ordered if happened_at(node) is not None]
    rest = [node for node in ordered if happened_at(node) is None and node.metadata.get("kind") != CHANGELOG]
    found = [*dated[: limit - len(waiting)], *waiting, *rest]
    if found:
        return found[:limit]
    version = ordered[0].metadata.get("version") if ordered else None
    return [node for node in ordered if node.metadata.get("version") == version][:limit]
