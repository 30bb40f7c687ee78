"""What has the words of a question as its name: the connection pool is what ConnectionPool is, and the default timeout
stands in DEFAULT_TIMEOUT_CONFIG."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.access import Principal
from clew.knowledge.resolving.definitions import FURTHEST, distance_of, standing_of
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeType
from clew.trail.nodes import Node, ScoredNode
from clew.trail.text import split_word

LOOKED_AT = 50
FEWEST, MOST = 2, 4

_KIND_WORDS = "flag flags option setting constant variable value number count limit field command amount"
_OF_KIND = frozenset(_KIND_WORDS.split())
"""What a thing is said to be, and need not have in its name."""
_DEFAULT = re.compile(r"^(?:what(?: is|'s|s)|which is) the default\b", re.IGNORECASE)
_VALUES = (NodeType.CONSTANT, NodeType.VARIABLE)


def asks_for_default(question: str) -> bool:
    """Whether a question wants the value that something has where nobody says otherwise."""
    return _DEFAULT.search(question) is not None


async def find_worded(shelf: Shelf, words: Sequence[str], *, by: Principal) -> list[ScoredNode]:
    """Code, but no test, whose name is these words in this order; of what is a value also with one more at its end.
    The product before what stands beside it, a type before a function. One word names too much, and gets nothing."""
    telling = [word for word in words if word not in _OF_KIND]
    if not FEWEST <= len(telling) <= MOST:
        return []
    found = {
        each.node.id: each
        for name in ("_".join(telling), "".join(telling))
        for each in await shelf.search(name, by=by, limit=LOOKED_AT)
        if _is_named(each.node, telling) and distance_of(each.node) < FURTHEST
    }
    return sorted(found.values(), key=lambda each: standing_of(each.node))


def _is_named(node: Node, words: Sequence[str]) -> bool:
    if node.node_type is NodeType.FILE:
        return False
    parts = list(split_word(node.name.rpartition(".")[2]))
    return parts == list(words) or (node.node_type in _VALUES and parts[:-1] == list(words))
